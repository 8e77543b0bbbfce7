"""Personal access tokens: users make them for their programs, and they are shown once."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from backend.accounts.events import send_event
from backend.accounts.sessions import LOCK_ACCOUNT, MAY_BEGIN, AccountDisabled, Session, new_session_id
from backend.errors import LimitReached
from common.database import Database, advisory_locks
from common.text import is_single_line_text
from common.tokens import API, MODE, make_token

DEFAULT_DAYS = 90
MAX_NAME_LENGTH = 100
_MAX_TOKENS, _MAX_A_DAY = 50, 200
_DAY_SECONDS = 86_400
_LOCK_USER = f"SELECT {advisory_locks.REQUESTS}"
_MAY_BEGIN = f"SELECT {MAY_BEGIN} AS may_begin"
# Ended ones are stored until they expire, so those of a day are limited, too.
_ADD = f"""
INSERT INTO sessions (user_id, id, kind, name, scopes, expires_at)
SELECT %(user)s, %(id)s, 'token', %(name)s, %(scopes)s, %(expires)s
WHERE {MAY_BEGIN} AND (
    SELECT count(*) FROM sessions
    WHERE user_id = %(user)s AND kind = 'token' AND ended_at IS NULL AND expires_at > now()
) < %(most)s AND (
    SELECT count(*) FROM sessions
    WHERE user_id = %(user)s AND kind = 'token' AND created_at > now() - interval '1 day'
) < %(most_a_day)s
RETURNING id, kind, name, scopes, created_at, last_used_at, expires_at"""


class TooManyTokens(LimitReached):
    """You have 50 tokens, or have made 200 in a day, which is the limit. End one that you no longer need."""

    code = "too_many_tokens"
    allow_retry = False
    retry_seconds = None


@dataclass(frozen=True, slots=True)
class PersonalToken:
    token: str
    session: Session


class PersonalTokens:
    """Makes tokens that the backend and the MCP server at `mcp_url` accept; `secret` signs them."""

    def __init__(self, database: Database, *, secret: str, mcp_url: str, mode: str, needs_account: bool) -> None:
        """With `needs_account`, only users with an account get tokens; `mode` is AUTH_MODE."""
        self._database = database
        self._mode, self._needs_account = mode, needs_account
        self._secret = secret
        self._mcp_url = mcp_url

    async def make(
        self, user_id: str, *, name: str, scopes: Sequence[str], days: int, by: str | None = None
    ) -> PersonalToken:
        """Stores a token's session and returns both.

        Raises `TooManyTokens`, and `AccountDisabled`, also if the session `by`, which makes it, has ended.
        """
        expires = int(time.time()) + days * _DAY_SECONDS
        values = {"id": new_session_id(), "name": name, "scopes": list(scopes), "most": _MAX_TOKENS}
        check = {"password_hash": None, "by": by, "needs_account": self._needs_account}
        async with self._database.transaction(user_id) as tx:
            await tx.execute(_LOCK_USER)  # two would both see the last free place
            await tx.execute(LOCK_ACCOUNT)
            until = datetime.fromtimestamp(expires, UTC)
            added = await tx.execute(_ADD, Session, expires=until, most_a_day=_MAX_A_DAY, **values, **check)
            allowed = await tx.execute(_MAY_BEGIN, **check)
            session = await added.fetchone()
            if session is not None:
                await send_event(tx, "token_made", name=name, scopes=list(scopes))
        if session is None:
            row = await allowed.fetchone()
            raise TooManyTokens if row and row["may_begin"] else AccountDisabled
        audience, scope = [API, self._mcp_url], " ".join(scopes)
        claims = {"jti": session.id, "scope": scope, MODE: self._mode}
        token = make_token(self._secret, user_id, audience=audience, expires=expires, **claims)
        return PersonalToken(token, session)


def is_token_name(name: str) -> bool:
    return name == name.strip() and is_single_line_text(name, max_length=MAX_NAME_LENGTH)
