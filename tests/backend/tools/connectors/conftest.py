from collections.abc import AsyncIterator

import pytest
from sqlalchemy.ext.asyncio import AsyncEngine

from backend.tools.connectors.connectors import Connectors
from backend.tools.connectors.server import Server
from backend.tools.consent.policy import Policy
from tests.backend.other_servers import Connecting


@pytest.fixture
async def connecting(engine: AsyncEngine) -> AsyncIterator[Connecting]:
    """Makes the connectors of a process; APPROVALS as given."""
    made: list[Connectors] = []

    def make(*servers: Server, approvals: tuple[str, ...] = ("connectors",)) -> Connectors:
        policy = Policy(approvals, allowed=[one.name for one in servers if one.read_only])
        made.append(Connectors(servers, engine, may_ask=policy.may_ask))
        return made[-1]

    yield make
    for one in made:
        await one.close()
