"""What a turn costs of processor time, over all parts, with one backend and with two.

Of several at once two backends have half each, and a process takes more for each turn the fewer it has at once.
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
from tests.scale.system import Scaled

_TICKS = os.sysconf("SC_CLK_TCK")
_SETTLED_SECONDS = 3.0  # until HAProxy has seen who is there, and nobody warms up any more


class Cost(NamedTuple):
    """Of a turn, in milliseconds of processor time."""

    services: float
    database: float
    between: float
    seconds: float  # of the whole round

    @property
    def all(self) -> float:
        return self.services + self.database + self.between


async def compare(scaled: Scaled, *, turns: int, rounds: int, at_once: int) -> tuple[Cost, Cost]:
    """The medians with the first backend alone and with both, measured in turn."""
    found: dict[int, list[Cost]] = {1: [], 2: []}
    async with ChatKit(scaled.url) as chat:
        await _talk(chat, turns, at_once)
        for _ in range(rounds):
            for backends in (1, 2):
                await _let_serve(scaled, backends)
                await _talk(chat, turns, at_once)  # what is done the first time is done
                found[backends].append(await _measured(scaled, chat, turns, at_once))
    return _typical(found[1]), _typical(found[2])


def _typical(found: Sequence[Cost]) -> Cost:
    services, database, between, seconds = (statistics.median(values) for values in zip(*found, strict=True))
    return Cost(services, database, between, seconds)


async def _let_serve(scaled: Scaled, backends: int) -> None:
    second = scaled.services["backend-2"]
    runs = second.process is not None and second.process.poll() is None
    if backends == 1 and runs:
        await asyncio.to_thread(second.end)
    elif backends == 2 and not runs:
        second.start()
        await asyncio.to_thread(second.wait_until_ready)
    await asyncio.sleep(_SETTLED_SECONDS)


async def _measured(scaled: Scaled, chat: ChatKit, turns: int, at_once: int) -> Cost:
    before, began = _spent(scaled), time.monotonic()
    await _talk(chat, turns, at_once)
    took = time.monotonic() - began
    services, database, between = (
        (now - then) * 1000 / turns for then, now in zip(before, _spent(scaled), strict=True)
    )
    return Cost(services, database, between, took)


async def _talk(chat: ChatKit, turns: int, at_once: int) -> None:
    """So many conversations of one message, which a tool is called for."""
    left = iter(range(turns))

    async def one_after_the_other() -> None:
        for number in left:
            answer = await chat.say(f"add task {number}")
            assert answer.error is None, answer.error

    await asyncio.gather(*(one_after_the_other() for _ in range(at_once)))


def _spent(scaled: Scaled) -> tuple[float, float, float]:
    """Seconds of processor time so far, of services, PostgreSQL, and what stands between."""
    services = [service.process for service in scaled.services.values()]
    between = [scaled.proxy.process, scaled.pooler.process]
    return (
        sum(_of(process.pid) for process in services if process and process.poll() is None),
        _of(scaled.cluster.process.pid),
        sum(_of(process.pid) for process in between if process),
    )


def _of(pid: int) -> float:
    """With its children, those that have ended included."""
    own = (Path("/proc") / str(pid) / "stat").read_text().rpartition(")")[2].split()
    return sum(map(int, own[11:15])) / _TICKS + sum(_of(child) for child in _children(pid))


def _children(pid: int) -> Iterator[int]:
    with suppress(FileNotFoundError):
        yield from map(int, (Path("/proc") / str(pid) / "task" / str(pid) / "children").read_text().split())
