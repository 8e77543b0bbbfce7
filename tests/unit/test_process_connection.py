"""The connection that says that a process is alive, on a real PostgreSQL."""

import asyncio
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from cli.processes.children import die_with_parent
from common.database import Database, ProcessConnection, run_sweeps
from tests.conftest import ROOT
from tests.logins import as_service
from tests.support.database_proxy import DatabaseProxy, database_proxy
from tests.waiting import until

SECONDS = 0.4
"""How long a process must be absent in these tests; ten seconds in the product."""

NO_PROCESS = 12345
OTHER_PROCESS = """
import asyncio, sys
from common.database import Database, ProcessConnection

async def main():
    async with Database(sys.argv[1]) as database, ProcessConnection(sys.argv[1], database) as process:
        await process.wait_until_connected()
        print(process.process_id, flush=True)
        await asyncio.Event().wait()

asyncio.run(main())
"""
HANGING_PROCESS = """
import asyncio, time
from common.server.watchdog import watchdog

async def main():
    async with watchdog(seconds=0.5):
        await asyncio.sleep(2)  # longer than the limit, but the loop runs
        print("the loop runs", flush=True)
        time.sleep(600)

asyncio.run(main())
"""
TERMINATE_LOCK_HOLDERS = """
    SELECT pg_terminate_backend(pid) FROM pg_locks
    WHERE locktype = 'advisory' AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
"""

Administrator = Callable[[str], psycopg.Connection[Any]]
StartProcess = Callable[[], tuple[subprocess.Popen[str], int]]


@pytest.fixture
def url(database_url: str) -> str:
    """PostgreSQL's own address, also where other tests go through a pooler."""
    return as_service(database_url)


@pytest.fixture
async def database(url: str) -> AsyncIterator[Database]:
    async with Database(url) as database:
        yield database


@pytest.fixture
async def proxy(url: str) -> AsyncIterator[DatabaseProxy]:
    with tempfile.TemporaryDirectory(prefix="todo-proxy-") as directory:
        async with database_proxy(url, Path(directory)) as proxy:
            yield proxy


@pytest.fixture
async def judge(url: str, database: Database) -> AsyncIterator[ProcessConnection]:
    async with connect(url, database) as process:
        await process.wait_until_connected()
        yield process


@pytest.fixture
def start_process(url: str) -> Iterator[StartProcess]:
    """Starts a process with a lock, and returns it with its number."""
    started: list[subprocess.Popen[str]] = []

    def start() -> tuple[subprocess.Popen[str], int]:
        process = run_python(OTHER_PROCESS, url)
        started.append(process)
        assert process.stdout
        return process, int(process.stdout.readline())

    yield start
    for process in started:
        process.kill()
        process.communicate()


def run_python(program: str, *arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", program, *arguments],
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=die_with_parent(signal.SIGKILL),
    )


def connect(url: str, database: Database, **options: Any) -> ProcessConnection:
    return ProcessConnection(url, database, **{"dead_after_seconds": SECONDS, "reconnect_seconds": 0.05, **options})


async def wait_until_judged(judge: ProcessConnection, process_id: int) -> float:
    """Looks again and again; returns after how many seconds the process was judged dead."""
    began = time.monotonic()
    async with asyncio.timeout(30):
        while process_id not in await judge.find_dead_processes([process_id]):
            await asyncio.sleep(0.02)
    return time.monotonic() - began


async def notify(database: Database, channel: str, payload: str) -> None:
    async with database.system_transaction() as tx:
        await tx.execute("SELECT pg_notify(%(channel)s, %(payload)s)", channel=channel, payload=payload)


async def test_a_killed_process_is_judged_dead_at_the_second_look(
    judge: ProcessConnection, start_process: StartProcess
) -> None:
    process, process_id = start_process()
    assert not await judge.find_dead_processes([process_id])
    process.kill()
    assert await wait_until_judged(judge, process_id) >= SECONDS


async def test_a_process_that_has_not_noticed_that_it_is_cut_off_judges_nobody(
    database: Database, proxy: DatabaseProxy, administrator: Administrator, url: str
) -> None:
    async with connect(proxy.url, database) as judge:
        await judge.wait_until_connected()
        await wait_until_judged(judge, NO_PROCESS)
        proxy.hide_end = True
        administrator(url).execute(TERMINATE_LOCK_HOLDERS.replace("(pid)", "(pid, 10000)"))
        assert await judge.find_dead_processes([NO_PROCESS]) == set()
        assert judge.is_connected  # as far as it knows


async def test_notifications_arrive_and_the_connection_comes_back(database: Database, proxy: DatabaseProxy) -> None:
    received: list[str] = []
    connects: list[bool] = []

    def receive(payload: str) -> None:
        received.append(payload)
        assert payload != "defect"

    async def count_connect() -> None:
        connects.append(True)

    async with connect(proxy.url, database, channels={"Words": receive}, on_connect=count_connect) as process:
        await process.wait_until_connected()
        await notify(database, "Words", "one")
        await notify(database, "words", "of another channel")
        await notify(database, "Words", "defect")
        await notify(database, "Words", "two")
        await until(lambda: received == ["one", "defect", "two"])
        await proxy.cut()
        await until(lambda: not process.is_connected)
        await notify(database, "Words", "lost")
        await proxy.restore()
        await process.wait_until_connected()
        assert connects == [True, True]
        await notify(database, "Words", "three")
        await until(lambda: received[3:] == ["three"])


async def test_a_process_starts_while_its_database_is_away(database: Database, proxy: DatabaseProxy) -> None:
    await proxy.cut()
    async with connect(proxy.url, database) as process:
        assert not process.is_connected
        assert await process.find_dead_processes([NO_PROCESS]) == set()
        await proxy.restore()
        await process.wait_until_connected()


def test_a_process_whose_loop_hangs_ends_itself() -> None:
    process = run_python(HANGING_PROCESS)
    output, errors = process.communicate(timeout=60)
    assert output == "the loop runs\n"
    assert process.returncode == 1
    assert "Timeout" in errors


async def test_sweeps_go_on_after_an_error() -> None:
    sweeps: list[int] = []

    async def sweep() -> None:
        sweeps.append(len(sweeps))
        if len(sweeps) < 3:
            raise psycopg.OperationalError if len(sweeps) == 1 else LookupError

    async with run_sweeps(sweep, every_seconds=0.01):
        await until(lambda: len(sweeps) > 3)
    ended = len(sweeps)
    await asyncio.sleep(0.05)
    assert len(sweeps) == ended
