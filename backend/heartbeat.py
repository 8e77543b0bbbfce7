"""Keeps the leases of a process's turns, ends those of processes that are gone, and hears when a turn is to stop."""

import asyncio
import logging
from collections.abc import Callable, Collection
from contextlib import suppress

import psycopg
from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeout
from sqlalchemy.ext.asyncio import AsyncEngine

from backend import leases, reports
from backend.leases import Outcome
from database import system_transaction

logger = logging.getLogger(__name__)


class Heartbeat:
    """Beats for the runs whose ids are in `running`, and calls `stop` for one that lost its lease or was asked to."""

    def __init__(
        self,
        engine: AsyncEngine,
        running: Collection[str],
        stop: Callable[[str, Outcome], None],
        *,
        every_seconds: float,
        lease_seconds: float,
    ) -> None:
        self._engine = engine
        self._running = running
        self._stop = stop
        self._every_seconds = every_seconds
        self._lease_seconds = lease_seconds
        self._woken = asyncio.Event()

    async def run(self) -> None:
        """Go on until cancelled, whatever becomes of the database."""
        async with asyncio.TaskGroup() as both:  # whose end, unlike that of a gather, is the end of both
            both.create_task(self._beat())
            both.create_task(self._listen())

    async def _beat(self) -> None:
        swept = 0.0
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(self._every_seconds):
                    await self._woken.wait()
            self._woken.clear()
            now = asyncio.get_running_loop().time()
            sweep = now - swept > self._lease_seconds
            if not self._running and not sweep:
                continue
            try:
                await self._beat_once(sweep=sweep)
                swept = now if sweep else swept
            except (DBAPIError, PoolTimeout, OSError) as error:
                logger.warning("the heartbeat failed, it is tried again: %s", type(error).__name__)
            except Exception:
                logger.exception("the heartbeat failed, it is tried again")

    async def _beat_once(self, *, sweep: bool) -> None:
        beating = tuple(self._running)
        async with system_transaction(self._engine) as session:
            held = await leases.beat(session, beating)
            ended = await leases.end_stale(session, lease_seconds=self._lease_seconds) if sweep else ()
        for run_id, conversation_id, user_id in ended:
            reports.turn_abandoned(run_id, conversation_id=conversation_id, user_id=user_id)
        for run_id in beating:
            if run_id not in held:
                self._stop(run_id, "interrupted")
            elif held[run_id]:
                self._stop(run_id, "cancelled")

    async def _listen(self) -> None:
        """Beat at once when somebody asked a turn to stop; without this, it would be seen at the next beat."""
        address = self._engine.url.set(drivername="postgresql").render_as_string(hide_password=False)
        while True:
            try:
                async with await psycopg.AsyncConnection.connect(
                    address, autocommit=True, connect_timeout=5
                ) as connection:
                    await connection.execute(f"LISTEN {leases.STOP_CHANNEL}")
                    async for notification in connection.notifies():
                        if notification.payload in self._running:
                            self._woken.set()
            except (psycopg.Error, OSError) as error:
                logger.warning("not listening for stop signals: %s", type(error).__name__)
            await asyncio.sleep(self._every_seconds)
