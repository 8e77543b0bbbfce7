"""Repeats work in the background, and confirms observations by repeating them."""

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Hashable, Set
from contextlib import asynccontextmanager, suppress
from typing import Generic, TypeVar

import psycopg

from common.database.transactions import DatabaseUnavailable

logger = logging.getLogger(__name__)

Item = TypeVar("Item", bound=Hashable)

CONFIRMATION_SECONDS = 10.0
"""How long a process must look dead, or a run without its process, before the run is ended."""


class Confirmation(Generic[Item]):
    """Confirms items that were observed twice, `seconds` apart, and in every observation between."""

    def __init__(self, seconds: float = CONFIRMATION_SECONDS) -> None:
        self._seconds = seconds
        self._first_observed: dict[Item, float] = {}

    def observe(self, observed: Set[Item], *, among: Set[Item] | None = None) -> set[Item]:
        """Returns the confirmed items. `among` has the items that were looked at, by default all."""
        now = time.monotonic()
        for item in self._first_observed.keys() - observed:
            if among is None or item in among:
                del self._first_observed[item]
        return {item for item in observed if now - self._first_observed.setdefault(item, now) >= self._seconds}

    def clear(self) -> None:
        self._first_observed.clear()


@asynccontextmanager
async def run_sweeps(sweep: Callable[[], Awaitable[object]], *, every_seconds: float) -> AsyncIterator[None]:
    """Calls `sweep` repeatedly while the block runs; errors are logged."""
    task = asyncio.create_task(_repeat(sweep, every_seconds), name="sweep")
    try:
        yield
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


async def _repeat(sweep: Callable[[], Awaitable[object]], every_seconds: float) -> None:
    while True:
        try:
            await sweep()
        except (DatabaseUnavailable, psycopg.Error) as error:
            logger.warning("sweep failed: %s", error)
        except Exception:
            logger.exception("sweep failed")
        await asyncio.sleep(every_seconds)
