"""An interaction that is read over connections that break."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, cast

from todo_client.connection import ConnectionLost
from todo_client.reading import Reading
from todo_client.runs import RunEvent, Runs

APPROVED = RunEvent(None, "approved", {"approval_id": "call", "reason": None})
CALL = RunEvent(3, "tool_call", {"id": "call"})
END = RunEvent(4, "interaction_complete", {})
CONNECTIONS = [
    [RunEvent(1, "interaction_started", {"interaction_id": "run"})],
    [RunEvent(None, "turn_start", {}), RunEvent(None, "answer_delta", {"content": "On"})],
    [RunEvent(None, "turn_start", {}), RunEvent(None, "answer_delta", {"content": "One"})],
    [
        *(RunEvent(None, "turn_start", {}), RunEvent(None, "turn_end", {})),
        *(RunEvent(2, "answer", {"content": "One."}), RunEvent(3, "interaction_complete", {})),
    ],
]


class BrokenRuns:
    """Each connection sends its events and breaks."""

    def __init__(self, connections: list[list[RunEvent]]) -> None:
        self._connections = iter(connections)

    @asynccontextmanager
    async def events(self, *_: Any, **__: Any) -> AsyncIterator[AsyncIterator[RunEvent]]:
        async def send() -> AsyncIterator[RunEvent]:
            for event in next(self._connections):
                yield event
            raise ConnectionLost

        yield send()


async def test_model_turn_that_several_connections_show_begins_once() -> None:
    runs = cast(Runs, BrokenRuns(CONNECTIONS))
    read = [event async for event in Reading("chat", "run").events(runs, reconnect_seconds=30)]
    names = [event.name for event in read if event.name != "answer_delta"]
    assert names == ["interaction_started", "turn_start", "turn_end", "answer", "interaction_complete"]
    assert "".join(event.data["content"] for event in read if event.name == "answer_delta") == "One."


async def test_progress_does_not_hide_the_start_of_a_model_turn() -> None:
    start, progress = RunEvent(None, "turn_start", {}), RunEvent(None, "progress", {"text": "The model is loading…"})
    runs = cast(Runs, BrokenRuns([[], [start, progress], [start, progress, RunEvent(None, "turn_end", {}), END]]))
    read = [event async for event in Reading("chat", "run").events(runs, reconnect_seconds=30)]
    assert [event.name for event in read] == ["progress", "progress", "turn_start", "turn_end", "interaction_complete"]


async def test_approval_that_is_sent_again_with_its_call_is_read_once() -> None:
    runs = cast(Runs, BrokenRuns([[APPROVED], [APPROVED, CALL], [END]]))
    read = [event async for event in Reading("chat", "run", number=2).events(runs, reconnect_seconds=30)]
    assert read == [APPROVED, CALL, END]
