from collections.abc import AsyncIterator

import pytest

from tests.mcp_server.calls import Tools, client_of
from tests.mcp_server.clock import SUNDAY, Clocked, clocked


@pytest.fixture
async def tools(server_at: str, database_url: str) -> AsyncIterator[Tools]:
    """The five tools over the wire, in the newer protocol, on empty tables; others show that the older one
    carries the same calls.
    """
    async with client_of(server_at) as client:
        yield Tools(client)


@pytest.fixture
async def sunday(database_url: str) -> AsyncIterator[Clocked]:
    """On a Sunday morning in Berlin."""
    async with clocked(database_url, SUNDAY, zone="Europe/Berlin") as tools:
        yield tools
