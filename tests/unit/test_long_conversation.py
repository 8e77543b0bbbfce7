"""Reading a conversation with very many runs."""

import asyncio
import time
import tracemalloc

import psycopg
import pytest

from backend.conversations import conversations, timeline
from backend.transcript import read_log
from common.database import Database
from tests.logins import as_admin

RUNS, MOST_SECONDS = 20_000, 0.12  # a third of what all at once take on a busy machine
BYTES_OF_RUN = 500  # without its texts; measured were 180, and with whole runs 1,200
ADD_RUNS = """
WITH conversation AS (INSERT INTO conversations (user_id, id, title) VALUES ('alice', 'thr_long', 'long'))
INSERT INTO runs (user_id, id, conversation_id, top_run_id, agent, status, ended_at, end_seq)
SELECT 'alice', 'run_' || nth, 'thr_long', 'run_' || nth, 'assistant', 'completed', now(), nextval('event_seq')
FROM generate_series(1, %s) nth"""


async def measure_holds(seconds: list[float]) -> None:
    """Adds how long the processor worked between two turns of this task."""
    while True:
        started_at = time.thread_time()
        await asyncio.sleep(0)
        seconds.append(time.thread_time() - started_at)


async def test_runs_are_loaded_without_holding_the_event_loop(database_url: str) -> None:
    with psycopg.connect(as_admin(database_url)) as connection:
        connection.execute(ADD_RUNS, [RUNS])
    longest: list[float] = []
    async with Database(database_url) as database:
        for _ in range(3):  # the processor is shared
            holds: list[float] = []
            measuring = asyncio.create_task(measure_holds(holds))
            links = await timeline.load_links(database, "alice", "thr_long")
            await asyncio.sleep(0)
            measuring.cancel()
            assert len(links) == RUNS
            assert [*links][:2] == ["run_1", "run_2"]
            longest.append(max(holds))
    assert min(longest) < MOST_SECONDS


@pytest.mark.long
async def test_an_open_log_takes_little_memory(database_url: str) -> None:
    """A user may have 32 of them open."""
    with psycopg.connect(as_admin(database_url)) as connection:
        connection.execute(ADD_RUNS, [RUNS])
    async with Database(database_url) as database:
        conversation = await conversations.find(database, "alice", "thr_long")
        log = read_log(database, "alice", conversation)
        tracemalloc.start()
        try:
            line = await anext(log)
            used, _ = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
            await log.aclose()
    assert line["event"] == "session_start"
    assert used / RUNS < BYTES_OF_RUN
