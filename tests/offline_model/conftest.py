import os
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator

import httpx2
import pytest
from openai import AsyncOpenAI

from offline_model.app import create_app
from offline_model.settings import OfflineSettings
from tests.clock import set_clock
from tests.mcp.calls import Tools
from tests.mcp.conftest import new_user
from tests.mcp.servers import open_server
from tests.offline_model.conversation import NOW, Conversation
from tests.processes import ServiceProcess
from tests.serving import http_client, serve

NewConversation = Callable[[], Conversation]
AddTasks = Callable[[Tools], Awaitable[None]]
OpenList = Callable[[AddTasks], Awaitable[Conversation]]


@pytest.fixture
async def url() -> AsyncIterator[str]:
    async with serve(create_app(OfflineSettings()), lifespan="off") as url:
        yield url


@pytest.fixture
async def openai(url: str) -> AsyncIterator[AsyncOpenAI]:
    async with AsyncOpenAI(base_url=f"{url}/v1", api_key="secret", max_retries=0) as client:
        yield client


@pytest.fixture(scope="session")
def task_server(session_database_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServiceProcess]:
    """Where it is the Monday of the sentences."""
    log = tmp_path_factory.mktemp("task-server") / "log"
    with open_server(session_database_url, log, **set_clock(f"{NOW.isoformat()}+01:00")) as server:
        yield server


@pytest.fixture
async def tools(task_server: ServiceProcess) -> AsyncIterator[Tools]:
    async with http_client(task_server.url) as http:
        yield Tools(http, f"offline-{os.getpid()}-{new_user()}")


@pytest.fixture
async def model_client() -> AsyncIterator[httpx2.AsyncClient]:
    """The offline model without a port of its own."""
    transport = httpx2.ASGITransport(app=create_app(OfflineSettings()))
    async with httpx2.AsyncClient(transport=transport, base_url="http://localhost") as client:
        yield client


@pytest.fixture
def new_conversation(model_client: httpx2.AsyncClient, tools: Tools) -> NewConversation:
    return lambda: Conversation(model_client, tools)


@pytest.fixture
def open_list(model_client: httpx2.AsyncClient, tools: Tools) -> OpenList:
    """Begins a conversation about tasks that are added once, because nothing changes them."""

    async def open_shared(add_tasks: AddTasks) -> Conversation:
        shared = Tools(tools.http, f"offline-{os.getpid()}-{add_tasks.__name__}")
        if not await shared.ids():
            await add_tasks(shared)
        return Conversation(model_client, shared, is_shared=True)

    return open_shared


@pytest.fixture
def conversation(new_conversation: NewConversation) -> Conversation:
    return new_conversation()
