"""A turn's log, as the events of the run API: names and data, the same for a stream and for what is stored."""

from dataclasses import dataclass
from typing import Any

from backend.api.interactions.schemas import Name, Status
from backend.conversation.items import Message, Summarised, Thought
from backend.conversation.runs.abandoned import CUT
from backend.conversation.runs.leases import Outcome
from backend.turn import log

_ENDED: dict[Outcome, Status] = {
    "completed": "COMPLETED",
    "failed": "FAILED",
    "cancelled": "CANCELLED",
    "interrupted": "FAILED",
}
_THOUGHT = "rs_"  # how the ids of thoughts begin: a reader that comes late has not seen what grows begin


@dataclass(frozen=True)
class ApiEvent:
    name: Name
    data: dict[str, Any]


def status_of(status: str, outcome: Outcome | None) -> Status:
    """The API's word for the `status` and the `outcome` of a run."""
    if status == "ended":
        return _ENDED[outcome or "failed"]
    return "WAITING_APPROVAL" if status == "waiting" else "RUNNING"


class Rendering:
    """Of one interaction, in the chat as its reader names it; a reader may begin at any event."""

    def __init__(self, chat_id: str, interaction_id: str) -> None:
        self._chat_id = chat_id
        self._interaction_id = interaction_id

    def event(self, event: log.Event) -> ApiEvent | None:  # noqa: C901 - one row per case
        """What is told of it, if anything: one event at most, as a reader goes on from its number."""
        match event:
            case log.Grown(item_id=item_id, text=text):
                return ApiEvent("thinking_delta" if item_id.startswith(_THOUGHT) else "answer_delta", {"content": text})
            case log.Started():
                return self.started()
            case log.StepBegun():
                return ApiEvent("turn_start", {"interaction_id": self._interaction_id})
            case log.StepDone():
                return ApiEvent("turn_end", {"interaction_id": self._interaction_id})
            case log.Called(call_id=call_id, tool=tool, arguments=arguments):
                return _typed("tool_call", {"id": call_id, "tool_name": tool, "tool_input": arguments})
            case log.Answered(call_id=call_id, tool=tool, output=output):
                return _typed("tool_result", {"id": call_id, "tool_name": tool, "tool_output": output})
            case log.Asked(approval_id=approval_id, tool=tool, arguments=arguments, text=text, agent=agent):
                said = {"tool_name": tool, "tool_input": arguments, "text": text, "agent": agent}
                return ApiEvent("approval_required", {"approval_id": approval_id, **said})
            case log.Decided(approval_id=approval_id, approved=approved, reason=reason):
                decided = {"approval_id": approval_id, "reason": reason}
                return ApiEvent("approved" if approved else "rejected", decided)
            case log.Done(item=Thought(text=text)):
                return _typed("thinking", {"content": text})
            case log.Compacted(item=Summarised(messages=messages)):
                return ApiEvent("compaction", {"messages": messages})
            case log.Done(item=Message() as message):
                return _typed("answer", {"content": message.text})
            case log.Reset():
                return ApiEvent("reset", {"interaction_id": self._interaction_id})
            case log.Cancelled():
                return ApiEvent("cancelled", {"interaction_id": self._interaction_id})
            case log.Ended(outcome=outcome):
                why = {"reason": CUT} if outcome == "interrupted" else {}
                ended = {"interaction_id": self._interaction_id, "status": _ENDED[outcome], **why}
                return ApiEvent("interaction_complete", ended)
            case log.Failed(message=message, allow_retry=allow_retry):
                return ApiEvent("error", {"error": message, "allow_retry": allow_retry})
            case _:
                return None  # what a page shows beside it: parts, progress, notices, widgets

    def started(self) -> ApiEvent:
        return ApiEvent("interaction_started", {"interaction_id": self._interaction_id, "chat_id": self._chat_id})


def _typed(name: Name, data: dict[str, Any]) -> ApiEvent:
    """An event that has its `type` in its data, as it is stored under `agent_events` without its name."""
    return ApiEvent(name, {"type": name.upper(), **data})
