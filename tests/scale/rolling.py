"""A restart of all services, one after the other, while people talk: each answer comes to its end."""

import asyncio
import random
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager

from tests.chaos.checks.stored import ENDED, Stored
from tests.chaos.people import person
from tests.chaos.plays import Plays
from tests.chaos.record import Record
from tests.scale.system import Scaled
from tests.waiting import until

_END_SECONDS = 60
_START_SECONDS = 120


Play = Callable[[Plays], Awaitable[object]]


@asynccontextmanager
async def people_talk(scaled: Scaled, count: int, play: Play) -> AsyncIterator[Record]:
    """For as long as the block; each does at least one thing after it."""
    record, done = Record(), asyncio.Event()

    async def talk(number: int) -> None:
        async with person(scaled.url, record, random.Random(number), number, Plays) as begin:
            plays = await begin()
            while not done.is_set():
                await play(plays)
            await plays.plain()

    async with asyncio.TaskGroup() as tasks:
        for number in range(count):
            tasks.create_task(talk(number))
        try:
            yield record
        finally:
            done.set()


async def restart(scaled: Scaled, names: Sequence[str]) -> None:
    """These at once; returns when requests come to them again."""

    async def one(name: str) -> None:
        service, before = scaled.services[name], scaled.proxy.times_up(name)
        assert await asyncio.to_thread(service.end, timeout=_END_SECONDS) == 0, name
        service.start()
        await until(lambda: scaled.proxy.times_up(name) > before, seconds=_START_SECONDS)

    await asyncio.gather(*map(one, names))


def outcomes(scaled: Scaled) -> Counter[str]:
    """Of all runs that have ended."""
    runs = Stored(scaled.cluster.admin_url).runs.values()
    return Counter(run["status"] for run in runs if run["status"] in ENDED)
