import itertools
import os
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

import httpx2
import pytest

from tests.clock import find_offset
from tests.mcp.calls import Tools
from tests.mcp.importing import Import, Imported, create_environment, started
from tests.mcp.servers import NOW, OWN, open_server, serve_tools, sign_in_server
from tests.processes import ServiceProcess
from tests.serving import http_client
from tests.support.stored import Stored

NewTools = Callable[..., Tools]
Limited = Callable[..., AbstractAsyncContextManager[Tools]]
_numbers = itertools.count(1)


def new_user() -> str:
    """Someone nobody else knows."""
    return f"mcp-user-{os.getpid()}-{next(_numbers)}"


@pytest.fixture(scope="session")
def server(session_database_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServiceProcess]:
    """One process for all tests that need nothing special of it."""
    with open_server(session_database_url, tmp_path_factory.mktemp("server") / "log") as server:
        yield server


@pytest.fixture(scope="session")
def guarded(session_database_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServiceProcess]:
    """One process for all tests of a server that checks its callers."""
    with sign_in_server(session_database_url, tmp_path_factory.mktemp("guarded") / "log") as server:
        yield server


@pytest.fixture
async def http(server: ServiceProcess) -> AsyncIterator[httpx2.AsyncClient]:
    async with http_client(server.url) as client:
        yield client


@pytest.fixture
async def guarded_http(guarded: ServiceProcess) -> AsyncIterator[httpx2.AsyncClient]:
    async with http_client(guarded.url) as client:
        yield client


@pytest.fixture
def user() -> str:
    return new_user()


@pytest.fixture
def new_tools(http: httpx2.AsyncClient) -> NewTools:
    """Makes the tools of users that no other test knows."""
    return lambda name=None, **options: Tools(http, name or new_user(), **options)


@pytest.fixture
def tools(new_tools: NewTools, user: str) -> Tools:
    return new_tools(user)


@pytest.fixture
def stored(session_database_url: str) -> Iterator[Stored]:
    with Stored(session_database_url) as stored:
        yield stored


@pytest.fixture
def limited(session_database_url: str) -> Limited:
    """Starts a server with these settings, and answers the tools of a new user."""

    @asynccontextmanager
    async def start(*, now: str = NOW, **settings: Any) -> AsyncIterator[Tools]:
        settings = {**OWN, "test_clock_offset_seconds": find_offset(now), **settings}
        async with serve_tools(session_database_url, **settings) as http:
            yield Tools(http, new_user())

    return start


@pytest.fixture
def user_environment(session_database_url: str) -> dict[str, str]:
    return create_environment(session_database_url)


@pytest.fixture
def imported(user_environment: dict[str, str], user: str) -> Import:
    """Imports a text for the user, by default as a todo.txt."""

    def run(text: str | bytes, *arguments: str, name: str = user, **settings: str) -> Imported:
        data = text.encode() if isinstance(text, str) else text
        with started(user_environment | settings, name, *arguments) as process:
            output, errors = process.communicate(data, 120)
        return Imported(output, errors, process.returncode)

    return run
