"""The events of the run API. Each is one class: its fields, and how it is rendered of an event of a run.

A new event is a class here, a row of the table in `docs/api.md`, and what `todo_client/events.py` makes of it.
"""

from abc import abstractmethod
from collections import defaultdict
from collections.abc import Iterable
from typing import Annotated, Any, ClassVar, Literal, NamedTuple, Self

from pydantic import BaseModel, Field

from backend.api.event_renderer import EventRenderer
from backend.api.sse import format_event
from backend.context.render import output_of
from backend.conversations.records import Entry, EntryKind, Event, EventType, Run, ToolCall
from backend.conversations.records import Status as RunStatus
from backend.runs.outcomes import CUT_OFF_CODES, may_retry, sentence_of, sentence_of_notice
from common.changes import Change

Status = Literal["RUNNING", "WAITING_APPROVAL", "COMPLETED", "FAILED", "CANCELLED"]
STATUS: dict[RunStatus, Status] = {
    "running": "RUNNING",
    "waiting": "WAITING_APPROVAL",
    "completed": "COMPLETED",
    "failed": "FAILED",
    "cancelled": "CANCELLED",
    "interrupted": "FAILED",
}
# A call that was left open when its run ended has none of these, and no result.
_UNMADE_REASONS = ("too_many", "over_limit", "not_shown", "reach_changed")
_NO_FAILURES = ("cancelled", *CUT_OFF_CODES)


class RenderedInteraction(NamedTuple):
    """The interaction whose events are rendered, and its chat as the path names it."""

    id: str
    chat_id: str


class RunEvent(BaseModel):
    """An event of the run API; its data are the fields that are set. `name` is that of the server-sent event.

    `render` is called with the events of a run that have one of the `types`, and with those of its sub-agents only if
    the event is one `of_sub_agents`.
    """

    name: ClassVar[str]
    types: ClassVar[tuple[EventType, ...]]
    of_sub_agents: ClassVar[bool] = False

    @classmethod
    @abstractmethod
    def render(cls, event: Event, of: RenderedInteraction) -> Self | None:
        """Renders an event of a run; None if it is another."""

    @classmethod
    def __pydantic_init_subclass__(cls, **_: Any) -> None:
        if "name" in cls.__dict__:
            EVENTS[cls.name] = cls
            for kind in cls.types:
                _BY_TYPE[kind].append(cls)


EVENTS: dict[str, type[RunEvent]] = {}
"""All events by their names. Those that are rendered of the same event are sent in this order."""
_BY_TYPE: defaultdict[EventType, list[type[RunEvent]]] = defaultdict(list)


class AgentEvent(RunEvent):
    """What an agent did and said. It is stored in an interaction, and sent also of sub-agents, with their `agent`."""

    of_sub_agents = True


class _EntryEvent(RunEvent):
    """An event about entries of one kind."""

    kind: ClassVar[EntryKind]
    types = ("entry_completed",)

    @classmethod
    def render(cls, event: Event, of: RenderedInteraction) -> Self | None:
        entry = event.record
        return cls.of_entry(entry, event, of) if isinstance(entry, Entry) and entry.kind == cls.kind else None

    @classmethod
    @abstractmethod
    def of_entry(cls, entry: Entry, event: Event, of: RenderedInteraction) -> Self | None: ...


class _CallEvent(RunEvent):
    """An event about calls."""

    @classmethod
    def render(cls, event: Event, of: RenderedInteraction) -> Self | None:
        return cls.of_call(event.record, event) if isinstance(event.record, ToolCall) else None

    @classmethod
    @abstractmethod
    def of_call(cls, call: ToolCall, event: Event) -> Self | None: ...


class InteractionStarted(_EntryEvent):
    interaction_id: str
    chat_id: str

    name, kind = "interaction_started", "user_message"

    @classmethod
    def of_entry(cls, entry: Entry, event: Event, of: RenderedInteraction) -> Self | None:
        is_steering = (entry.details or {}).get("mode") == "steer"
        return None if is_steering else cls(interaction_id=of.id, chat_id=of.chat_id)


class TurnStart(RunEvent):
    interaction_id: str

    name, types = "turn_start", ("model_turn_started",)

    @classmethod
    def render(cls, event: Event, of: RenderedInteraction) -> Self | None:
        return cls(interaction_id=of.id)


