"""How often messages that grow are stored."""

import asyncio
from types import SimpleNamespace
from typing import Any

from backend.runs.executor import Executor
from tests.waiting import until


class SlowRecorder:
    def __init__(self, name: str, seconds: float, stored: list[str]) -> None:
        self._name = name
        self._seconds = seconds
        self._stored = stored

    async def store_growth(self) -> None:
        self._stored.append(self._name)
        await asyncio.sleep(self._seconds)


async def notify_nobody() -> None:
    pass


async def test_all_are_stored_each_second_also_if_it_takes_long_for_those_that_are_followed() -> None:
    streams = SimpleNamespace(live={}, followed={"followed"}, notify_followers=notify_nobody)
    dependencies: Any = SimpleNamespace(database=None, streams=streams)
    executor = Executor(dependencies)
    stored = list[str]()
    for name, seconds in (("followed", 0.4), ("other", 0)):
        live: Any = SimpleNamespace(run=SimpleNamespace(id=name), recorders=[SlowRecorder(name, seconds, stored)])
        executor.live[name] = live
    storing = asyncio.create_task(executor.store_growth())
    await until(lambda: stored.count("other") > 2)
    storing.cancel()
    # Half a second each, so that two or three come before the second is over, and fewer on a busy machine.
    assert max(map(len, "".join(name[0] for name in stored).split("o"))) <= 3, stored
