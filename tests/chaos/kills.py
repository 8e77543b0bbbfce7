"""Who kills: one part after the other, while people are served and, now and then, before the last one is back."""

import asyncio
import random
import time
from collections import Counter
from collections.abc import Callable

import httpx2

from tests.chaos.system import Killable
from tests.processes import ServiceProcess

_AT_ONCE = 0.2  # so many kills of all do not wait until people are served again
_PAUSE_SECONDS = (0.1, 2.0)
_DOWN_SECONDS = (0.0, 0.6)
_MOST_REQUESTS = 24  # to the model between two kills, of which an answer takes about three
_LONGEST_PAUSE_SECONDS = 60.0  # though people are not served
_READY_SECONDS = 120.0


class Kills:
    """So many kills of `system`; `requests` counts what goes on, and `told` is called with the number of kills."""

    def __init__(
        self,
        system: Killable,
        most: int,
        chance: random.Random,
        requests: Callable[[], int],
        told: Callable[[int], None],
    ) -> None:
        self._system = system
        self._most = most
        self._chance = chance
        self._requests = requests
        self._told = told
        self._there = set[str](system.parts)
        self.of = Counter[str]()
        self.ended_by_themselves = 0

    @property
    def over(self) -> bool:
        return self.of.total() >= self._most

    async def run(self) -> None:
        """Returns when all of it is ready after the last kill."""
        async with asyncio.TaskGroup() as starts:
            while not self.over:
                await self._until_it_hurts()
                while not self._there:
                    await asyncio.sleep(0.02)
                part = self._chance.choice(sorted(self._there - self.of.keys() or self._there))  # each once, then any
                self._there.remove(part)
                self._system.kill(part, self._chance)
                self.of[part] += 1
                self._told(self.of.total())
                starts.create_task(self._start(part, self._chance.uniform(*_DOWN_SECONDS)))

    async def _until_it_hurts(self) -> None:
        await asyncio.sleep(self._chance.uniform(*_PAUSE_SECONDS))
        if self._chance.random() < _AT_ONCE:
            return
        enough = self._requests() + self._chance.randrange(_MOST_REQUESTS)
        latest = time.monotonic() + _LONGEST_PAUSE_SECONDS
        while self._requests() < enough and time.monotonic() < latest:
            await asyncio.sleep(0.01)

    async def _start(self, part: str, after_seconds: float) -> None:
        await asyncio.sleep(after_seconds)
        await asyncio.to_thread(self._system.start, part)
        if (service := self._system.service(part)) is not None:
            await self._until_ready(part, service)
        self._there.add(part)

    async def _until_ready(self, part: str, service: ServiceProcess) -> None:
        async with asyncio.timeout(_READY_SECONDS), httpx2.AsyncClient(base_url=service.url, trust_env=False) as http:
            while not await _is_ready(http):
                assert service.process is not None
                if service.process.poll() is not None:  # as a service does whose workers die too often
                    self.ended_by_themselves += 1
                    await asyncio.to_thread(self._system.start, part)
                await asyncio.sleep(0.05)


async def _is_ready(http: httpx2.AsyncClient) -> bool:
    """`/ready` of one that is being killed, or whose database is, may break off anyhow."""
    try:
        return (await http.get("/ready", timeout=5)).status_code == 200
    except httpx2.TransportError:
        return False
