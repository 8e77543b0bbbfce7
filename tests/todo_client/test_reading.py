"""An interaction that is read over connections that break."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, cast

from todo_client.connection import ConnectionLost
from todo_client.reading import Reading
from todo_client.runs import RunEvent, Runs

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

    def __init__(self) -> None:
        self._connections = iter(CONNECTIONS)

    @asynccontextmanager
    async def events(self, *_: Any, **__: Any) -> AsyncIterator[AsyncIterator[RunEvent]]:
        async def send() -> AsyncIterator[RunEvent]:
            for event in next(self._connections):
                yield event
            raise ConnectionLost

        yield send()


async def test_model_turn_that_several_connections_show_begins_once() -> None:
    runs = cast(Runs, BrokenRuns())
    read = [event async for event in Reading("chat", "run").events(runs, reconnect_seconds=30)]
    names = [event.name for event in read if event.name != "answer_delta"]
    assert names == ["interaction_started", "turn_start", "turn_end", "answer", "interaction_complete"]
    assert "".join(event.data["content"] for event in read if event.name == "answer_delta") == "One."
