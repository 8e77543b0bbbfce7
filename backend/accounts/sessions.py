"""Sessions: who is signed in where, until when, and which were ended. The page's cookie names one."""

import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from common.database import NO_USER, Database
from common.database.ended_sessions import EndedSessions

Kind = Literal["session"]
"""How somebody is signed in: by the page's cookie."""
ALL = "all"
"""The scope of what may do everything."""
_ID_BYTES = 16
# Expired ones are kept for an hour, because the clocks of services and database may differ.
_DELETE_EXPIRED = "DELETE FROM sessions WHERE user_id = %(user)s AND expires_at < now() - interval '1 hour'"
_ADD = """
INSERT INTO sessions (user_id, id, kind, name, scopes, expires_at)
VALUES (%(user)s, %(id)s, %(kind)s, %(name)s, %(scopes)s, %(expires)s)"""
_END = """
UPDATE sessions SET ended_at = clock_timestamp()
WHERE user_id = %(user)s AND id = ANY (%(ids)s) AND ended_at IS NULL RETURNING id, expires_at"""
_END_OTHERS = """
UPDATE sessions SET ended_at = clock_timestamp()
WHERE user_id = %(user)s AND id IS DISTINCT FROM %(but)s AND ended_at IS NULL RETURNING id, expires_at"""
_USE = """
UPDATE sessions SET last_used_at = now()
WHERE user_id = %(user)s AND id = %(id)s AND last_used_at < now() - interval '10 minutes'"""
_OPEN = """
SELECT id, kind, name, created_at, last_used_at, expires_at FROM sessions
WHERE user_id = %(user)s AND ended_at IS NULL AND expires_at > now() ORDER BY last_used_at DESC, id"""
_SWEEP = "SELECT sweep_sessions(1000)"


@dataclass(frozen=True, slots=True)
class Session:
    id: str
    kind: Kind
    name: str
    created_at: datetime
    last_used_at: datetime
    expires_at: datetime


class Sessions:
    """The sessions of all users. Errors of the database are raised as they are."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self.ended = EndedSessions(database)

    async def begin(self, user_id: str, *, kind: Kind, name: str, expires: datetime) -> str:
        """Stores a new session and returns its id."""
        session_id = secrets.token_urlsafe(_ID_BYTES)
        values = {"id": session_id, "kind": kind, "name": name, "scopes": [ALL], "expires": expires}
        async with self._database.transaction(user_id) as tx:
            await tx.execute(_DELETE_EXPIRED)
            await tx.execute(_ADD, **values)
        return session_id

    async def use(self, user_id: str, session_id: str) -> None:
        """Notes that a session is used, to ten minutes."""
        await self._database.execute(user_id, _USE, id=session_id)

    async def list_open(self, user_id: str) -> list[Session]:
        """Returns those that open something, the last used one first."""
        return await self._database.fetch_all(user_id, _OPEN, Session)

    async def end(self, user_id: str, session_ids: Sequence[str]) -> bool:
        """Ends sessions, in this process at once; returns whether one of them was open."""
        return self._note(await self._database.fetch_all(user_id, _END, _Ended, ids=list(session_ids)))

    async def end_others(self, user_id: str, *, but: str | None) -> bool:
        """Ends all sessions of a user but one; returns whether there were others."""
        return self._note(await self._database.fetch_all(user_id, _END_OTHERS, _Ended, but=but))

    def _note(self, ended: "Sequence[_Ended]") -> bool:
        for session in ended:
            self.ended.add(session.id, session.expires_at)
        return bool(ended)


@dataclass(frozen=True, slots=True)
class _Ended:
    id: str
    expires_at: datetime


async def sweep(database: Database) -> None:
    """Deletes sessions that expired an hour ago."""
    await database.fetch_all(NO_USER, _SWEEP)
