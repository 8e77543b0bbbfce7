"""Measures the processor time of a run, over all processes, with one backend and with two.

With two backends each has half of the concurrent runs, and a process with fewer of them needs more time for each.
"""

import asyncio
import os
import statistics
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from tests.chatkit_client import ChatKit
from tests.scale.system import ScaledSystem

_TICKS = os.sysconf("SC_CLK_TCK")
_SETTLING_SECONDS = 3.0  # until HAProxy knows which backends are up, and their start is over


class RunCost(NamedTuple):
    """Milliseconds of processor time per run."""

    services: float
    database: float
    proxies: float
    seconds: float  # of the whole round

    @property
    def total(self) -> float:
        return self.services + self.database + self.proxies


async def compare(system: ScaledSystem, *, runs: int, rounds: int, concurrency: int) -> tuple[RunCost, RunCost]:
    """Returns the medians with the first backend alone and with both, measured alternately."""
    costs: dict[int, list[RunCost]] = {1: [], 2: []}
    async with ChatKit(system.url) as chat:
        await _talk(chat, runs, concurrency)
        for _ in range(rounds):
            for backends in (1, 2):
                await _set_backends(system, backends)
                await _talk(chat, runs, concurrency)  # warms up the services
                costs[backends].append(await _measure(system, chat, runs, concurrency))
    return _compute_medians(costs[1]), _compute_medians(costs[2])


def _compute_medians(costs: Sequence[RunCost]) -> RunCost:
    services, database, proxies, seconds = (statistics.median(values) for values in zip(*costs, strict=True))
    return RunCost(services, database, proxies, seconds)


async def _set_backends(system: ScaledSystem, backends: int) -> None:
    second = system.services["backend-2"]
    if backends == 1 and second.is_running:
        await asyncio.to_thread(second.end)
    elif backends == 2 and not second.is_running:
        second.start()
        await asyncio.to_thread(second.wait_until_ready)
    await asyncio.sleep(_SETTLING_SECONDS)


async def _measure(system: ScaledSystem, chat: ChatKit, runs: int, concurrency: int) -> RunCost:
    before, start = _read_times(system), time.monotonic()
    await _talk(chat, runs, concurrency)
    seconds = time.monotonic() - start
    services, database, proxies = (
        (now - then) * 1000 / runs for then, now in zip(before, _read_times(system), strict=True)
    )
    return RunCost(services, database, proxies, seconds)


async def _talk(chat: ChatKit, runs: int, concurrency: int) -> None:
    """Starts a conversation for each run, whose message adds a task."""
    numbers = iter(range(runs))

    async def talk_in_sequence() -> None:
        for number in numbers:
            answer = await chat.say(f"add task {number}")
            assert answer.error is None, answer.error

    await asyncio.gather(*(talk_in_sequence() for _ in range(concurrency)))


def _read_times(system: ScaledSystem) -> tuple[float, float, float]:
    """Returns the seconds of processor time so far: of the services, of PostgreSQL, of HAProxy and PgBouncer."""
    services = [service.process for service in system.services.values() if service.is_running]
    proxies = [system.proxy.process, system.pooler.process]
    return (
        sum(_read_time(process.pid) for process in services if process),
        _read_time(system.cluster.process.pid),
        sum(_read_time(process.pid) for process in proxies if process),
    )


def _read_time(pid: int) -> float:
    """Includes the children, also those that have ended."""
    stat = (Path("/proc") / str(pid) / "stat").read_text().rpartition(")")[2].split()
    return sum(map(int, stat[11:15])) / _TICKS + sum(map(_read_time, _list_children(pid)))


def _list_children(pid: int) -> Iterator[int]:
    with suppress(FileNotFoundError):
        yield from map(int, (Path("/proc") / str(pid) / "task" / str(pid) / "children").read_text().split())
