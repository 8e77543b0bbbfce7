from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from pydantic import SecretStr

from tests.backend.agents_at_work import Files
from tests.backend.conftest import Backend
from tests.chatkit_client import ChatKit
from tests.workspace_service import WORKSPACE_TOKEN_SECRET, served_workspace


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
async def chat(backend: Backend, with_agents: dict[str, object]) -> AsyncIterator[ChatKit]:
    async with backend(**with_agents) as client:
        yield client


@pytest.fixture
def files(workspace: tuple[str, Path]) -> Files:
    return Files(workspace[1])
