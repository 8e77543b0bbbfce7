"""What is written of the logs of a process, and under which numbers."""

import asyncio
import json
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest

from backend.turn.following.publisher import Followed, Publisher
from backend.turn.log import Called, Grown, Log, Paused, StepBegun
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


async def test_a_run_that_waited_goes_on_behind_what_was_told_before(database_url: str, rows: Rows) -> None:
    begun(rows)
    rows("INSERT INTO run_events VALUES ('alice', 'run_1', 1, '{}'), ('alice', 'run_1', 2, '{}')")
    async with publishing(database_url) as publisher:
        log = Log()
        log.append(StepBegun())
        log.begin_here()
        publisher.follow(replace(RUN, told=2), log, lambda: "completed")
        log.append(Grown("msg_1", 0, "after"))
        log.close()
        await until(lambda: rows(NEWEST) == [{"event": "Ended", "seq": 4}])
    assert rows("SELECT payload->>'event' AS event FROM run_events WHERE seq = 3") == [{"event": "Grown"}]


async def test_a_run_goes_on_in_the_process_that_it_has_waited_in(database_url: str, rows: Rows) -> None:
    begun(rows)
    async with publishing(database_url) as publisher:
        logs = [Log(), Log()]
        for log in logs:
            publisher.follow(RUN if log is logs[0] else replace(RUN, told=2), log, lambda: None)
            log.append(StepBegun())
            log.close()
        await until(lambda: rows(NEWEST) == [{"event": "Paused", "seq": 4}])
        await until(lambda: not publisher._followed)


async def test_what_a_run_says_when_it_begins_to_wait_has_the_numbers_that_it_is_written_with(
    database_url: str, rows: Rows
) -> None:
    begun(rows)
    async with publishing(database_url) as publisher:
        log = Log()
        publisher.follow(RUN, log, lambda: None)
        log.append(Grown("msg_1", 0, "one"))
        await until(lambda: rows(NEWEST))
        log.append(Grown("msg_1", 0, "two"))
        asking = [Called("call_1", "list_tasks", "{}"), StepBegun()]
        told = publisher.all_of(log, [*asking, Paused()])
        for event in asking:
            log.append(event)
        log.close()
        await until(lambda: rows(NEWEST) == [{"event": "Paused", "seq": 5}])
    written = rows("SELECT seq, payload FROM run_events ORDER BY seq")
    assert [(row["seq"], row["payload"]) for row in written] == [(seq, json.loads(payload)) for seq, payload in told]


async def test_whenever_a_follower_comes_each_event_has_one_number(
    database_url: str, rows: Rows, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Others come, and more is said, right before a flush, in its middle and right after it."""
    runs = [Run(f"run_{n}", "alice", f"thr_{n}") for n in range(30)]
    for run in runs:
        rows("INSERT INTO conversations (id, user_id, status) VALUES (%s, 'alice', '{}')", run.conversation_id)
        rows(RUNNING, run.id, "alice", run.conversation_id)
    logs, said = {run: Log() for run in runs}, Counter[str]()
    async with publishing(database_url) as publisher:
        waiting, flushes = iter(runs), 0

        def come() -> None:
            if (run := next(waiting, None)) is not None:
                publisher.follow(run, logs[run], lambda: "completed")
            for run, log in logs.items():
                if not log.closed:
                    log.append(Grown(f"msg_{said[run.id] // 3}", 0, f"{said[run.id]} "))
                    said[run.id] += 1

        async def among(behind: Sequence[Followed]) -> set[str]:
            nonlocal flushes
            flushes += 1
            come()
            there = await write(behind)
            come()
            return there

        write = publisher._write
        monkeypatch.setattr(publisher, "_write", among)
        come()
        await until(lambda: flushes > 20)
        for log in logs.values():
            log.close()
        await until(lambda: not publisher._followed)
    assert caplog.records == []
    for run in runs:
        told = rows("SELECT seq, payload FROM run_events WHERE run_id = %s ORDER BY seq", run.id)
        assert [row["seq"] for row in told] == list(range(1, len(told) + 1))
        assert told[-1]["payload"]["event"] == "Ended"
        words = "".join(row["payload"]["text"] for row in told[:-1]).split()
        assert words == [str(n) for n in range(said[run.id])]


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


async def test_a_run_is_given_up_for_what_holds_its_row_and_not_for_how_long_the_database_was_away(
    database_url: str, rows: Rows, monkeypatch: pytest.MonkeyPatch
) -> None:
    """When the database is back, its end is written down and published at once: one of them finds the row locked."""
    begun(rows)
    async with publishing(database_url) as publisher:
        is_away, skipped = True, 0

        async def unless_away(behind: Sequence[Followed]) -> set[str]:
            nonlocal skipped
            if is_away:
                raise OSError
            there = await write(behind)
            skipped += not there
            return there

        write = publisher._write
        monkeypatch.setattr(publisher, "_write", unless_away)
        log = Log()
        publisher.follow(RUN, log, lambda: "completed")
        log.append(Grown("msg_1", 0, "one"))
        log.close()
        await until(lambda: [one for one in publisher._followed.values() if one.ended is not None])
        [followed] = publisher._followed.values()
        assert followed.ended is not None
        followed.ended -= 10  # seconds
        rows("BEGIN")
        rows("UPDATE runs SET status = 'ended', outcome = 'completed', ended_at = now()")
        is_away = False
        await until(lambda: skipped)
        rows("COMMIT")
        await until(lambda: rows(NEWEST) == [{"event": "Ended", "seq": 2}])
