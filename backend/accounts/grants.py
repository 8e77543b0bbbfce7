"""Grants: what users have allowed OAuth clients. Each is a session of kind `client` with one valid refresh token."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Literal

from backend.accounts.events import add_event
from backend.accounts.sessions import Sessions
from common.database import Database

Ending = Literal["user", "client", "reuse"]
"""Who has ended a grant: the user on the page, the client, or the second use of a refresh token."""
DAYS = 30
"""How long a grant lasts without a new access token."""
GRACE_SECONDS = 10
"""How long the previous refresh token may be sent again, as the answer to it may have been lost."""
_ADD = "INSERT INTO oauth_grants (user_id, session_id, address) VALUES (%(user)s, %(id)s, %(address)s)"
_IS_OPEN = """
EXISTS (
    SELECT FROM sessions JOIN accounts USING (user_id)
    WHERE sessions.user_id = %(user)s AND sessions.id = %(id)s AND kind = 'client' AND ended_at IS NULL
        AND expires_at > now() AND disabled_at IS NULL
)"""
# Two requests with one token: the second waits for the first one's row, and then finds another generation.
_ROTATE = f"""
WITH rotated AS (
    UPDATE oauth_grants SET generation = generation + 1, refreshed_at = now()
    WHERE user_id = %(user)s AND session_id = %(id)s AND generation = %(generation)s AND {_IS_OPEN}
    RETURNING session_id, generation
)
UPDATE sessions SET last_used_at = now(), expires_at = date_trunc('second', now()) + make_interval(days => %(days)s)
FROM rotated WHERE user_id = %(user)s AND id = session_id
RETURNING id, scopes, generation, expires_at, true AS is_recent"""
_FIND = f"""
SELECT session_id AS id, scopes, generation, expires_at,
    refreshed_at > now() - make_interval(secs => %(grace)s) AS is_recent
FROM oauth_grants JOIN sessions ON sessions.user_id = oauth_grants.user_id AND sessions.id = session_id
WHERE oauth_grants.user_id = %(user)s AND session_id = %(id)s AND {_IS_OPEN}"""
_OPEN = """
SELECT sessions.id, name, address, scopes, created_at, last_used_at, expires_at
FROM oauth_grants JOIN sessions ON sessions.user_id = oauth_grants.user_id AND sessions.id = session_id
WHERE oauth_grants.user_id = %(user)s AND ended_at IS NULL AND expires_at > now()
ORDER BY last_used_at DESC, sessions.id"""


@dataclass(frozen=True, slots=True)
class Grant:
    """A grant as it is now; `generation` is that of its valid refresh token."""

    id: str
    scopes: list[str]
    generation: int
    expires_at: datetime
    is_recent: bool


@dataclass(frozen=True, slots=True)
class AllowedClient:
    id: str
    name: str
    address: str
    scopes: list[str]
    created_at: datetime
    last_used_at: datetime
    expires_at: datetime


class Grants:
    def __init__(self, database: Database, sessions: Sessions) -> None:
        self._database = database
        self._sessions = sessions

    async def begin(self, user_id: str, *, name: str, address: str, scopes: Sequence[str], by: str | None) -> Grant:
        """Raises `AccountDisabled`, also if the session `by`, in which the user allowed it, has ended."""
        expires = datetime.now(UTC).replace(microsecond=0) + timedelta(days=DAYS)
        grant_id = await self._sessions.begin(user_id, kind="client", name=name, expires=expires, scopes=scopes, by=by)
        await self._database.execute(user_id, _ADD, id=grant_id, address=address)
        return Grant(grant_id, [*scopes], 0, expires, True)

    async def refresh(self, user_id: str, grant_id: str, generation: int) -> Grant | None:
        """Returns the grant with its next generation; None if the refresh token of this generation is not valid.

        A token that was used before ends the grant: one of those who have it is not the client (RFC 9700, section
        4.14.2). Within seconds after its use, it gets what its first use has got.
        """
        values = {"id": grant_id, "generation": generation}
        rotated = await self._database.fetch_one(user_id, _ROTATE, Grant, days=DAYS, **values)
        if rotated is not None:
            return rotated
        grant = await self._database.fetch_one(user_id, _FIND, Grant, id=grant_id, grace=GRACE_SECONDS)
        if grant is None or generation >= grant.generation:
            return None
        if grant.is_recent and generation == grant.generation - 1:
            return grant
        await self.end(user_id, grant_id, by="reuse")
        return None

    async def list_open(self, user_id: str) -> list[AllowedClient]:
        """Returns the clients of a user, the last used one first."""
        return await self._database.fetch_all(user_id, _OPEN, AllowedClient)

    async def end(self, user_id: str, grant_id: str, *, by: Ending) -> bool:
        """Ends a grant and its tokens; returns whether it was open."""
        client = next((one for one in await self.list_open(user_id) if one.id == grant_id), None)
        if client is None or not await self._sessions.end(user_id, grant_id):
            return False
        await add_event(self._database, user_id, "client_ended", name=client.name, address=client.address, by=by)
        return True
