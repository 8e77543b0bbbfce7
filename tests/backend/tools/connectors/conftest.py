from collections.abc import AsyncIterator

import pytest

from backend.tools.connectors.connectors import Connectors
from backend.tools.connectors.server import Server
from common.database import Database
from tests.backend.other_servers import Connecting


@pytest.fixture
async def connecting(database_url: str) -> AsyncIterator[Connecting]:
    """Makes the connectors of a process."""
    made: list[Connectors] = []

    def make(*servers: Server) -> Connectors:
        made.append(Connectors(servers, database))
        return made[-1]

    async with Database(database_url) as database:
        yield make
        for one in made:
            await one.close()
