"""The JSON values of a model server's response, a stream of server-sent events or one body, read within limits."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from contextlib import suppress
from typing import Any

from httpx2 import HTTPError, Response

from backend.model.failures.errors import ModelError
from backend.model.responses.limits import ResponseLimits
from backend.model.tool_calls import INVALID, parse_json

_IN_FRAME = 6  # bytes of a character, which JSON may write as \uXXXX
_DRAIN_SECONDS = 0.05  # to read the rest after [DONE], so that the connection can be reused

END = object()
"""Stands in a stream for `[DONE]`."""


async def read_values(response: Response, limits: ResponseLimits) -> AsyncGenerator[Any]:
    """Yields the JSON values of a response and `END` for `[DONE]`, and closes it; raises `ModelError`."""
    received = 0  # since the last value

    async def pieces() -> AsyncGenerator[bytes]:
        nonlocal received
        async for piece in response.aiter_bytes():
            received += len(piece)
            limits.check_bytes(received, bytes_of_char=_IN_FRAME)
            yield piece

    try:
        async for value in values_of(pieces()):
            received = 0
            yield value
    except HTTPError:
        raise ModelError("model_cut_off") from None
    finally:
        await response.aclose()


async def values_of(pieces: AsyncIterator[bytes]) -> AsyncGenerator[Any]:
    lines = _iter_lines(pieces)
    first = ""
    async for line in lines:
        if first := line.strip().removeprefix("\ufeff"):
            break
    if first.partition(":")[0] not in ("data", "event", "id", "retry", ""):
        for value in _iter_values("\n".join([first, *[line async for line in lines]])):
            yield value
        return
    async for event, data in _iter_events(first, lines):
        if data.startswith("[DONE]"):
            await _drain(lines)
            yield END
            return
        for value in _read_event(event, data):
            yield value


async def _iter_events(first: str, lines: AsyncIterator[str]) -> AsyncIterator[tuple[str, str]]:
    """Yields the type and the data of server-sent events; some servers send data without a field's name."""
    event, data = "", list[str]()
    line: str | None = first
    while line is not None:
        field, _, value = line.partition(":")
        if line.startswith(("{", "[")):
            field, value = "data", line
        # Some servers separate events by a single line end. Only one line is tried, as the time would be quadratic.
        is_next = field in ("event", "data") and len(data) == 1 and parse_json(data[0]) is not INVALID
        if is_next or not line.strip():
            yield event, "\n".join(data).strip()
            event, data = "", []
        if field == "event":
            event = value.strip()
        elif field == "data":
            data.append(value.removeprefix(" "))
        line = await anext(lines, None)
    yield event, "\n".join(data).strip()


def _read_event(event: str, data: str) -> Iterator[Any]:
    if data.startswith(("{", "[")):
        value = parse_json(data)
        if value is INVALID:
            raise ModelError("model_unreadable", words=data)
        if isinstance(value, list):
            yield from value  # as Gemini sends errors
        else:
            yield {"error": value} if event == "error" and "error" not in value else value
    elif event == "error" and data:
        yield {"error": data}


def _iter_values(body: str) -> Iterator[Any]:
    """Yields the values of a response that is no stream: one JSON value, a list of them, or one on each line."""
    if body.startswith("<"):
        raise ModelError("model_not_found", words=body)
    value = parse_json(body)
    if value is INVALID:
        value = [parse_json(line) for line in body.splitlines() if line.strip()]
        if INVALID in value:
            raise ModelError("model_unreadable", words=body)
    yield from value if isinstance(value, list) else [value]


async def _iter_lines(pieces: AsyncIterator[bytes]) -> AsyncIterator[str]:
    """Yields lines that end with CR, LF or both; `Response.aiter_lines` splits at characters that JSON may contain."""
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
