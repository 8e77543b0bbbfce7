"""Limits for the size and the silence of a model server's response."""

import asyncio
import time
from collections.abc import AsyncGenerator, AsyncIterator
from dataclasses import dataclass
from typing import Any

from httpx2 import Response
from openai import DefaultAioHttpClient

from backend.model.errors import ModelError

_OVERHEAD = 2**21  # bytes of a frame in addition to its text
_IN_FRAME = 6  # bytes of a character, which JSON may write as \uXXXX
_IN_STREAM = 100  # bytes of a character: servers send a frame of about 400 bytes for each token of 4 characters
_LONGEST_HOLD = 0.01  # seconds
METER = "todo.meter"
"""The extension of a response that has its `ResponseMeter`."""


@dataclass(frozen=True)
class ResponseLimits:
    """`chars` are the characters of text, reasoning and tool calls of one response."""

    chars: int = 400_000
    first_token_seconds: float = 300
    silence_seconds: float = 120


class Pause:
    """Yields to the event loop now and then while received data is read without waiting."""

    def __init__(self) -> None:
        self._last = time.perf_counter()

    async def take(self) -> None:
        if time.perf_counter() - self._last > _LONGEST_HOLD:
            await asyncio.sleep(0)
            self._last = time.perf_counter()


class ResponseMeter:
    """Counts the decompressed bytes of one response; the reader calls `end_frame` for each frame."""

    def __init__(self, limits: ResponseLimits) -> None:
        self._chars = limits.chars
        self._in_frame = 0  # or in a body that is no stream
        self._in_stream = 0

    def end_frame(self) -> None:
        self._in_frame = 0

    async def count(self, pieces: AsyncIterator[bytes]) -> AsyncGenerator[bytes]:
        """Passes a body on and counts it; raises `ModelError` if a frame or the whole has too many bytes."""
        pause = Pause()
        in_frame, in_stream = (bytes_of_char * self._chars + _OVERHEAD for bytes_of_char in (_IN_FRAME, _IN_STREAM))
        async for piece in pieces:
            await pause.take()
            self._in_frame += len(piece)
            self._in_stream += len(piece)
            if self._in_frame > in_frame or self._in_stream > in_stream:
                raise ModelError("model_answer_too_large", most=self._chars)
            yield piece


class LimitedHttpClient(DefaultAioHttpClient):
    """An HTTP client that reads no more of a response than its limits allow.

    openai 3.54 and httpx2 2.16 have no limit for a body or a line; both read a body by `Response.aiter_bytes`, which
    decompresses at most 1 MiB at once.
    """

    def __init__(self, limits: ResponseLimits, **options: Any) -> None:
        super().__init__(**options)
        self._limits = limits

    async def send(self, *args: Any, stream: bool = False, **options: Any) -> Response:
        response = await super().send(*args, stream=True, **options)
        meter = response.extensions[METER] = ResponseMeter(self._limits)
        read = response.aiter_bytes
        response.aiter_bytes = lambda chunk_size=None: meter.count(read(chunk_size))
        if not stream:
            try:
                await response.aread()
            except BaseException:
                await response.aclose()
                raise
        return response
