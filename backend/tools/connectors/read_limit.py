"""Limits what another MCP server may send, whichever way, before any of it is parsed."""

import asyncio
import time
from collections.abc import Iterator
from contextlib import contextmanager

UNASKED, LIST, RESULT = 256_000, 1_000_000, 2_000_000
"""Bytes that a server may send at any time, in addition for the list of its tools, and for the result of a call."""

_PER_SECOND = UNASKED / 60  # by so much the first grows again
# What costs more to parse than its bytes counts as more of them: 1 MB of empty lists would hold the loop for 0.3 s.
_COSTS = {b"[": 60, b"{": 60, b"\n": 30, b",": 6, b'"': 6}


class TooMuchSent(Exception):
    """It sent too much: the list of its tools can have 1 MB, and the result of a call 2 MB."""

    def __init__(self, message: str = "") -> None:
        super().__init__(message or "sent too much: a list of tools can have 1 MB, and the result of a call 2 MB")


class ReadLimit:
    """Counts what one connection receives. `failure` is set with the error when it is too much."""

    def __init__(self) -> None:
        self.failure: asyncio.Future[TooMuchSent] = asyncio.get_running_loop().create_future()
        self._most = self._left = float(UNASKED)
        self._counted_at = time.monotonic()

    @contextmanager
    def expect(self, size: int) -> Iterator[None]:
        """Allows this much more while the block runs."""
        self._most += size
        self._left += size
        try:
            yield
        finally:
            self._most -= size
            self._left = min(self._left, self._most)

    def count(self, data: bytes) -> None:
        """Raises `TooMuchSent` if the server has sent more than it may."""
        now = time.monotonic()
        self._left = min(self._most, self._left + (now - self._counted_at) * _PER_SECOND)
        self._counted_at = now
        self._left -= len(data) + sum(data.count(sign) * cost for sign, cost in _COSTS.items())
        if self._left < 0:
            self.fail(TooMuchSent())

    def fail(self, error: TooMuchSent) -> None:
        """Ends the connection for a reason, which is the rest of a sentence about the server."""
        if not self.failure.done():
            self.failure.set_result(error)
        raise error
