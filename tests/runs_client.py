"""A client of the run API that checks the fields of each event by the documentation."""

import re
from collections.abc import Iterator
from typing import Any

from tests.conftest import ROOT
from tests.waiting import WAIT_SECONDS, until
from todo_client import runs
from todo_client.runs import RunEvent


def _read_documented_events() -> Iterator[tuple[str, dict[str, bool]]]:
    """Reads the table of events in docs/api.md."""
    table = (
        (ROOT / "docs/api.md").read_text().partition("| event | data | when |\n|---|---|---|\n")[2].partition("\n\n")[0]
    )
    for row in table.splitlines():
        names, data, _ = row.strip("|").split(" | ")
        fields = re.findall(r"`(\w+)`(?: \((if )?[^)]*\))?", re.sub(r"\[(.+?)\]\(.+?\)", r"\1", data))
        for name in re.findall(r"`(\w+)`", names):
            yield name, {field: not condition for field, condition in fields}


SHAPES = dict(_read_documented_events())
"""By the name of an event its fields, and whether it always has them."""
AGENT_EVENTS = frozenset(name for name, fields in SHAPES.items() if "type" in fields)
"""Those of sub-agents have the field `agent`, too."""


class Runs(runs.Runs):
    def __init__(self, base_url: str, *, token: str | None = None) -> None:
        super().__init__(base_url, token=token, timeout=WAIT_SECONDS)

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
    fields = SHAPES[event.name]
    required = {field for field, is_required in fields.items() if is_required}
    optional = {*fields, *(["agent"] if event.name in AGENT_EVENTS else [])}
    assert required <= set(event.data) <= optional, event
    return event


def names(events: list[RunEvent]) -> list[str]:
    return [event.name for event in events]


def id_of(events: list[RunEvent]) -> str:
    """Returns the id of the interaction."""
    return events[0].data["interaction_id"]


def text_of(events: list[RunEvent]) -> str:
    """Joins the deltas of the answer, for a reader from its beginning on."""
    return "".join(event.data["content"] for event in events if event.name == "answer_delta")


def answers_of(events: list[RunEvent]) -> list[str]:
    """Returns the texts of complete answers, which every reader gets: one who comes later gets no deltas of them."""
    return [event.data["content"] for event in events if event.name == "answer" and "agent" not in event.data]


def agent_events(events: list[RunEvent]) -> list[dict[str, Any]]:
    """Returns the events that `agent_events` of the interaction has: those of the assistant, without sub-agents."""
    return [event.data for event in events if "type" in event.data and "agent" not in event.data]


def without_deltas(events: list[RunEvent]) -> list[dict[str, Any]]:
    """Returns the events that every replay repeats, without deltas and model turns."""
    left_out = ("answer_delta", "thinking_delta", "turn_start", "turn_end")
    return [{"event": event.name, "data": event.data} for event in events if event.name not in left_out]
