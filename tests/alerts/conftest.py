import itertools
import os
from collections.abc import AsyncIterator, Iterator
from datetime import datetime

import pytest

from backend.tools.caller_token import CallerToken
from backend.tools.task_tools import TaskTools
from common.database import Database
from tests.alerts.rows import AlertRows
from tests.processes import ServiceProcess
from tests.support.stack import SIGN_IN
from tests.tokens import MCP_TOKEN_SECRET

_numbers = itertools.count(1)


class MovableClock:
    """A clock that tests set."""

    def __init__(self, now: str) -> None:
        self.now = datetime.fromisoformat(now)

    def __call__(self) -> datetime:
        return self.now


def new_name() -> str:
    return f"alerts-user-{os.getpid()}-{next(_numbers)}"


@pytest.fixture
def rows(database_url: str) -> Iterator[AlertRows]:
    with AlertRows(database_url) as rows:
        yield rows


@pytest.fixture
async def database(database_url: str) -> AsyncIterator[Database]:
    async with Database(database_url) as database:
        yield database


@pytest.fixture(scope="session")
def task_server(session_database_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServiceProcess]:
    """The server of tasks, from which titles are read."""
    log = tmp_path_factory.mktemp("alerts") / "mcp.log"
    server = ServiceProcess("mcp_server", "MCP_PORT", log, DATABASE_URL=session_database_url, **SIGN_IN)
    server.environment["MCP_URL"] = f"{server.url}/mcp"
    server.start()
    server.wait_until_ready()
    yield server
    server.end()


@pytest.fixture
async def tools(task_server: ServiceProcess) -> AsyncIterator[TaskTools]:
    url = f"{task_server.url}/mcp"
    tools = TaskTools(url, CallerToken(MCP_TOKEN_SECRET, url), resend_seconds=1)
    async with tools.http:  # only what it reads is needed
        yield tools
