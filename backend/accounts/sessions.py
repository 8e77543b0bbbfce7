"""Sessions: who is signed in where, until when, and which were ended. The page's cookie names one."""

import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from backend.errors import BackendError
from common.database import NO_USER, Database
from common.database.ended_sessions import EndedSessions
from common.database.session_uses import SessionUses
from common.scopes import ALL

Kind = Literal["session", "device", "token", "client"]
"""How somebody is signed in: by the page's cookie, after a sign-in or by a link, or by a token of a user or client."""
MAX_SECONDS = 10 * 365 * 86_400
"""How long a session may last, whatever the token says from which it was made."""
_ID_BYTES = 16
SIGN_INS: tuple[Kind, ...] = ("session", "device")
"""The kinds that the page lists as places where the user is signed in."""
# Of a user; a further one ends the one that was not used for longest.
_MAX_OPEN, _MAX_CLIENTS = 100, 50
# Expired ones are kept for an hour, because the clocks of services and database may differ.
_DELETE_EXPIRED = "DELETE FROM sessions WHERE user_id = %(user)s AND expires_at < now() - interval '1 hour'"
# An account is disabled, or gets another password, before or after a session begins, and then ends it.
LOCK_ACCOUNT = "SELECT FROM accounts WHERE user_id = %(user)s FOR SHARE"
# By what a session has made, such as a link, nobody comes in once that session has ended.
MAY_BEGIN = """
NOT EXISTS (
    SELECT FROM accounts WHERE user_id = %(user)s
        AND (disabled_at IS NOT NULL OR password_hash IS DISTINCT FROM coalesce(%(password_hash)s, password_hash))
) AND (NOT %(needs_account)s OR EXISTS (SELECT FROM accounts WHERE user_id = %(user)s)) AND (
    %(by)s::text IS NULL OR EXISTS (
        SELECT FROM sessions WHERE user_id = %(user)s AND id = %(by)s AND ended_at IS NULL AND expires_at > now()
        FOR SHARE
    )
)"""
_ADD = f"""
INSERT INTO sessions (user_id, id, kind, name, scopes, expires_at)
SELECT %(user)s, %(id)s, %(kind)s, %(name)s, %(scopes)s, %(expires)s
WHERE {MAY_BEGIN} RETURNING id"""
_LOG_SIGN_IN = """
INSERT INTO account_events (user_id, kind, details)
SELECT user_id, 'sign_in', jsonb_build_object('browser', name, 'address', %(address)s::text) FROM sessions
WHERE user_id = %(user)s AND id = %(id)s AND kind = 'session' AND %(address)s::text IS NOT NULL"""
_RENEW = """
UPDATE sessions SET expires_at = %(expires)s
WHERE user_id = %(user)s AND id = %(id)s AND kind = 'session' AND ended_at IS NULL AND expires_at < %(expires)s
    AND EXISTS (SELECT FROM accounts WHERE user_id = %(user)s AND disabled_at IS NULL)
RETURNING id"""
_EXPIRES = "extract(epoch FROM expires_at)::double precision AS expires"
_END = f"""
UPDATE sessions SET ended_at = clock_timestamp()
WHERE user_id = %(user)s AND id = %(id)s AND ended_at IS NULL
    AND (%(kinds)s::text[] IS NULL OR kind = ANY (%(kinds)s)) RETURNING id, name, {_EXPIRES}"""
# Waits for sessions that are begun by one of these, so that the next statement ends them as well.
_LOCK_OPEN = "SELECT FROM sessions WHERE user_id = %(user)s AND ended_at IS NULL FOR UPDATE"
_END_OTHERS = f"""
UPDATE sessions SET ended_at = clock_timestamp()
WHERE user_id = %(user)s AND id IS DISTINCT FROM %(but)s AND ended_at IS NULL
    AND (%(kinds)s::text[] IS NULL OR kind = ANY (%(kinds)s)) RETURNING id, name, {_EXPIRES}"""
_END_UNUSED = f"""
UPDATE sessions SET ended_at = clock_timestamp()
WHERE user_id = %(user)s AND id IN (
    SELECT id FROM sessions WHERE user_id = %(user)s AND kind = ANY (%(kinds)s) AND ended_at IS NULL
    ORDER BY last_used_at DESC, created_at DESC OFFSET %(most)s
) RETURNING id, name, {_EXPIRES}"""
# A backup that was restored, or a failover, may have lost its row.
_END_OF_COOKIE = """
INSERT INTO sessions (user_id, id, kind, name, scopes, expires_at, ended_at)
VALUES (%(user)s, %(id)s, 'session', '', '{}', to_timestamp(%(expires)s), clock_timestamp())
ON CONFLICT (user_id, id) DO UPDATE SET ended_at = coalesce(sessions.ended_at, excluded.ended_at)"""
_OPEN = """
SELECT id, kind, name, scopes, created_at, last_used_at, expires_at FROM sessions
WHERE user_id = %(user)s AND kind = ANY (%(kinds)s) AND ended_at IS NULL AND expires_at > now()
ORDER BY last_used_at DESC, id"""
_SWEEP = "SELECT sweep_accounts(1000)"


