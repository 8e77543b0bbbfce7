"""How often messages that grow are stored."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any

from backend.conversations.records import Entry
from backend.runs.executor import Executor
from tests.waiting import until


class SlowDatabase:
    """Notes whose messages are stored; for each user it takes so many seconds. The messages grow at once again."""

    def __init__(self, seconds: dict[str, float]) -> None:
        self.stored: list[str] = []
        self.runs: dict[str, Any] = {}
        self._seconds = seconds

    @asynccontextmanager
    async def transaction(self, user_id: str) -> AsyncIterator[Any]:
        self.stored.append(user_id)
        await asyncio.sleep(self._seconds[user_id])
        yield self
        self.runs[user_id].growing["msg_1"] = Entry("run_1", "msg_1", "assistant_message", complete=False)

    async def execute(self, *args: Any, **values: Any) -> None:
        pass


async def notify_nobody() -> None:
    pass


async def test_all_are_stored_each_second_also_if_it_takes_long_for_those_that_are_followed() -> None:
    streams = SimpleNamespace(live={}, followed={"followed"}, notify_followers=notify_nobody)
    database = SlowDatabase({"followed": 0.4, "other": 0})
    dependencies: Any = SimpleNamespace(database=database, streams=streams)
    executor = Executor(dependencies)
    for name in ("followed", "other"):
        run = SimpleNamespace(id=name, user_id=name, conversation_id="thr_1", top_run_id=name, process_id=1)
        growing = {"msg_1": Entry(name, "msg_1", "assistant_message", complete=False)}
        live: Any = SimpleNamespace(run=run, lock=asyncio.Lock(), growing=growing)
        executor.live[name] = database.runs[name] = live
    storing = asyncio.create_task(executor.store_growth())
    await until(lambda: database.stored.count("other") > 2)
    storing.cancel()
    # Half a second each, so that two or three come before the second is over, and fewer on a busy machine.
    assert max(map(len, "".join(name[0] for name in database.stored).split("o"))) <= 3, database.stored
