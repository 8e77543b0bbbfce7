"""uvicorn, SQLAlchemy, psycopg, prometheus_client, Alembic and the names of loggers, as `service` and others use them.

What a connection is to uvicorn, and its parser, is in tests/service/workers/test_connection.py.
"""

import os
import signal
import subprocess
import sys
from pathlib import Path

import psycopg
import pytest
from prometheus_client import CollectorRegistry, Gauge
from sqlalchemy import func
from sqlalchemy.exc import DBAPIError, IntegrityError, OperationalError
from sqlalchemy.ext.asyncio import AsyncEngine
from sqlmodel import select

from backend.process import QUIET as BACKENDS
from service.database import transaction
from service.database.engine import as_sqlalchemy
from service.telemetry import metrics
from service.tool_server.logs import QUIET as MCP_SERVERS
from tests.conftest import ROOT

pytestmark = pytest.mark.long

SERVER = """
import asyncio, os, signal, socket, uvicorn

class Told(uvicorn.Server):
    async def startup(self, sockets=None):
        await super().startup(sockets)
        print("startup", self.started, type(self.server_state.connections).__name__, flush=True)

    async def main_loop(self):
        print("main_loop", flush=True)
        os.kill(os.getpid(), signal.SIGTERM)
        await super().main_loop()

    def handle_exit(self, sig, frame):
        print("handle_exit", flush=True)
        super().handle_exit(sig, frame)

    async def on_tick(self, counter):
        print("on_tick", flush=True)
        return await super().on_tick(counter)

    async def shutdown(self, sockets=None):
        print("shutdown", flush=True)
        await super().shutdown(sockets)

async def app(scope, receive, send): ...

with socket.create_server(("127.0.0.1", 0)) as listener:
    Told(uvicorn.Config(app, lifespan="off", log_config=None)).run(sockets=[listener])
"""


def python(program: str, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", program]
    return subprocess.run(command, cwd=ROOT, env=os.environ | environment, capture_output=True, text=True, timeout=60)


def test_uvicorn_goes_by_the_methods_that_are_overridden() -> None:
    """`workers.Server` and the backend's `_Server`; after the signal that ended it, it raises that again."""
    done = python(SERVER)
    assert done.stdout.split("\n")[:-1] == [
        "startup True set",
        "main_loop",
        "handle_exit",
        "on_tick",
        "shutdown",
    ], done.stderr
    assert done.returncode == -signal.SIGTERM


async def test_a_session_over_a_connection_works_in_its_transaction(engine: AsyncEngine) -> None:
    """What `_Session` and `pipelined` stand on: psycopg's own connection, which opens no transaction by itself."""
    which = select(func.txid_current())
    async with engine.connect() as connection:
        driver = (await connection.get_raw_connection()).driver_connection
        assert isinstance(driver, psycopg.AsyncConnection)
        assert driver.autocommit
        await driver.execute("SELECT 1; SELECT 2", prepare=False)
    async with transaction(engine, "alice") as session:
        by_the_connection = await (await session.connection()).scalar(which)
        assert (await session.exec(which)).one() == by_the_connection


@pytest.mark.parametrize(
    ("error", "kind"),
    [(psycopg.OperationalError("gone"), OperationalError), (psycopg.errors.UniqueViolation("twice"), IntegrityError)],
)
def test_the_drivers_errors_are_made_sqlalchemys_by_its_own_function(error: psycopg.Error, kind: type) -> None:
    """`DBAPIError.instance`, whose types say that it wants a statement."""
    made = as_sqlalchemy(error, lost=True)
    assert isinstance(made, kind)
    assert isinstance(made, DBAPIError)
    assert (made.orig, made.connection_invalidated) == (error, True)


async def test_a_connection_counts_as_lent_until_it_is_back(engine: AsyncEngine) -> None:
    """SQLAlchemy tells of a connection that comes back before it is: hence the one less in `watch_pool`."""
    registry = CollectorRegistry()
    metrics.watch_pool(engine, Gauge("lent", "Connections", registry=registry))
    async with engine.connect(), engine.connect():
        assert registry.get_sample_value("lent") == 2
    assert registry.get_sample_value("lent") == 0


def test_what_a_dead_worker_had_open_is_in_a_file_with_its_pid(tmp_path: Path) -> None:
    """Which `_forget_the_dead` looks for; prometheus_client finds its directory when it is imported."""
    gauge = "from prometheus_client import Gauge; Gauge('open', 'Things', multiprocess_mode='livesum').set(3)"
    count = "; from prometheus_client import Counter; Counter('made', 'Things').inc(5)"
    died = python(gauge + count, PROMETHEUS_MULTIPROC_DIR=str(tmp_path))
    assert died.returncode == 0, died.stderr
    assert len(list(tmp_path.glob("gauge_livesum_*.db"))) == 1
    show = "from service.telemetry import metrics; print(metrics.response().body.decode())"
    shown = python(show, PROMETHEUS_MULTIPROC_DIR=str(tmp_path)).stdout
    assert "made_total 5.0" in shown
    assert "open 3.0" not in shown
    assert list(tmp_path.glob("gauge_livesum_*.db")) == []


@pytest.mark.parametrize(("app", "quiet"), [("backend.app", BACKENDS), ("mcp_server.server", MCP_SERVERS)])
def test_the_loggers_that_are_to_be_quiet_are_those_of_libraries(app: str, quiet: tuple[str, ...]) -> None:
    """A name that nobody logs by quiets nobody; httpcore2 is imported with the first request."""
    done = python(f"import logging, {app}, httpcore2; print(*logging.root.manager.loggerDict)")
    assert set(quiet) <= set(done.stdout.split()), done.stderr


def test_migrations_are_told_of_by_the_logger_and_in_the_words_that_are_shown(empty_database_url: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "migrations", "0001"],
        cwd=ROOT,
        env=os.environ | {"MIGRATION_DATABASE_URL": empty_database_url},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert [line.split()[0] for line in done.stderr.splitlines()] == ["Running"], done.stderr
