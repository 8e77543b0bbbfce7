"""A client of the run API that checks the fields of each event by the documentation."""

from typing import Any

from tests.waiting import until
from todo_client import runs
from todo_client.runs import RunEvent

SHAPES: dict[str, set[str]] = {
    "interaction_started": {"interaction_id", "chat_id"},
    "turn_start": {"interaction_id"},
    "turn_end": {"interaction_id"},
    "tool_call": {"type", "id", "tool_name", "tool_input"},
    "tool_result": {"type", "id", "tool_name", "tool_output"},
    "thinking": {"type", "content"},
    "thinking_delta": {"content"},
    "answer": {"type", "content"},
    "answer_delta": {"content"},
    "approval_required": {"approval_id", "tool_name", "tool_input", "text", "agent"},
    "approved": {"approval_id", "reason"},
    "rejected": {"approval_id", "reason"},
    "cancelled": {"interaction_id"},
    "error": {"error", "allow_retry"},
    "compaction": {"messages"},
    "interaction_complete": {"interaction_id", "status"},
}

OPTIONAL = {
    "interaction_complete": {"reason", "next_interaction_id"},
    "tool_call": {"agent"},
    "tool_result": {"is_error", "details", "agent"},
    "thinking": {"agent"},
    "answer": {"agent"},
    "error": {"code"},
}


class Runs(runs.Runs):
    def __init__(self, base_url: str, *, token: str | None = None) -> None:
        super().__init__(base_url, token=token, timeout=120)

    async def ready(self) -> dict[str, Any]:
        """Waits until the server is ready: it is not while another service is slow for a second or two."""

        async def read() -> dict[str, Any] | None:
            response = await self.http.get("/ready")
            return response.json() if response.status_code == 200 else None

        return await until(read)

    async def say(self, chat_id: str, text: str, **more: Any) -> list[RunEvent]:
        """Sends a message, and returns all events of the interaction."""
        async with self.interact(chat_id, text, **more) as events:
            return [check(event) async for event in events]

    async def edit_to_its_end(self, chat_id: str, interaction_id: str, text: str) -> list[RunEvent]:
        async with self.edit(chat_id, interaction_id, text) as events:
            return [check(event) async for event in events]

    async def read(self, chat_id: str, interaction_id: str, *, after: int = 0) -> list[RunEvent]:
        async with self.events(chat_id, interaction_id, after=after) as events:
            return [check(event) async for event in events]

    async def drop(self, chat_id: str, interaction_id: str, input_id: str) -> Any:
        path = f"/chats/{chat_id}/interactions/{interaction_id}/messages/{input_id}"
        return await self.request_json("DELETE", path)


def check(event: RunEvent) -> RunEvent:
    assert set(event.data) - OPTIONAL.get(event.name, set()) == SHAPES[event.name]
    return event


def names(events: list[RunEvent]) -> list[str]:
    return [event.name for event in events]


def id_of(events: list[RunEvent]) -> str:
    """Returns the id of the interaction."""
    return events[0].data["interaction_id"]


def text_of(events: list[RunEvent]) -> str:
    """Joins the deltas of the answer."""
    return "".join(event.data["content"] for event in events if event.name == "answer_delta")


def agent_events(events: list[RunEvent]) -> list[dict[str, Any]]:
    """Returns the events that `agent_events` of the interaction has: those of the assistant, without sub-agents."""
    return [event.data for event in events if "type" in event.data and "agent" not in event.data]


def without_deltas(events: list[RunEvent]) -> list[dict[str, Any]]:
    """Returns the events that every replay repeats, without deltas and model turns."""
    left_out = ("answer_delta", "thinking_delta", "turn_start", "turn_end")
    return [{"event": event.name, "data": event.data} for event in events if event.name not in left_out]
