import os
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from fastmcp import Client
from psycopg.rows import dict_row

from tests.mcp_server.calls import Tools

ROOT = Path(__file__).resolve().parent.parent.parent


@pytest.fixture(scope="session")
def server_at(session_database_url: str) -> Iterator[str]:
    """The address of `python -m mcp_server`, one process for all tests that need nothing special of it."""
    settings = {"DATABASE_URL": session_database_url, "MCP_PORT": "0"}
    process = subprocess.Popen(
        [sys.executable, "-m", "mcp_server"],
        cwd=ROOT,
        env=os.environ | settings,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stderr is not None
    line = process.stderr.readline()
    assert "listens on http://127.0.0.1:" in line, line + process.stderr.read()
    try:
        yield line.split()[-1].removesuffix("/mcp")
    finally:
        process.terminate()
        _, log = process.communicate(timeout=15)
    assert process.returncode == 0
    for word in ("Traceback", " ERROR ", "milk", "postgresql://"):
        assert word not in log, log


@pytest.fixture(params=["2026-07-28", "2025-11-25"])
async def tools(request: pytest.FixtureRequest, server_at: str, database_url: str) -> AsyncIterator[Tools]:
    """The five tools over the wire, in both protocols, on empty tables."""
    async with Client(f"{server_at}/mcp", mode="legacy" if request.param == "2025-11-25" else "auto") as client:
        assert client.protocol_version == request.param
        yield Tools(client)


class Rows:
    """What is in the database, read past the service."""

    def __init__(self, url: str) -> None:
        self._url = url

    def __call__(self, statement: str, *values: object) -> list[dict[str, Any]]:
        with psycopg.connect(self._url) as connection, connection.cursor(row_factory=dict_row) as cursor:
            return cursor.execute(statement.encode(), values).fetchall()

    def tasks(self) -> list[dict[str, Any]]:
        return self("SELECT * FROM tasks ORDER BY id")

    def changes(self) -> list[dict[str, Any]]:
        return self("SELECT * FROM task_changes ORDER BY id")


@pytest.fixture
def rows(database_url: str) -> Rows:
    return Rows(database_url)
