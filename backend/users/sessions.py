"""Sessions that were signed out of: a copy of their cookie opens nothing until it expires."""

from datetime import UTC, datetime

from common.database import Database

_FIND = "SELECT id FROM ended_sessions WHERE user_id = %(user)s AND id = %(id)s"
_ADD = """
INSERT INTO ended_sessions (user_id, id, expires_at) VALUES (%(user)s, %(id)s, %(expires_at)s)
ON CONFLICT DO NOTHING"""
# An hour later, because the clocks of services and database may differ.
_DELETE_EXPIRED = "DELETE FROM ended_sessions WHERE user_id = %(user)s AND expires_at < now() - interval '1 hour'"


async def is_ended(database: Database, user_id: str, session_id: str) -> bool:
    return await database.fetch_one(user_id, _FIND, id=session_id) is not None


async def end(database: Database, user_id: str, session_id: str, *, expires: int) -> None:
    """Ends a session, which is stored until it expires (Unix time), and deletes those that have expired."""
    async with database.transaction(user_id) as tx:
        await tx.execute(_ADD, id=session_id, expires_at=datetime.fromtimestamp(expires, UTC))
        await tx.execute(_DELETE_EXPIRED)
