"""The connection that says that a process is alive, on a real PostgreSQL."""

import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from typing import Any

import psycopg
import pytest

from backend.liveness import ProcessConnection
from common.database import Database, run_sweeps
from tests.conftest import ROOT
from tests.logins import as_service
from tests.support.database_proxy import DatabaseProxy, database_proxy
from tests.waiting import WAIT_SECONDS, until

SECONDS = 0.4
"""How long a process must be absent in these tests; ten seconds in the product."""

NO_PROCESS = 12345
HANGING_PROCESS = """
import asyncio, time
from backend.liveness import watchdog

async def main():
    async with watchdog(seconds=2):
        await asyncio.sleep(3)  # longer than the limit, but the loop runs
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


async def test_a_process_that_has_not_noticed_that_it_is_cut_off_judges_nobody(
    database: Database, proxy: DatabaseProxy, administrator: Administrator, url: str
) -> None:
    async with ProcessConnection(proxy.url, database, dead_after_seconds=SECONDS, reconnect_seconds=0.05) as judge:
        await until(lambda: judge.find_dead_processes([NO_PROCESS]))
        proxy.hide_end = True
        administrator(url).execute(TERMINATE_LOCK_HOLDERS.replace("(pid)", "(pid, 10000)"))
        assert await judge.find_dead_processes([NO_PROCESS]) == set()
        assert judge.is_connected  # as far as it knows


def test_a_process_whose_loop_hangs_ends_itself() -> None:
    command = [sys.executable, "-c", HANGING_PROCESS]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=WAIT_SECONDS, check=False)
    assert ended.stdout == "the loop runs\n"
    assert ended.returncode == 1
    assert "Timeout" in ended.stderr


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
