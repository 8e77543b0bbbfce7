from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.backend.agents_at_work import Files
from tests.backend.conftest import Backend
from tests.chatkit_client import ChatKit


@pytest.fixture
async def chat(backend: Backend, with_agents: dict[str, object]) -> AsyncIterator[ChatKit]:
    async with backend(**with_agents) as client:
        yield client


@pytest.fixture
def files(workspace: tuple[str, Path]) -> Files:
    return Files(workspace[1])
