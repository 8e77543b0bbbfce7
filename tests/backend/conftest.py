from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import psycopg
import pytest
from backend.conversation.store_adapter import PostgresStore
from backend.turn.warm_up import ask_tools, warm_up
from psycopg.rows import dict_row
from pydantic import SecretStr

from backend.app import create_app
from backend.model.providers import Endpoint, resolve
from backend.settings import Settings
from backend.tools.connectors.server import Server
from backend.tools.tasks.tools import TaskTools
from common.database import Database
from tests.chatkit_client import ChatKit
from tests.logins import as_owner
from tests.processes import ServiceProcess
from tests.scripted_model import ScriptedModel, serve_scripted_model
from tests.serving import serve
from tests.tokens import MCP_TOKEN_SECRET
from tests.workspace_service import WORKSPACE_TOKEN_SECRET, served_workspace


@pytest.fixture(scope="session", autouse=True)
def warmed_up_once() -> Iterator[None]:
    """A process needs it once, and here makes hundreds of backends: all but its tools are the same for each."""
    already = False

    async def once(endpoint: Endpoint, store: PostgresStore, tools: TaskTools, **more: Any) -> None:
        nonlocal already
        if already:
            await ask_tools(tools)
        else:
            await warm_up(endpoint, store, tools, **more)
            already = True

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("backend.app.warm_up", once)
        yield


@pytest.fixture(scope="session")
def mcp_url(session_database_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A real MCP server, a process of its own, for the whole session."""
    environment = {"DATABASE_URL": session_database_url, "MCP_TOKEN_SECRET": MCP_TOKEN_SECRET}
    service = ServiceProcess("mcp_server", "MCP_PORT", tmp_path_factory.mktemp("mcp") / "log", **environment)
    service.start()
    try:
        service.wait_until_ready()
        yield f"{service.url}/mcp"
    finally:
        service.end()


@pytest.fixture
async def model() -> AsyncIterator[ScriptedModel]:
    async with serve_scripted_model() as model:
        yield model


@pytest.fixture
def settings(database_url: str, mcp_url: str, model: ScriptedModel) -> Settings:
    values: dict[str, Any] = {
        "database_url": database_url,
        "mcp_internal_url": mcp_url,
        "mcp_token_secret": MCP_TOKEN_SECRET,
        "llm_provider": "offline",
        "llm_base_url": model.openai_base_url,
        "heartbeat_seconds": 0.1,
        "limit_lag_seconds": 60,  # tests share their event loop with it
    }
    return Settings(**values)


Backend = Callable[..., AbstractAsyncContextManager[ChatKit]]
Rows = Callable[..., list[dict[str, Any]]]


@pytest.fixture
def backend(settings: Settings) -> Backend:
    """Starts a backend on a real socket; keyword arguments change its settings, and what its model is asked."""

    @asynccontextmanager
    async def start(
        *,
        servers: Sequence[Server] = (),
        **changes: Any,
    ) -> AsyncIterator[ChatKit]:
        changed = settings.model_copy(update=changes)
        endpoint = resolve(changed)
        profile = replace(endpoint.profile, titles=False)  # a request for one would take a scripted step
        app = create_app(changed, replace(endpoint, profile=profile, retry_seconds=0.01), servers=servers)
        async with serve(app, limits=changed) as url, ChatKit(url) as client:
            client.app = app  # pyright: ignore[reportAttributeAccessIssue] - for tests that look inside
            yield client

    return start


@pytest.fixture(scope="session")
def workspace() -> Iterator[tuple[str, Path]]:
    """The address of a workspace, and the directory that its folders are in."""
    with served_workspace() as (service, directory):
        yield f"{service.url}/mcp", directory


@pytest.fixture
def with_agents(workspace: tuple[str, Path]) -> dict[str, object]:
    """The settings of a backend whose agents work in the workspace, and start unasked."""
    url, _ = workspace
    return {
        "workspace_url": url,
        "workspace_token_secret": SecretStr(WORKSPACE_TOKEN_SECRET),
        "approvals": ("bulk",),
    }


@pytest.fixture
async def chat(backend: Backend) -> AsyncIterator[ChatKit]:
    async with backend() as client:
        yield client


@pytest.fixture
def rows(database_url: str, administrator: Callable[[str], psycopg.Connection[Any]]) -> Iterator[Rows]:
    """Query the database from outside of everything that is tested."""
    connection = administrator(database_url)

    def query(statement: str, *values: Any) -> list[dict[str, Any]]:
        cursor = connection.cursor(row_factory=dict_row)
        cursor.execute(statement.encode(), values)
        return cursor.fetchall() if cursor.description else []

    yield query
    connection.rollback()  # what a test that failed began


@pytest.fixture
def mcp(database_url: str, tmp_path: Path) -> Iterator[ServiceProcess]:
    """An MCP server of the test's own, to be stopped and started."""
    environment = {"DATABASE_URL": database_url, "MCP_TOKEN_SECRET": MCP_TOKEN_SECRET}
    service = ServiceProcess("mcp_server", "MCP_PORT", tmp_path / "mcp.log", **environment)
    service.start()
    service.wait_until_ready()
    yield service
    if service.process is not None and service.process.poll() is None:
        service.end()


@pytest.fixture
async def owner(database_url: str) -> AsyncIterator[Database]:
    """As the commands on all that is stored use it."""
    async with Database(as_owner(database_url), pool_size=1) as database:
        yield database
