from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from pydantic import SecretStr

from tests.backend.conftest import Backend
from tests.chatkit_client import ChatKit
from tests.workspace_stand_in import WORKSPACE_SECRET, Workspace, serve_workspace


@pytest.fixture
async def workspace(tmp_path: Path) -> AsyncIterator[Workspace]:
    async with serve_workspace(tmp_path / "workspaces") as workspace:
        yield workspace


@pytest.fixture
def with_agents(workspace: Workspace) -> dict[str, object]:
    """The settings of a backend whose agents work in the workspace, and start unasked."""
    return {
        "workspace_url": f"{workspace.url}/mcp",
        "workspace_token_secret": SecretStr(WORKSPACE_SECRET),
        "approvals": ("bulk",),
    }


@pytest.fixture
async def chat(backend: Backend, with_agents: dict[str, object]) -> AsyncIterator[ChatKit]:
    async with backend(**with_agents) as client:
        yield client
