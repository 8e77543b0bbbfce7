"""Two processes send, and are killed at any moment: each alert arrives at least once, and what comes twice says so.

Most tests let every alert be sent by itself, so that many can be counted.
"""

import asyncio
import random
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tests.alerts.conftest import new_name
from tests.alerts.receiver import Receiver, run_receiver
from tests.alerts.rows import AlertRows
from tests.conftest import ROOT
from tests.logins import as_service
from tests.processes import Program, ServiceProcess
from tests.scale.pooler import run_pgbouncer

USERS = 20
BATCH = 100  # tasks of a user that are due in the same minute
SINGLY, TOGETHER = "1000", "3"
"""How many alerts of a user that are due together are sent one by one: all of a batch, and as many as users get."""

_ADD_TASKS = """
INSERT INTO tasks (user_id, id, title, due_on, due_time)
SELECT %(user)s, n, 'task ' || n, %(due)s::timestamp::date, %(due)s::timestamp::time
FROM generate_series(%(first)s::bigint, %(last)s::bigint) AS n"""
_OPEN = "SELECT count(*) AS open FROM alerts WHERE next_at IS NOT NULL"
_NOT_CLAIMED = "SELECT count(*) AS stale FROM tasks WHERE alert_stale_since IS NOT NULL OR alert_at IS NOT NULL"


class Processes:
    """Two processes that send; those that are killed are started again."""

    def __init__(self, arguments: list[str], directory: Path) -> None:
        self._command = [sys.executable, "-m", "tests.alerts.alert_process", *arguments]
        self._programs = [Program(directory / f"alerts-{number}.log") for number in range(2)]
        self.kills = 0

    def start(self) -> None:
        for program in self._programs:
            if not program.is_running:
                program.launch(self._command, cwd=ROOT)

    def kill(self, *numbers: int) -> None:
        for number in numbers:
            process = self._programs[number].process
            assert process is not None
            process.kill()
            process.wait()
            self.kills += 1
        self.start()

    def end(self) -> None:
        for program in self._programs:
            program.end()


@contextmanager
def run_processes(arguments: list[str], directory: Path) -> Iterator[Processes]:
    processes = Processes(arguments, directory)
    processes.start()
    try:
        yield processes
    finally:
        processes.end()


def add_users(rows: AlertRows, receiver: Receiver) -> list[str]:
    users = [new_name() for _ in range(USERS)]
    for user in users:
        rows.set_settings(user)
        rows.add_channel(user, "webhook", receiver.target(user))
    return users


