"""Tools whose calls a user allows in a conversation from then on, as long as what they may reach stays the same."""

from common.database import Database

_ALLOW = """
INSERT INTO consents (user_id, conversation_id, tool, reach)
SELECT user_id, id, %(tool)s, %(reach)s FROM conversations WHERE user_id = %(user)s AND id = %(conversation)s
ON CONFLICT (user_id, conversation_id, tool) DO UPDATE SET reach = excluded.reach"""
_FIND = "SELECT tool, reach FROM consents WHERE user_id = %(user)s AND conversation_id = %(conversation)s"


async def allow(database: Database, user_id: str, conversation_id: str, tool: str, *, reach: str | None) -> None:
    """Lets a tool be called without approval in a conversation; `reach` is a fingerprint of what it may reach now."""
    async with database.transaction(user_id) as tx:
        await tx.execute(_ALLOW, user=user_id, conversation=conversation_id, tool=tool, reach=reach)


async def load(database: Database, user_id: str, conversation_id: str) -> dict[str, str | None]:
    """Loads the tools that are allowed in a conversation, with their reach."""
    async with database.transaction(user_id) as tx:
        found = await tx.execute(_FIND, user=user_id, conversation=conversation_id)
    return {row["tool"]: row["reach"] for row in await found.fetchall()}
