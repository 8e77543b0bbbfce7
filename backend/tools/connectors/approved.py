"""The tools of other servers that the operator has approved, by what they said of themselves then."""

from collections.abc import Mapping
from datetime import datetime

from sqlalchemy import delete, select
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncEngine

from backend.conversation.models import ApprovedTool
from common.database import Database
from service.database import login_transaction, utc_now

TOOLS = ApprovedTool.metadata.tables["approved_tools"]
_ALL = select(TOOLS.c.server, TOOLS.c.tool, TOOLS.c.hash)

Approved = Mapping[tuple[str, str], bytes]
"""The hash of each, by its server and name."""


async def read(database: Database) -> Approved:
    async with database.system_transaction() as tx:
        found = await tx.execute("SELECT server, tool, hash FROM approved_tools")
    return {(row["server"], row["tool"]): bytes(row["hash"]) for row in await found.fetchall()}


async def read_as_login(engine: AsyncEngine) -> Approved:
    """As the login of a command."""
    async with login_transaction(engine) as session:
        rows = (await (await session.connection()).execute(_ALL)).all()
    return {(row.server, row.tool): bytes(row.hash) for row in rows}


async def write(engine: AsyncEngine, server: str, hashes: Mapping[str, bytes], *, all_of_it: bool) -> None:
    """Approve these tools, as the owner; `all_of_it`: and no other of the server's."""
    now: datetime = utc_now()
    async with login_transaction(engine) as session:
        connection = await session.connection()
        if all_of_it:
            await connection.execute(delete(TOOLS).where(TOOLS.c.server == server, TOOLS.c.tool.not_in(hashes)))
        for tool, found in hashes.items():
            row = insert(TOOLS).values(server=server, tool=tool, hash=found, approved_at=now)
            await connection.execute(
                row.on_conflict_do_update(index_elements=["server", "tool"], set_={"hash": found, "approved_at": now})
            )
