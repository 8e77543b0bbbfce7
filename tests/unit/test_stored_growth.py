"""How often messages that grow are stored."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Collection, Sequence
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


class Notified:
    """The streams of an executor; notes which runs' followers were notified."""

    def __init__(self, followed: set[str]) -> None:
        self.live: dict[str, Any] = {}
        self.followed = followed
        self.notified: list[str] = []

    async def notify_followers(self, unstored: Collection[str]) -> None:
        self.notified += self.followed.difference(unstored)


@asynccontextmanager
async def storing(database: SlowDatabase, followed: set[str], names: Sequence[str]) -> AsyncIterator[Notified]:
    """Stores messages of a run of each user, which has the user's name."""
    streams = Notified(followed)
    dependencies: Any = SimpleNamespace(database=database, streams=streams)
    executor = Executor(dependencies)
    for name in names:
        run = SimpleNamespace(id=name, user_id=name, conversation_id="thr_1", top_run_id=name, process_id=1)
        growing = {"msg_1": Entry(name, "msg_1", "assistant_message", complete=False)}
        live: Any = SimpleNamespace(run=run, lock=asyncio.Lock(), growing=growing, unstored_tokens=Counter[str]())
        executor.live[name] = database.runs[name] = live
    task = asyncio.create_task(executor.store_growth())
    try:
        yield streams
    finally:
        task.cancel()
        await asyncio.wait([task])
        assert task.cancelled()


async def test_all_are_stored_each_second_also_if_it_takes_long_for_those_that_are_followed() -> None:
    database = SlowDatabase({"followed": 0.4, "other": 0})
    async with storing(database, {"followed"}, ["followed", "other"]):
        await until(lambda: database.stored.count("other") > 2)
    # Half a second each, so that two or three come before the second is over, and fewer on a busy machine.
    assert max(map(len, "".join(name[0] for name in database.stored).split("o"))) <= 3, database.stored


async def test_a_user_who_waits_for_the_database_delays_no_other() -> None:
    database = SlowDatabase({"eve": 3_600, "ada": 0})
    async with storing(database, {"eve", "ada"}, ["eve", "ada"]) as streams:
        await until(lambda: streams.notified.count("ada") > 2)
    assert database.stored.count("ada") > 2
    assert database.stored.count("eve") == 1
    assert "eve" not in streams.notified, "followers would read the row without the change"
