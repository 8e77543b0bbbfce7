"""Kills parts of a system in random order, mostly while users are served and sometimes before the last one is back."""

import asyncio
import random
import time
from collections import Counter
from collections.abc import Callable

import httpx2

from tests.chaos.system import KillableSystem
from tests.processes import ServiceProcess
from tests.serving import http_client

_IMMEDIATE_SHARE = 0.2  # of the kills do not wait until users are served again
_PAUSE_SECONDS = (0.1, 2.0)
_DOWN_SECONDS = (0.0, 0.6)
_MAX_REQUESTS = 24  # to the model between two kills; an answer takes about three
_MAX_WAIT_SECONDS = 60.0  # for requests, if users are not served
_READY_SECONDS = 120.0


class Killer:
    """Kills parts of `system` until the limit; `count_requests` returns the requests to the model so far."""

    def __init__(
        self,
        system: KillableSystem,
        limit: int,
        rng: random.Random,
        count_requests: Callable[[], int],
        on_kill: Callable[[int], None],
    ) -> None:
        self._system = system
        self._limit = limit
        self._rng = rng
        self._count_requests = count_requests
        self._on_kill = on_kill
        self._running = set[str](system.parts)
        self.kills = Counter[str]()

    @property
    def is_finished(self) -> bool:
        return self.kills.total() >= self._limit

    async def run(self) -> None:
        """Returns when all parts are ready after the last kill."""
        async with asyncio.TaskGroup() as starts:
            while not self.is_finished:
                await self._wait_for_load()
                while not self._running:
                    await asyncio.sleep(0.02)
                # Each part is killed once before any is killed again.
                part = self._rng.choice(sorted(self._running - self.kills.keys() or self._running))
                self._running.remove(part)
                self._system.kill(part)
                self.kills[part] += 1
                self._on_kill(self.kills.total())
                starts.create_task(self._start(part, self._rng.uniform(*_DOWN_SECONDS)))

    async def _wait_for_load(self) -> None:
        """Waits for a random number of model requests, so that the next kill interrupts work."""
        await asyncio.sleep(self._rng.uniform(*_PAUSE_SECONDS))
        if self._rng.random() < _IMMEDIATE_SHARE:
            return
        awaited = self._count_requests() + self._rng.randrange(_MAX_REQUESTS)
        deadline = time.monotonic() + _MAX_WAIT_SECONDS
        while self._count_requests() < awaited and time.monotonic() < deadline:
            await asyncio.sleep(0.01)

    async def _start(self, part: str, after_seconds: float) -> None:
        await asyncio.sleep(after_seconds)
        await asyncio.to_thread(self._system.start, part)
        if (service := self._system.service(part)) is not None:
            await _wait_until_ready(service)
        self._running.add(part)


async def _wait_until_ready(service: ServiceProcess) -> None:
    async with asyncio.timeout(_READY_SECONDS), http_client(service.url) as http:
        while not await _is_ready(http):
            await asyncio.sleep(0.05)


async def _is_ready(http: httpx2.AsyncClient) -> bool:
    try:
        return (await http.get("/ready", timeout=5)).status_code == 200
    except httpx2.TransportError:  # the service, or its database, is being killed
        return False
