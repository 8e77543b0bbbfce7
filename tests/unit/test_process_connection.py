"""The connection that says that a process is alive, on a real PostgreSQL."""

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable
from typing import Any

import psycopg
import pytest

from backend.liveness import ProcessConnection
from cli.processes.children import die_with_parent
from common.database import Database, run_sweeps
from tests.conftest import ROOT
from tests.logins import as_service
from tests.support.database_proxy import DatabaseProxy, database_proxy
from tests.waiting import until

SECONDS = 0.4
"""How long a process must be absent in these tests; ten seconds in the product."""

NO_PROCESS = 12345
HANGING_PROCESS = """
import asyncio, time
from backend.liveness import watchdog

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
    async with database_proxy(url) as proxy:
        yield proxy


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
    await until(lambda: judge.find_dead_processes([process_id]))
    return time.monotonic() - began


async def test_a_process_that_has_not_noticed_that_it_is_cut_off_judges_nobody(
    database: Database, proxy: DatabaseProxy, administrator: Administrator, url: str
) -> None:
    async with connect(proxy.url, database) as judge:
        await wait_until_judged(judge, NO_PROCESS)
        proxy.hide_end = True
        administrator(url).execute(TERMINATE_LOCK_HOLDERS.replace("(pid)", "(pid, 10000)"))
        assert await judge.find_dead_processes([NO_PROCESS]) == set()
        assert judge.is_connected  # as far as it knows


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