@dataclass(frozen=True, slots=True)
class Session:
    id: str
    kind: Kind
    name: str
    scopes: list[str]
    created_at: datetime
    last_used_at: datetime
    expires_at: datetime


class AccountDisabled(BackendError):
    """This account is disabled. Ask the person who runs this server."""

    code, status = "account_disabled", 403


class Sessions:
    """The sessions of all users. Errors of the database are raised as they are."""

    def __init__(self, database: Database, *, needs_account: bool = False) -> None:
        """With `needs_account`, only users with an account can have a session."""
        self._database, self._needs_account = database, needs_account
        self.uses = SessionUses(database)
        self.ended = EndedSessions(database)

    async def begin(
        self,
        user_id: str,
        *,
        kind: Kind,
        name: str,
        expires: datetime,
        scopes: Sequence[str] = (ALL,),
        address: str | None = None,
        password_hash: str | None = None,
        by: str | None = None,
    ) -> str:
        """Stores a new session and returns its id.

        One of the kind `session` is logged as a sign-in from `address`, if that is given.

        Raises `AccountDisabled`, also if the account's password is not that of `password_hash` any more, or the session
        `by`, which has made what it begins with, has ended.
        """
        session_id = new_session_id()
        values = {"id": session_id, "kind": kind, "name": name, "scopes": list(scopes), "expires": expires}
        async with self._database.transaction(user_id) as tx:
            await tx.execute(_DELETE_EXPIRED)
            await tx.execute(LOCK_ACCOUNT)
            check = {"password_hash": password_hash, "by": by, "needs_account": self._needs_account}
            added = await tx.execute(_ADD, **values, **check)
            await tx.execute(_LOG_SIGN_IN, id=session_id, address=address)
            kinds, most = (SIGN_INS, _MAX_OPEN) if kind in SIGN_INS else ((kind,), _MAX_CLIENTS)
            unused = await tx.execute(_END_UNUSED, EndedSession, kinds=list(kinds), most=most)
        self._note(await unused.fetchall())
        if await added.fetchone() is None:
            raise AccountDisabled
        return session_id

    async def renew(self, user_id: str, session_id: str, *, expires: datetime) -> bool:
        """Lets a session last longer; returns False if it was ended, or its account is disabled."""
        return await self._database.fetch_one(user_id, _RENEW, id=session_id, expires=expires) is not None

    async def list_open(self, user_id: str, kinds: Sequence[Kind] = SIGN_INS) -> list[Session]:
        """Returns those that open something, the last used one first."""
        return await self._database.fetch_all(user_id, _OPEN, Session, kinds=list(kinds))

    async def end(self, user_id: str, session_id: str, *, kinds: Sequence[Kind] | None = None) -> "EndedSession | None":
        """Ends a session, if it is of one of these kinds, in this process at once; returns None if it was not open."""
        values = {"id": session_id, "kinds": kinds and list(kinds)}
        ended = await self._database.fetch_all(user_id, _END, EndedSession, **values)
        self._note(ended)
        return ended[0] if ended else None

    async def end_others(self, user_id: str, *, but: str | None, kinds: Sequence[Kind] | None = None) -> None:
        """Ends all sessions of a user but one, or all of these kinds."""
        values = {"but": but, "kinds": kinds and list(kinds)}
        async with self._database.transaction(user_id) as tx:
            await tx.execute(_LOCK_OPEN)
            ended = await tx.execute(_END_OTHERS, EndedSession, **values)
        self._note(await ended.fetchall())

    async def end_of_cookie(self, user_id: str, session_id: str, *, expires: float) -> None:
        """Ends the session of a valid cookie, which may be stored no longer; `expires` is Unix time."""
        await self._database.execute(user_id, _END_OF_COOKIE, id=session_id, expires=expires)
        self.ended.add(session_id, expires)

    def _note(self, ended: "list[EndedSession]") -> None:
        for session in ended:
            self.ended.add(session.id, session.expires)


@dataclass(frozen=True, slots=True)
class EndedSession:
    id: str
    name: str
    expires: float


def new_session_id() -> str:
    return secrets.token_urlsafe(_ID_BYTES)


async def sweep(database: Database) -> None:
    """Deletes sessions that expired an hour ago, expired codes, and events that are a year old."""
    await database.fetch_all(NO_USER, _SWEEP)
