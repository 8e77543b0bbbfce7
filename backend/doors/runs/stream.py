"""The events of an interaction as they are sent: server-sent events with a number and a name."""

import json
from collections.abc import AsyncIterator

from backend.doors.runs.rendering import ApiEvent, Rendering
from backend.doors.streamed import Streamed
from backend.transcript.lines import Line, written
from backend.turn.following.publisher import Numbered

MEDIA_TYPE, LINES = "text/event-stream", "application/jsonl"
_PING = b": ping\n\n"
_HEADERS = {"Cache-Control": "no-cache", "X-Accel-Buffering": "no"}


def streamed(events: AsyncIterator[Numbered | None], rendering: Rendering) -> Streamed:
    """Who stops reading stops nothing but this."""
    return Streamed(_frames(events, rendering), media_type=MEDIA_TYPE, headers=_HEADERS)


def log(lines: AsyncIterator[Line]) -> Streamed:
    """A JSON object a line."""
    return Streamed((written(line) async for line in lines), media_type=LINES, headers=_HEADERS)


async def _frames(events: AsyncIterator[Numbered | None], rendering: Rendering) -> AsyncIterator[bytes]:
    async for numbered in events:
        if numbered is None:
            yield _PING
        elif (event := rendering.event(numbered.event)) is not None:
            yield _frame(numbered.seq, event)


def _frame(number: int, event: ApiEvent) -> bytes:
    return f"id: {number}\nevent: {event.name}\ndata: {json.dumps(event.data, ensure_ascii=False)}\n\n".encode()
