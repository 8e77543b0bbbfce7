"""The tools of other servers that the operator has approved, by what they said of themselves then."""

from collections.abc import Mapping

from common.database import Database

_LOAD = "SELECT server, tool, hash FROM approved_tools"
_DELETE_OTHERS = "DELETE FROM approved_tools WHERE server = %(server)s AND tool <> ALL(%(tools)s)"
_APPROVE = """
INSERT INTO approved_tools (server, tool, hash, approved_at) VALUES (%(server)s, %(tool)s, %(hash)s, now())
ON CONFLICT (server, tool) DO UPDATE SET hash = excluded.hash, approved_at = excluded.approved_at"""

Approved = Mapping[tuple[str, str], bytes]
"""The hash of each, by its server and name."""


async def load_approved(database: Database) -> Approved:
    async with database.system_transaction() as tx:
        found = await tx.execute(_LOAD)
    return {(row["server"], row["tool"]): bytes(row["hash"]) for row in await found.fetchall()}


async def approve(database: Database, server: str, hashes: Mapping[str, bytes], *, all_of_it: bool) -> None:
    """Approves these tools, as the database's owner. With `all_of_it`, no other tool of the server stays approved."""
    async with database.owner_transaction() as tx:
        if all_of_it:
            await tx.execute(_DELETE_OTHERS, server=server, tools=list(hashes))
        for tool, found in hashes.items():
            await tx.execute(_APPROVE, server=server, tool=tool, hash=found)
