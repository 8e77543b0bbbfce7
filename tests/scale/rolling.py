"""Restarts services behind HAProxy while simulated users talk."""

import asyncio
import random
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager

from tests.chaos.checks.stored_rows import ENDED, StoredRows
from tests.chaos.client_record import ClientRecord
from tests.chaos.scenarios import Scenarios, simulate_user
from tests.scale.system import ScaledSystem
from tests.waiting import until

_END_SECONDS = 60
_START_SECONDS = 120

Scenario = Callable[[Scenarios], Awaitable[object]]


@asynccontextmanager
async def simulate_users(system: ScaledSystem, count: int, scenario: Scenario) -> AsyncIterator[ClientRecord]:
    """Repeats a scenario during the block; afterwards each user adds and completes one more task."""
    record, done = ClientRecord(), asyncio.Event()

    async def talk(number: int) -> None:
        async with simulate_user(system.url, record, random.Random(number), number) as start_conversation:
            scenarios = await start_conversation()
            while not done.is_set():
                await scenario(scenarios)
            await scenarios.add_and_complete()

    async with asyncio.TaskGroup() as tasks:
        for number in range(count):
            tasks.create_task(talk(number))
        try:
            yield record
        finally:
            done.set()


async def restart(system: ScaledSystem, names: Sequence[str]) -> None:
    """Restarts these services at once; returns when HAProxy sends them requests again."""

    async def restart_one(name: str) -> None:
        service, before = system.services[name], system.proxy.count_up(name)
        assert await asyncio.to_thread(service.end, timeout=_END_SECONDS) == 0, name
        service.start()
        await until(lambda: system.proxy.count_up(name) > before, seconds=_START_SECONDS)

    await asyncio.gather(*map(restart_one, names))


def count_outcomes(system: ScaledSystem) -> Counter[str]:
    """Counts the runs that have ended by their status."""
    runs = StoredRows(system.cluster.admin_url).runs.values()
    return Counter(run["status"] for run in runs if run["status"] in ENDED)
