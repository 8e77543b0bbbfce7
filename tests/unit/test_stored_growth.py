"""How often messages that grow are stored."""

import asyncio
import time
from itertools import pairwise
from types import SimpleNamespace
from typing import Any

from backend.runs.executor import Executor


class SlowRecorder:
    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self.times = list[float]()

    async def store_growth(self) -> None:
        self.times.append(time.monotonic())
        await asyncio.sleep(self._seconds)


async def notify_nobody() -> None:
    pass


async def test_all_are_stored_each_second_also_if_it_takes_long_for_those_that_are_followed() -> None:
    streams = SimpleNamespace(live={}, followed={"followed"}, notify_followers=notify_nobody)
    dependencies: Any = SimpleNamespace(database=None, streams=streams)
    executor = Executor(dependencies)
    recorders = {"followed": SlowRecorder(0.4), "other": SlowRecorder(0)}
    for name, recorder in recorders.items():
        live: Any = SimpleNamespace(run=SimpleNamespace(id=name), recorders=[recorder])
        executor.live[name] = live
    storing = asyncio.create_task(executor.store_growth())
    await asyncio.sleep(3)
    storing.cancel()
    times = recorders["other"].times
    assert len(times) > 1
    assert max(later - earlier for earlier, later in pairwise(times)) < 2
