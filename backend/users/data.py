"""All rows of one user, for the commands that export and delete them."""

import asyncio
from collections.abc import AsyncIterator
from typing import LiteralString

from common.database import Database, Transaction

# The tables with the order of their rows; each comes after those that it refers to.
_TABLES: dict[LiteralString, LiteralString] = {
    "token_usage": "day",  # deleted last, as its row is locked after that of a run
    "conversations": "id",
    "schedules": "id",
    "runs": "seq",
    "model_turns": "seq",
    "entries": "seq, id",
    "tool_calls": "seq",
    "consents": "conversation_id, tool",
    "requests": "created_at, id",
    "kept_requests": "created_at, key",
    "profiles": "user_id",
    "alert_settings": "user_id",
    "alert_channels": "id",
    "alerts": "id",
    "alert_deliveries": "alert_id, channel_id",
    "accounts": "user_id",
    "one_time_codes": "hash",
    "account_events": "id",
    "sessions": "id",
    "oauth_grants": "session_id",
    "provider_sessions": "session_id",
}
TABLES = tuple(_TABLES)
KNOWN_SECONDS = 2.0
"""After which each process of each service knows that a session has ended."""
# Their tokens must not open anything before they expire, so what ended stays, without whose it was.
_END_SESSIONS = "UPDATE sessions SET ended_at = clock_timestamp() WHERE user_id = %(user)s AND ended_at IS NULL"
_FORGET_SESSIONS = """
UPDATE sessions SET user_id = '', name = '', ended_at = coalesce(ended_at, clock_timestamp())
WHERE user_id = %(user)s"""
# Starting a run locks its conversation, too.
_LOCK_CONVERSATIONS = "SELECT id FROM conversations WHERE user_id = %(user)s ORDER BY id FOR UPDATE"


def stream(tx: Transaction, user_id: str, table: LiteralString) -> AsyncIterator[dict[str, object]]:
    return tx.stream(f"SELECT * FROM {table} WHERE user_id = %(user)s ORDER BY {_TABLES[table]}", user=user_id)


async def delete_all(database: Database, user_id: str) -> dict[str, int]:
    """Deletes all rows of a user.

    Sessions are ended in short transactions, as the services ask for those that were ended in the last half minute.
    """
    async with database.owner_transaction() as tx:
        ended = await tx.execute(_END_SESSIONS, user=user_id)
    if ended.rowcount:  # until each process knows it, they can still store something
        await asyncio.sleep(KNOWN_SECONDS)
    async with database.owner_transaction() as tx:
        await tx.lift_timeouts()
        await tx.execute(_LOCK_CONVERSATIONS, user=user_id)
        deleted = {
            table: await tx.execute(f"DELETE FROM {table} WHERE user_id = %(user)s", user=user_id)
            for table in reversed(_TABLES)
            if table != "sessions"
        }
    async with database.owner_transaction() as tx:
        deleted["sessions"] = await tx.execute(_FORGET_SESSIONS, user=user_id)
    return {table: deleted[table].rowcount for table in _TABLES}