async def run(
    rows: AlertRows, receiver: Receiver, processes: Processes, *, alerts: int, kills: int, seconds: float
) -> None:
    """Adds tasks that are due now, and kills processes each time that some were received; ends when all is sent."""
    users, rng, added, began = add_users(rows, receiver), random.Random(1), 0, time.monotonic()
    while True:
        assert time.monotonic() - began < seconds, f"{added} added, {len(receiver.received)} received"
        [counted] = rows.all(_OPEN)
        [left] = rows.all(_NOT_CLAIMED)
        if added < alerts and counted["open"] + left["stale"] < 10 * BATCH:
            user, first = users[added // BATCH % USERS], added + 1
            # A minute that has passed when the row is stored would not alert.
            due = f"{datetime.now(UTC) + timedelta(seconds=5):%Y-%m-%d %H:%M}"
            rows.execute(_ADD_TASKS, user=user, due=due, first=first, last=first + BATCH - 1)
            added += BATCH
        elif added >= alerts and not counted["open"] and not left["stale"]:
            assert processes.kills >= kills
            return
        if len(receiver.received) >= (processes.kills + 1) * alerts * 0.9 / kills:
            processes.kill(*rng.choice([(0,), (1,), (0, 1)]))
        await asyncio.sleep(0.02)


def check(rows: AlertRows, receiver: Receiver, *, alerts: int) -> dict[str, int]:
    states = Counter(row["state"] for row in rows.all("SELECT state FROM alerts"))
    assert states == {"sent": alerts}
    assert Counter(row["state"] for row in rows.all("SELECT state FROM alert_deliveries")) == {"accepted": alerts}
    stored = {row["key"] for row in rows.all("SELECT key FROM alerts")}
    received = Counter(key for _, key, _ in receiver.received)
    assert set(received) == stored
    tasks = {(path, body["task"]): key for path, key, body in receiver.received}
    assert len(tasks) == alerts, "each task has one key"
    assert {(path, body["task"], key) for path, key, body in receiver.received} == {
        (*task, key) for task, key in tasks.items()
    }
    [counted] = rows.all("SELECT sum(repetitions)::int AS repetitions, max(attempts) AS most FROM alert_deliveries")
    twice = sum(received.values()) - len(received)
    assert twice <= counted["repetitions"], "none is repeated without being counted"
    return {"received twice": twice, **counted}


@pytest.mark.long(seconds=60)
@pytest.mark.parametrize("pooled", [False, True], ids=["direct", "pooled"])
async def test_some_kills(
    rows: AlertRows, database_url: str, task_server: ServiceProcess, tmp_path: Path, pooled: bool
) -> None:
    """Also behind a pooler that gives each transaction another session."""
    async with run_receiver() as receiver:
        mcp_url = f"{task_server.url}/mcp"
        if not pooled:
            with run_processes([database_url, mcp_url, receiver.url, "true", SINGLY], tmp_path) as processes:
                await run(rows, receiver, processes, alerts=400, kills=4, seconds=120)
        else:
            with (
                run_pgbouncer(as_service(database_url)) as pooled_url,
                run_processes([pooled_url, mcp_url, receiver.url, "false", SINGLY], tmp_path) as processes,
            ):
                await run(rows, receiver, processes, alerts=400, kills=4, seconds=120)
        check(rows, receiver, alerts=400)


@pytest.mark.extended
async def test_many_kills(rows: AlertRows, database_url: str, task_server: ServiceProcess, tmp_path: Path) -> None:
    """10,000 alerts and 60 kills, in less than the 15 minutes that a test may take."""
    async with run_receiver() as receiver:
        arguments = [database_url, f"{task_server.url}/mcp", receiver.url, "true", SINGLY]
        began = time.monotonic()
        with run_processes(arguments, tmp_path) as processes:
            await run(rows, receiver, processes, alerts=10_000, kills=60, seconds=840)
        found = check(rows, receiver, alerts=10_000)
        sys.stdout.write(f"\n{processes.kills} kills in {time.monotonic() - began:.0f} s: {found}\n")


async def run_together(
    rows: AlertRows, receiver: Receiver, processes: Processes, *, tasks: int, due: datetime, kills: int
) -> tuple[int, float]:
    """Adds tasks of one user that are due in the same minute, and kills processes while they are moved and sent.

    Returns how many messages came, and how many seconds after that minute had begun, or the tasks were added.
    """
    user, rng = new_name(), random.Random(1)
    rows.set_settings(user)
    rows.add_channel(user, "webhook", receiver.target(user))
    rows.execute(_ADD_TASKS, user=user, due=f"{due:%Y-%m-%d %H:%M}", first=1, last=tasks)
    began = max(datetime.now(UTC), due)
    while not rows.all("SELECT FROM alerts LIMIT 1"):
        assert datetime.now(UTC) - began < timedelta(seconds=60)
        await asyncio.sleep(0.02)
    for _ in range(kills):
        processes.kill(*rng.choice([(0,), (1,), (0, 1)]))
        await asyncio.sleep(rng.uniform(0.5, 3))
    while rows.all(_OPEN) != [{"open": 0}] or rows.all(_NOT_CLAIMED) != [{"stale": 0}]:
        assert datetime.now(UTC) - began < timedelta(seconds=180)
        await asyncio.sleep(0.1)
    return len(set(receiver.keys(user))), (datetime.now(UTC) - began).total_seconds()


def check_together(rows: AlertRows, receiver: Receiver, *, tasks: int) -> None:
    """Each task is in an alert that was sent, by itself or merged into another one."""
    received = {key for _, key, _ in receiver.received}
    told = rows.all("""
        SELECT alert.task_dues->0->'id' AS task, coalesce(sent.key, alert.key) AS key, coalesce(sent.state, alert.state)
            AS state FROM alerts AS alert LEFT JOIN alerts AS sent ON sent.id = alert.merged_into
        WHERE alert.kind = 'task'
    """)
    assert sorted(row["task"] for row in told) == [*range(1, tasks + 1)]
    assert {row["state"] for row in told} == {"sent"}
    assert {row["key"] for row in told} == received


@pytest.mark.long(seconds=60)
async def test_tasks_that_are_due_together(
    rows: AlertRows, database_url: str, task_server: ServiceProcess, tmp_path: Path
) -> None:
    async with run_receiver() as receiver:
        arguments = [database_url, f"{task_server.url}/mcp", receiver.url, "true", TOGETHER]
        with run_processes(arguments, tmp_path) as processes:
            due = datetime.now(UTC) + timedelta(seconds=5)  # a minute that has passed would not alert
            messages, _ = await run_together(rows, receiver, processes, tasks=1_000, due=due, kills=4)
        check_together(rows, receiver, tasks=1_000)
        assert messages < 20


@pytest.mark.extended
@pytest.mark.parametrize("kills", [0, 10])
async def test_10_000_tasks_that_are_due_together(
    rows: AlertRows, database_url: str, task_server: ServiceProcess, tmp_path: Path, kills: int
) -> None:
    async with run_receiver() as receiver:
        arguments = [database_url, f"{task_server.url}/mcp", receiver.url, "true", TOGETHER]
        with run_processes(arguments, tmp_path) as processes:
            due = (datetime.now(UTC) + timedelta(seconds=80)).replace(second=0, microsecond=0)
            messages, seconds = await run_together(rows, receiver, processes, tasks=10_000, due=due, kills=kills)
        check_together(rows, receiver, tasks=10_000)
        sys.stdout.write(f"\n10,000 tasks, {kills} kills: {messages} messages in {seconds:.1f} s\n")
