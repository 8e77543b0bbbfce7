import os
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import psycopg
import pytest
from psycopg.rows import dict_row

from mcp_server.server import create_app
from mcp_server.settings import Settings
from tests.conftest import find_free_port
from tests.logins import as_admin
from tests.mcp_server.calls import Tools, client_of
from tests.mcp_server.conformance_report import CONFORMANCE, Conformance
from tests.mcp_server.guarded import own, running
from tests.mcp_server.wire import call, result, send
from tests.processes import ServiceProcess
from tests.serving import serve

ROOT = Path(__file__).resolve().parent.parent.parent
Limited = Callable[..., AbstractAsyncContextManager[Tools]]


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """The tests may have run in several processes: their reports come together here."""
    found = Conformance()
    for report in terminalreporter.getreports("passed"):
        for name, told in report.user_properties:
            if name == CONFORMANCE:
                found.record(*told)
    if lines := list(found.lines()):
        terminalreporter.section("MCP conformance")
        for line in lines:
            terminalreporter.line(line)


@pytest.fixture(scope="session")
def server_at(session_database_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of `python -m mcp_server`, one process for all tests that need nothing special of it."""
    port = find_free_port()
    settings = {"DATABASE_URL": session_database_url, "MCP_PORT": str(port), "LOG_FORMAT": "text"}
    # A file, because a pipe that nobody reads is full after some hundred lines, and then the server waits.
    written = tmp_path_factory.mktemp("server") / "log"
    with written.open("w") as log_file:
        process = subprocess.Popen(
            [sys.executable, "-m", "mcp_server"], cwd=ROOT, env=os.environ | settings, stderr=log_file
        )
    deadline = time.monotonic() + 60
    while "listens on http://127.0.0.1:" not in written.read_text():
        assert process.poll() is None, written.read_text()
        assert time.monotonic() < deadline, written.read_text()
        time.sleep(0.02)
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait(15)
    log = written.read_text()
    assert process.returncode == 0
    for word in ("Traceback", " ERROR ", "milk", "postgresql://"):
        assert word not in log, log


@pytest.fixture(scope="session")
def guarded(session_database_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServiceProcess]:
    with running(session_database_url, tmp_path_factory.mktemp("guarded") / "log") as server:
        yield server


@pytest.fixture
async def guarded_http(guarded: ServiceProcess, database_url: str) -> AsyncIterator[httpx2.AsyncClient]:
    limits = httpx2.Limits(max_connections=20)
    async with httpx2.AsyncClient(base_url=guarded.url, verify=False, limits=limits) as client:
        yield client


@pytest.fixture
async def milk(guarded_http: httpx2.AsyncClient, rows: "Rows") -> Any:
    """What is stored once alice has a task, number 1."""
    result(await send(guarded_http, call("add_task", {"title": "milk"}, token=own())))
    return rows.tasks(), rows.changes()


@pytest.fixture(params=["2026-07-28", "2025-11-25"])
async def tools(request: pytest.FixtureRequest, server_at: str, database_url: str) -> AsyncIterator[Tools]:
    """The five tools over the wire, in both protocols, on empty tables."""
    async with client_of(server_at, mode="legacy" if request.param == "2025-11-25" else "auto") as client:
        assert client.protocol_version == request.param
        yield Tools(client)


class Rows:
    """What is in the database, read past the service."""

    def __init__(self, connection: psycopg.Connection[dict[str, Any]]) -> None:
        self._connection = connection

    def __call__(self, statement: str, *values: object) -> list[dict[str, Any]]:
        return self._connection.execute(statement.encode(), values).fetchall()

    def tasks(self) -> list[dict[str, Any]]:
        return self("SELECT * FROM tasks ORDER BY created_at, id")

    def changes(self) -> list[dict[str, Any]]:
        """Each with its call."""
        return self("""
            SELECT c.*, operation, arguments, actor, idempotency_key, batch FROM task_changes c
            JOIN task_calls ON (task_calls.user_id, task_calls.id) = (c.user_id, c.call_id) ORDER BY c.id
        """)


@pytest.fixture
def rows(database_url: str) -> Iterator[Rows]:
    with psycopg.Connection[dict[str, Any]].connect(
        as_admin(database_url), autocommit=True, row_factory=dict_row
    ) as connection:
        yield Rows(connection)


@pytest.fixture
def limited(database_url: str) -> Limited:
    """Starts a server with these limits."""

    @asynccontextmanager
    async def start(**limits: int) -> AsyncIterator[Tools]:
        app = create_app(Settings.model_validate({"database_url": database_url, **limits}))
        async with serve(app) as base, client_of(base) as client:
            yield Tools(client)

    return start
