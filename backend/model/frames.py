"""The JSON values of a model server's response: a stream of server-sent events, or one body."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from contextlib import suppress
from typing import Any

from httpx2 import HTTPError, Request, Response
from openai import AsyncOpenAI, AsyncStream

from backend.model.errors import ModelError
from backend.model.limits import METER, ResponseMeter
from backend.model.tool_calls import INVALID, parse_json

_DRAIN_SECONDS = 0.05  # to read the rest after [DONE], so that the connection can be reused


class JsonStream(AsyncStream[Any]):
    """Replaces the client's own reader, which accepts only events that carry a chunk as OpenAI sends it."""

    def __init__(self, *, cast_to: type[Any], response: Response, client: AsyncOpenAI, options: Any = None) -> None:
        response.request = Request(response.request.method, response.request.url)  # frees the request's body
        self.response = response

    async def values(self) -> AsyncGenerator[Any]:
        """Yields the JSON values of the response and `END` for `[DONE]`, and closes it; raises `ModelError`."""
        meter: ResponseMeter = self.response.extensions[METER]
        try:
            async for value in values_of(self.response.aiter_bytes()):
                meter.end_frame()
                yield value
        except HTTPError:
            raise ModelError("model_cut_off") from None
        finally:
            await self.response.aclose()


END = object()
"""Stands in a stream for `[DONE]`."""


async def values_of(pieces: AsyncIterator[bytes]) -> AsyncGenerator[Any]:
    """The JSON values of a response's body, however it is cut into pieces, and `END`; raises `ModelError`."""
    lines, body = _lines(pieces), list[str]()
    events: _Events | None = None
    async for line in lines:
        if events is None and not body:
            line = line.strip().removeprefix("\ufeff")
            if not line:
                continue
            events = _Events() if _is_event(line) else None
        if events is None:
            body.append(line)
            continue
        for value in events.take(line):
            if value is END:
                await _drain(lines)
                yield END
                return
            yield value
    for value in events.finish() if events is not None else _of_body("\n".join(body)):
        yield value


def _is_event(line: str) -> bool:
    """Whether a response that begins with this line is a stream of events, in which empty names mark comments."""
    return line.partition(":")[0] in ("data", "event", "id", "retry", "")


class _Events:
    """Assembles server-sent events from lines."""

    def __init__(self) -> None:
        self._data: list[str] = []
        self._event = ""

    def take(self, line: str) -> Iterator[Any]:
        if not line.strip():
            yield from self.finish()
            return
        field, _, value = line.partition(":")
        if line.startswith(("{", "[")):
            field, value = "data", line
        # Some servers separate events by a single line end. Only one line is tried, as the time would be quadratic.
        if field in ("event", "data") and len(self._data) == 1 and parse_json(self._data[0]) is not INVALID:
            yield from self.finish()
        if field == "event":
            self._event = value.strip()
        elif field == "data":
            self._data.append(value.removeprefix(" "))

    def finish(self) -> Iterator[Any]:
        """Yields the value of the event that is assembled so far, or `END`; an `error` event becomes an object with
        `error`. Raises `ModelError` for invalid JSON.
        """
        text, event = "\n".join(self._data).strip(), self._event
        self._data, self._event = [], ""
        if text.startswith("[DONE]"):
            yield END
        elif text.startswith(("{", "[")):
            value = parse_json(text)
            if value is INVALID:
                raise ModelError("model_unreadable", words=text)
            if isinstance(value, list):
                yield from value  # as Gemini sends errors
                return
            yield {"error": value} if event == "error" and "error" not in value else value
        elif event == "error" and text:
            yield {"error": text}


def _of_body(body: str) -> Iterator[Any]:
    """Yields the values of a response that is no stream: one JSON value, a list of them, or one on each line.

    Raises `ModelError` for anything else.
    """
    if body.startswith("<"):
        raise ModelError("model_not_found", words=body)
    value = parse_json(body)
    if value is INVALID:
        value = [parse_json(line) for line in body.splitlines() if line.strip()]
        if INVALID in value:
            raise ModelError("model_unreadable", words=body)
    yield from value if isinstance(value, list) else [value]


async def _lines(pieces: AsyncIterator[bytes]) -> AsyncIterator[str]:
    """Yields the decoded lines of a body.

    Lines end with CR, LF or both; `Response.aiter_lines` also splits at characters that JSON may contain.
    """
    pending: list[bytes] = []
    was_cr = False
    async for piece in pieces:
        for line in piece.splitlines(keepends=True):
            if was_cr and line == b"\n":
                was_cr = False
                continue
            was_cr = line.endswith(b"\r")
            pending.append(line)
            if line.endswith((b"\n", b"\r")):
                yield b"".join(pending).decode("utf-8", "replace").rstrip("\r\n")
                pending.clear()
    if pending:
        yield b"".join(pending).decode("utf-8", "replace")


async def _drain(lines: AsyncIterator[str]) -> None:
    with suppress(TimeoutError, HTTPError):
        async with asyncio.timeout(_DRAIN_SECONDS):
            async for _ in lines:
                pass
