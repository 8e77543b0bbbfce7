import os
from collections.abc import AsyncIterator, Callable, Iterator

import pytest
from openai import AsyncOpenAI

from offline_model.app import create_app
from offline_model.settings import OfflineSettings
from tests.mcp.calls import Tools
from tests.mcp.conftest import http_client, new_user
from tests.mcp.servers import open_server
from tests.offline_model.conversation import NOW, Conversation
from tests.processes import ServiceProcess
from tests.serving import serve

NewConversation = Callable[[], Conversation]


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
    with open_server(session_database_url, log, TEST_NOW=f"{NOW.isoformat()}+01:00") as server:
        yield server


@pytest.fixture
async def tools(task_server: ServiceProcess) -> AsyncIterator[Tools]:
    async with http_client(task_server.url) as http:
        yield Tools(http, f"offline-{os.getpid()}-{new_user()}")


@pytest.fixture
async def new_conversation(url: str, tools: Tools) -> AsyncIterator[NewConversation]:
    async with http_client(url) as http:
        yield lambda: Conversation(http, tools)


@pytest.fixture
def conversation(new_conversation: NewConversation) -> Conversation:
    return new_conversation()
