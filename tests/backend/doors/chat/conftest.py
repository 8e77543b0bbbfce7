from collections.abc import AsyncIterator

import pytest

from tests.chatkit_client import ChatKit
from tests.runs_client import Runs


@pytest.fixture
async def runs(chat: ChatKit) -> AsyncIterator[Runs]:
    """The run API of the backend that `chat` speaks to."""
    async with Runs(chat.base_url) as client:
        yield client
