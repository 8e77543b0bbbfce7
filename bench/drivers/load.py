"""Closed-loop load: so many callers, each with its next call as soon as it has the answer to the last."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from statistics import quantiles


@dataclass(frozen=True)
class Timing:
    """One call, in seconds: to the first event and to the end."""

    first: float
    total: float


@dataclass(frozen=True)
class Load:
    timings: list[Timing]
    elapsed: float
    cpu: float = 0  # seconds that the processes in question computed, where it was asked for

    @property
    def rate(self) -> float:
        return len(self.timings) / self.elapsed

    def percentile(self, percent: int, *, first: bool = False) -> float:
        values = [timing.first if first else timing.total for timing in self.timings]
        return quantiles(values, n=100, method="inclusive")[percent - 1] if len(values) > 1 else values[0]


Call = Callable[[], Awaitable[Timing]]


async def run(call: Call, *, callers: int, seconds: float) -> Load:
    timings: list[Timing] = []
    began = time.perf_counter()

    async def caller() -> None:
        while time.perf_counter() - began < seconds:
            timings.append(await call())

    await asyncio.gather(*[caller() for _ in range(callers)])
    return Load(timings, time.perf_counter() - began)


def joined(loads: list[Load]) -> Load:
    return Load([timing for load in loads for timing in load.timings], sum(load.elapsed for load in loads))
