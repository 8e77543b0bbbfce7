"""How large and how late a response of a model may be."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from backend.model.failures.errors import ModelError

if TYPE_CHECKING:  # the check of the settings does without a client
    from httpx2 import Response

_OVERHEAD = 2**21  # bytes of a frame in addition to its text
_LOADING_SECONDS, _PROGRESS_SECONDS = 1.0, 5.0  # between requests to a server that loads its model; between messages
_IN_STREAM = 100  # bytes of a character: servers send a frame of about 400 bytes for each token of 4 characters


@dataclass(frozen=True)
class ResponseLimits:
    """`chars` are the characters of text, reasoning and tool calls of one response."""

    chars: int = 400_000
    first_token_seconds: float = 300
    silence_seconds: float = 120

    def check_bytes(self, received: int, *, bytes_of_char: int) -> None:
        if received > bytes_of_char * self.chars + _OVERHEAD:
            raise ModelError("model_answer_too_large", most=self.chars)

    async def limit_body(self, response: "Response") -> None:
        """Makes reading a response raise `ModelError` above the limit, as a hook of the HTTP client.

        openai 3.54 and httpx2 2.16 have no limit for a body or a line; both read a body by `Response.aiter_bytes`,
        which decompresses at most 1 MiB at once.
        """
        read = response.aiter_bytes

        async def read_limited(chunk_size: int | None = None) -> AsyncGenerator[bytes]:
            received = 0
            async for piece in read(chunk_size):
                received += len(piece)
                self.check_bytes(received, bytes_of_char=_IN_STREAM)
                yield piece

        response.aiter_bytes = read_limited


class LoadingWait:
    """Waits for a server that loads its model, so many seconds since `began` in all, with the time for a response.

    `on_progress` gets what the user reads.
    """

    def __init__(self, seconds: float, on_progress: Callable[[str], None], began: float) -> None:
        self._seconds, self._on_progress, self._began = seconds, on_progress, began
        self._next_progress = 0.0

    async def wait(self) -> bool:
        """Returns false if the time is over."""
        passed = asyncio.get_running_loop().time() - self._began
        if passed + 2 * _LOADING_SECONDS > self._seconds:
            return False
        if passed >= self._next_progress:
            self._on_progress(f"The model is loading, {passed:.0f} s…" if passed >= 1 else "The model is loading…")
            self._next_progress = passed + _PROGRESS_SECONDS
        await asyncio.sleep(_LOADING_SECONDS)
        return True
