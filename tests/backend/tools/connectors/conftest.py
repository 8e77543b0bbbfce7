from collections.abc import AsyncIterator

import pytest
from sqlalchemy.ext.asyncio import AsyncEngine

from backend.tools.connectors.connectors import Connectors
from backend.tools.connectors.server import Server
from tests.backend.other_servers import Connecting


@pytest.fixture
async def connecting(engine: AsyncEngine) -> AsyncIterator[Connecting]:
    """Makes the connectors of a process."""
    made: list[Connectors] = []

    def make(*servers: Server) -> Connectors:
        made.append(Connectors(servers, engine))
        return made[-1]

    yield make
    for one in made:
        await one.close()