class TurnEnd(TurnStart):
    name, types = "turn_end", ("model_turn_ended",)


class Progress(RunEvent):
    text: str = Field(description="A sentence.")

    name, types, of_sub_agents = "progress", ("progress",), True

    @classmethod
    def render(cls, event: Event, of: RenderedInteraction) -> Self | None:
        return cls(text=event.text)


class ThinkingDelta(_EntryEvent):
    content: str

    name, types, kind = "thinking_delta", ("entry_delta",), "reasoning"

    @classmethod
    def of_entry(cls, entry: Entry, event: Event, of: RenderedInteraction) -> Self | None:
        return cls(content=event.text)


class ThinkingEvent(_EntryEvent, AgentEvent):
    type: Literal["THINKING"]
    content: str

    name, kind = "thinking", "reasoning"

    @classmethod
    def of_entry(cls, entry: Entry, event: Event, of: RenderedInteraction) -> Self | None:
        return cls(type="THINKING", content=entry.text)


class AnswerDelta(ThinkingDelta):
    name, kind = "answer_delta", "assistant_message"


class AnswerEvent(_EntryEvent, AgentEvent):
    type: Literal["ANSWER"]
    content: str

    name, kind = "answer", "assistant_message"

    @classmethod
    def of_entry(cls, entry: Entry, event: Event, of: RenderedInteraction) -> Self | None:
        return cls(type="ANSWER", content=entry.text)


class Withdrawn(_EntryEvent):
    """Withdraws the text that came since the last `turn_start`: it claimed a change that was not made."""

    interaction_id: str

    name, types, kind = "withdrawn", ("entry_withdrawn",), "withdrawn"

    @classmethod
    def of_entry(cls, entry: Entry, event: Event, of: RenderedInteraction) -> Self | None:
        return cls(interaction_id=of.id)


class Question(BaseModel):
    approval_id: str
    agent: str | None = Field(description="The agent that makes the call; null: the assistant.")
    tool_name: str
    tool_input: str
    text: str

    @classmethod
    def of_call(cls, call: ToolCall, sub_agent: str | None) -> Self:
        text = call.approval_text or ""
        return cls(approval_id=call.id, agent=sub_agent, tool_name=call.tool, tool_input=call.arguments, text=text)


class ApprovalRequired(RunEvent, Question):
    name, types, of_sub_agents = "approval_required", ("approval_requested",), True

    @classmethod
    def render(cls, event: Event, of: RenderedInteraction) -> Self | None:
        return cls.of_call(event.record, event.sub_agent) if isinstance(event.record, ToolCall) else None


class Approved(_CallEvent):
    approval_id: str
    reason: str | None

    name, types, of_sub_agents = "approved", ("approval_decided",), True
    is_rejection: ClassVar[bool] = False

    @classmethod
    def of_call(cls, call: ToolCall, event: Event) -> Self | None:
        is_this = (call.state == "rejected") == cls.is_rejection
        return cls(approval_id=call.id, reason=call.decision_text) if is_this else None


class Rejected(Approved):
    name, is_rejection = "rejected", True


class ToolCallEvent(_CallEvent, AgentEvent):
    type: Literal["TOOL_CALL"]
    id: str
    tool_name: str
    tool_input: str = Field(description="JSON.")

    name, types = "tool_call", ("call_requested", "approval_decided")

    @classmethod
    def of_call(cls, call: ToolCall, event: Event) -> Self | None:
        """Renders a call that is made; one that needs approval comes after `approved`, and shares its number."""
        is_made = not call.needs_approval if event.type == "call_requested" else call.state != "rejected"
        if not is_made:
            return None
        return cls(type="TOOL_CALL", id=call.id, tool_name=call.tool, tool_input=call.arguments)


class ToolResultEvent(_CallEvent, AgentEvent):
    type: Literal["TOOL_RESULT"]
    id: str = Field(description="The id of the call.")
    tool_name: str
    tool_output: str
    is_error: bool = False
    details: dict[str, Any] | None = Field(
        default=None, description="Exit code and output of a command, a file's diff, tasks."
    )

    name, types = "tool_result", ("call_completed",)

    @classmethod
    def of_call(cls, call: ToolCall, event: Event) -> Self | None:
        """Renders a call that has returned, or was not made for a reason that the model reads while its run goes on."""
        if call.state not in ("done", "failed") and (call.state != "not_made" or call.reason not in _UNMADE_REASONS):
            return None
        output, is_error = output_of(call), call.state != "done"
        result = cls(type="TOOL_RESULT", id=call.id, tool_name=call.tool, tool_output=output, is_error=is_error)
        result.details = call.details
        return result


