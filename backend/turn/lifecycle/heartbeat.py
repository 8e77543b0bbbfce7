"""Keeps the leases of a process's turns, ends those of processes that are gone, and hears when a turn is to stop."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from typing import Generic, TypeVar

from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeout
from sqlalchemy.ext.asyncio import AsyncEngine

from backend.conversation.runs import events, leases
from backend.conversation.runs.leases import Outcome
from backend.turn.lifecycle import outcomes
from service.database import listen, system_transaction

logger = logging.getLogger(__name__)

_KEPT_MINUTES = 10  # what a run has said that has ended: who was reading it may come back

Turn = TypeVar("Turn")


class Heartbeat(Generic[Turn]):
    """Beats for the runs whose ids are in `running`, and calls `stop` for one that lost its lease or was asked to.

    A run that waited may have gone on in another turn by then: `stop` is called with the one that the beat was for. It
    calls `hear` for one that is told something, `follow` for one that is to be published, and each function of `heard`
    with what is told on its channel.
    """

    def __init__(
        self,
        engine: AsyncEngine,
        running: Mapping[str, Turn],
        stop: Callable[[Turn, Outcome], None],
        hear: Callable[[Turn], object] = lambda _: None,
        follow: Callable[[Turn], object] = lambda _: None,
        heard: Mapping[str, Callable[[str], object]] | None = None,
        *,
        every_seconds: float,
        lease_seconds: float,
    ) -> None:
        self._engine = engine
        self._running = running
        self._stop = stop
        self._hear = hear
        self._follow = follow
        self._heard = heard or {}
        self._every_seconds = every_seconds
        self._lease_seconds = lease_seconds
        self._woken = asyncio.Event()

    async def run(self) -> None:
        """Go on until cancelled, whatever becomes of the database."""
        async with asyncio.TaskGroup() as both:  # whose end, unlike that of a gather, is the end of both
            both.create_task(self._beat())
            both.create_task(self._listen())
            both.create_task(self._sweep())

    async def _beat(self) -> None:
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(self._every_seconds):
                    await self._woken.wait()
            self._woken.clear()
            if self._running:
                await _tried(self._beat_once())

    async def _beat_once(self) -> None:
        beating = {**self._running}
        async with system_transaction(self._engine) as session:
            held = await leases.beat(session, beating)
        for run_id, turn in beating.items():
            asked = held.get(run_id)
            if asked is None:
                self._stop(turn, "interrupted")
                continue
            if asked.to_be_followed:
                self._follow(turn)
            if asked.to_stop:
                self._stop(turn, "cancelled")

    async def _sweep(self) -> None:
        while True:
            await _tried(outcomes.end_stale(self._engine, self._running))
            await _tried(self._forget())
            await asyncio.sleep(self._lease_seconds)

    async def _forget(self) -> None:
        async with system_transaction(self._engine) as session:
            await events.sweep(session, minutes=_KEPT_MINUTES)

    async def _listen(self) -> None:
        """Beat at once when a turn is asked something; without this, it would be seen at the next beat."""

        def asked(run_id: str) -> None:
            if (turn := self._running.get(run_id)) is not None:
                self._hear(turn)
                self._woken.set()

        channels = {leases.ASKED_CHANNEL: asked, **self._heard}
        await listen(self._engine, channels, again_seconds=self._every_seconds)


async def _tried(work: Awaitable[None]) -> None:
    try:
        await work
    except (DBAPIError, PoolTimeout, OSError) as error:
        logger.warning("the heartbeat failed, it is tried again: %s", type(error).__name__)
    except Exception:
        logger.exception("the heartbeat failed, it is tried again")
