"""Where a run goes on that was waiting, here or in another process."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest

from backend.turn.following.publisher import Publisher
from backend.turn.log import Grown, Log, StepBegun
from backend.turn.run import Run
from service.database import create_engine
from tests.backend.conftest import Rows
from tests.waiting import until

pytestmark = pytest.mark.long

NEWEST = "SELECT payload->>'event' AS event, seq FROM run_events ORDER BY seq DESC LIMIT 1"
RUNNING = """
INSERT INTO runs (id, user_id, conversation_id, status, followed) VALUES (%s, %s, %s, 'running', true)
"""
RUN = Run("run_1", "alice", "thr_1")
RESUMED = replace(RUN, resumed=True)


@asynccontextmanager
async def publishing(database_url: str) -> AsyncIterator[Publisher]:
    engine = create_engine(database_url)
    publisher = Publisher(engine, every_seconds=0.02)
    running = asyncio.create_task(publisher.run())
    try:
        yield publisher
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        await engine.dispose()


def begun(rows: Rows) -> None:
    rows("INSERT INTO conversations (id, user_id, status) VALUES ('thr_1', 'alice', '{}')")
    rows(RUNNING, "run_1", "alice", "thr_1")


async def test_a_run_that_waited_goes_on_behind_what_was_said_before(database_url: str, rows: Rows) -> None:
    begun(rows)
    async with publishing(database_url) as one, publishing(database_url) as other:
        before, after = Log(), Log()
        one.follow(RUN, before, lambda: None)
        other.follow(RESUMED, after, lambda: "completed")
        after.append(Grown("msg_1", 0, "after"))
        after.close()
        before.append(StepBegun())
        await until(lambda: rows(NEWEST))
        await asyncio.sleep(0.2)
        assert rows(NEWEST) == [{"event": "StepBegun", "seq": 1}], "the process before may have more to say"
        before.close()
        await until(lambda: rows(NEWEST)[0]["event"] == "Ended")
    told = [row["event"] for row in rows("SELECT payload->>'event' AS event FROM run_events ORDER BY seq")]
    assert told == ["StepBegun", "Paused", "Grown", "Ended"]


async def test_a_process_that_died_before_it_had_said_all_is_not_waited_for(database_url: str, rows: Rows) -> None:
    begun(rows)
    rows("INSERT INTO run_events VALUES ('alice', 'run_1', 1, '{\"event\": \"Grown\"}')")
    async with publishing(database_url) as publisher:
        log = Log()
        publisher.follow(RESUMED, log, lambda: "completed")
        log.close()
        await until(lambda: rows(NEWEST) == [{"event": "Ended", "seq": 2}], seconds=10)


async def test_a_run_goes_on_in_the_process_that_it_has_waited_in(database_url: str, rows: Rows) -> None:
    begun(rows)
    async with publishing(database_url) as publisher:
        logs = [Log(), Log()]
        for log in logs:
            publisher.follow(RUN if log is logs[0] else RESUMED, log, lambda: None)
            log.append(StepBegun())
            log.close()
        await until(lambda: rows(NEWEST) == [{"event": "Paused", "seq": 4}])
        await until(lambda: not publisher._followed)


async def test_a_run_whose_row_is_being_changed_keeps_no_other_back(database_url: str, rows: Rows) -> None:
    begun(rows)
    rows("INSERT INTO conversations (id, user_id, status) VALUES ('thr_2', 'bob', '{}')")
    rows(RUNNING, "run_2", "bob", "thr_2")
    async with publishing(database_url) as publisher:
        logs = {run: Log() for run in (RUN, Run("run_2", "bob", "thr_2"))}
        rows("BEGIN")
        rows("UPDATE runs SET heartbeat_at = now() WHERE id = 'run_1'")
        for run, log in logs.items():
            publisher.follow(run, log, lambda: None)
            log.append(StepBegun())
        await until(lambda: rows("SELECT 1 FROM run_events WHERE run_id = 'run_2'"))
        assert rows("SELECT 1 FROM run_events WHERE run_id = 'run_1'") == []
        rows("COMMIT")
        await until(lambda: rows("SELECT 1 FROM run_events WHERE run_id = 'run_1'"))