class ErrorEvent(_EntryEvent):
    error: str
    allow_retry: bool
    code: str

    name, kind = "error", "notice"

    @classmethod
    def of_entry(cls, entry: Entry, event: Event, of: RenderedInteraction) -> Self | None:
        code = (entry.details or {}).get("code")
        if code is None or code in _NO_FAILURES:
            return None
        return cls(error=sentence_of_notice(entry), allow_retry=may_retry(code), code=code)


class NoticeEvent(_EntryEvent):
    text: str
    code: str

    name, kind = "notice", "notice"

    @classmethod
    def of_entry(cls, entry: Entry, event: Event, of: RenderedInteraction) -> Self | None:
        code = (entry.details or {}).get("code")
        return cls(text=sentence_of_notice(entry), code=code) if code in CUT_OFF_CODES else None


class Cancelled(_EntryEvent):
    interaction_id: str

    name, kind = "cancelled", "notice"

    @classmethod
    def of_entry(cls, entry: Entry, event: Event, of: RenderedInteraction) -> Self | None:
        return cls(interaction_id=of.id) if (entry.details or {}).get("code") == "cancelled" else None


class Compaction(_EntryEvent):
    messages: int

    name, kind = "compaction", "summary"

    @classmethod
    def of_entry(cls, entry: Entry, event: Event, of: RenderedInteraction) -> Self | None:
        messages = (entry.details or {}).get("messages")
        return cls(messages=messages) if messages else None


class TaskChange(BaseModel):
    task_id: int
    title: str
    change: Change


Changes = Annotated[list[TaskChange], Field(description="What it has changed; known once it has ended.")]
Named = Annotated[int | None, Field(description="How many changes the answer names, if these are more; else null.")]
Unread = Annotated[bool, Field(description="Whether the task service could not say what was changed.")]


def changes_of(run: Run | None) -> dict[str, Any]:
    """Returns the values of `changes`, and of `named` and `unread` where they are set."""
    return {"changes": [], **((run and run.changes) or {})}


class InteractionComplete(RunEvent):
    interaction_id: str
    status: Status
    reason: str | None = None
    next_interaction_id: str | None = None
    changes: Changes
    named: Named = None
    unread: Unread = False

    name, types = "interaction_complete", ("run_ended",)

    @classmethod
    def render(cls, event: Event, of: RenderedInteraction) -> Self | None:
        if (run := event.run) is None:
            return None
        reason = {"reason": sentence_of("interrupted")} if run.status == "interrupted" else {}
        following = {"next_interaction_id": run.next_run_id} if run.next_run_id else {}
        return cls(interaction_id=of.id, status=STATUS[run.status], **reason, **following, **changes_of(run))


def render_events(event: Event, of: RenderedInteraction) -> list[RunEvent]:
    is_of_top_run = event.sub_agent is None
    return [
        rendered
        for kind in _BY_TYPE[event.type]
        if (is_of_top_run or kind.of_sub_agents) and (rendered := kind.render(event, of)) is not None
    ]


class Frame(NamedTuple):
    event: RunEvent
    sub_agent: str | None
    number: int | None


class RunApiRenderer(EventRenderer[Frame]):
    def __init__(self, of: RenderedInteraction) -> None:
        super().__init__()
        self._of = of

    async def handle(self, event: Event) -> Iterable[Frame]:
        """Renders an event; only the last of several frames has its number, so that a reader goes on after all."""
        rendered = render_events(event, self._of)
        return [
            Frame(one, event.sub_agent, event.number if place == len(rendered) else None)
            for place, one in enumerate(rendered, start=1)
        ]

    def encode(self, rendered: Frame) -> bytes:
        data = rendered.event.model_dump(exclude_unset=True)
        if rendered.sub_agent is not None and isinstance(rendered.event, AgentEvent):
            data["agent"] = rendered.sub_agent
        return format_event(data, event=rendered.event.name, id=rendered.number)
