"""Repeats work in the background."""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress

import psycopg

from common.database.transactions import DatabaseUnavailable

log = logging.getLogger(__name__)


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
            log.warning("sweep failed: %s", error)
        except Exception:
            log.exception("sweep failed")
        await asyncio.sleep(every_seconds)
