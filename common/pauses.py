"""Pauses in long work on the event loop."""

import asyncio
import time
from collections.abc import AsyncIterator, Iterable
from typing import TypeVar

T = TypeVar("T")

_WORK_SECONDS = 0.002  # others wait for a few parts of as much work, and a pause costs a hundredth of it


class Pauses:
    """Serves others between two parts of long work, if it has gone on for a while."""

    def __init__(self) -> None:
        self._ended_at = time.perf_counter()

    async def take(self) -> None:
        if time.perf_counter() - self._ended_at >= _WORK_SECONDS:
            await asyncio.sleep(0)
            self._ended_at = time.perf_counter()


async def with_pauses(parts: Iterable[T]) -> AsyncIterator[T]:
    """Yields what an iterable yields; others are served between two of it."""
    pauses = Pauses()
    for part in parts:
        yield part
        await pauses.take()
