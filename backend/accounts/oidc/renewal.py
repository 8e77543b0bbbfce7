"""Sessions of provider users: their sealed tokens, and the renewals without which they end."""

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime

import psycopg

from backend.accounts.events import add_event
from backend.accounts.oidc.client import ProviderUnavailable
from backend.accounts.oidc.id_tokens import InvalidIdToken
from backend.accounts.oidc.provider import NotAllowed, Provider, Refused, Tokens
from backend.accounts.oidc.sealing import Sealer
from backend.accounts.sessions import Sessions
from common.database import NO_USER, Database, DatabaseUnavailable

log = logging.getLogger(__name__)

LOOK_SECONDS = 5.0
SESSION_SECONDS = 30 * 86_400
"""How long a session may be renewed."""
UNRENEWED_SECONDS = 12 * 3600
"""How long a session lasts without a refresh token, or since the last renewal; also in `claim_renewals`."""
_RENEW_SECONDS = 3600.0
_CLAIM_SECONDS = 120  # longer than a renewal can take, so that no other process uses the same refresh token
_STORE_TRIES = 5
_SHUTDOWN_SECONDS = 5.0
_AT_ONCE = 10
_CLAIM = "SELECT user_id, session_id, claimed_until FROM claim_renewals(%(seconds)s, %(most)s)"
_READ = "SELECT sealed FROM provider_sessions WHERE user_id = %(user)s AND session_id = %(session)s"
_REFUSE = """
UPDATE accounts SET provider_refused_at = now() WHERE user_id = %(user)s AND (
    NOT %(if_signed_out)s OR NOT EXISTS (
        SELECT FROM sessions
        WHERE user_id = %(user)s AND kind = 'session' AND ended_at IS NULL AND expires_at > now()
    )
)"""
_ADMIT = "UPDATE accounts SET provider_refused_at = NULL WHERE user_id = %(user)s AND provider_refused_at IS NOT NULL"
_ADD = """
INSERT INTO provider_sessions (user_id, session_id, sealed, renew_at)
VALUES (%(user)s, %(session)s, %(sealed)s, now() + make_interval(secs => %(seconds)s))"""
# Only by the process whose claim it is.
_MINE = "WHERE user_id = %(user)s AND session_id = %(session)s AND renew_at = %(claimed)s"
_STORE = f"UPDATE provider_sessions SET sealed = %(sealed)s {_MINE}"
_RENEWED = f"""
UPDATE provider_sessions SET renewed_at = now(), renew_at = now() + make_interval(secs => %(seconds)s) {_MINE}"""
# The pause is as long as the renewal is overdue.
_POSTPONE = f"""
UPDATE provider_sessions SET renew_at = now() + least(
    greatest(now() - renewed_at - make_interval(secs => {_RENEW_SECONDS}), interval '1 minute'), interval '30 minutes'
) {_MINE}"""


@dataclass(frozen=True, slots=True)
class ClaimedSession:
    user_id: str
    session_id: str
    claimed_until: datetime


@dataclass(frozen=True, slots=True)
class _Stored:
    subject: str
    id_token: str | None
    refresh_token: str | None


@dataclass(frozen=True, slots=True)
class _End:
    """Why a session ends, and with it the devices that its user has linked.

    Of a user who `is_shut_out`, all other sessions end as well, also tokens and OAuth clients.
    """

    reason: str
    is_refused: bool = False
    """Whether the provider has refused the refresh token."""
    is_shut_out: bool = False


class ProviderSessions:
    """What is stored for each session that a user began at the provider."""

    def __init__(self, database: Database, sessions: Sessions, provider: Provider, sealer: Sealer) -> None:
        self._database, self._sessions, self._provider, self._sealer = database, sessions, provider, sealer

    async def add(self, user_id: str, session_id: str, subject: str, tokens: Tokens) -> None:
        sealed = self._seal(session_id, _Stored(subject, tokens.id_token, tokens.refresh_token))
        # Without a refresh token, the first renewal would be due when the session has ended.
        seconds = _get_pause(tokens) if tokens.refresh_token else UNRENEWED_SECONDS
        async with self._database.transaction(user_id) as tx:
            await tx.execute(_ADMIT)
            await tx.execute(_ADD, session=session_id, sealed=sealed, seconds=seconds)

    async def refuse(self, user_id: str, *, if_signed_out: bool = False) -> None:
        """Ends the notifications, scheduled runs and calendar link of a user until they sign in again.

        With `if_signed_out`, it does so only if no session of theirs is open.
        """
        await self._database.execute(user_id, _REFUSE, if_signed_out=if_signed_out)

    async def get_id_token(self, user_id: str, session_id: str) -> str | None:
        """Returns the last ID token of a session, by which the provider knows what to end."""
        stored = await self._read(user_id, session_id)
        return stored and stored.id_token

    async def renew_due(self) -> None:
        """Renews the sessions for which it is time, of all users. Raises `DatabaseUnavailable`."""
        while True:
            claims = await self._database.fetch_all(
                NO_USER, _CLAIM, ClaimedSession, seconds=_CLAIM_SECONDS, most=_AT_ONCE
            )
            renewing = asyncio.gather(*(self._renew(claim) for claim in claims))
            try:
                await asyncio.shield(renewing)
            except asyncio.CancelledError:  # a token that the provider has replaced would be lost
                with suppress(TimeoutError):
                    await asyncio.wait_for(renewing, _SHUTDOWN_SECONDS)
                raise
            if len(claims) < _AT_ONCE:
                return

    async def _renew(self, claim: ClaimedSession) -> None:
        try:
            try:
                ended = await self._find_end(claim)
            except ProviderUnavailable as error:
                log.warning("a session could not be renewed at the identity provider: %s", error.reason)
                await self._update(claim, _POSTPONE)
                return
            if ended is not None and ended.is_shut_out:  # first: an ended session is not renewed again
                await self.refuse(claim.user_id)
            if ended is not None and await self._sessions.end(claim.user_id, claim.session_id):
                log.info("a session was not renewed: %s", ended.reason)
                await self._sessions.end_others(
                    claim.user_id, but=None, kinds=None if ended.is_shut_out else ("device",)
                )
                if ended.is_refused:
                    await self.refuse(claim.user_id, if_signed_out=True)
                await add_event(self._database, claim.user_id, "session_ended", reason=ended.reason)
        except (DatabaseUnavailable, psycopg.Error) as error:  # it is tried again when the claim has passed
            log.warning("a session could not be renewed: %s", type(error).__name__)

    async def _find_end(self, claim: ClaimedSession) -> "_End | None":
        """Renews a session; returns why it must end instead, if so."""
        stored = await self._read(claim.user_id, claim.session_id)
        if stored is None or stored.refresh_token is None:
            return _End("its refresh token cannot be read")
        try:
            tokens = await self._provider.refresh(stored.refresh_token)
            renewed = _Stored(stored.subject, tokens.id_token or stored.id_token, tokens.refresh_token)
            # Stored before it is checked: the provider may have ended the one before.
            await self._try(lambda: self._update(claim, _STORE, sealed=self._seal(claim.session_id, renewed)))
            await self._provider.check_renewal(tokens, stored.subject)
        except Refused:
            return _End("the provider has ended it", is_refused=True)
        except NotAllowed:
            return _End("OIDC_ALLOWED does not match any longer", is_shut_out=True)
        except InvalidIdToken as error:
            return _End(f"the new ID token is not valid: {error}")
        await self._try(lambda: self._update(claim, _RENEWED, seconds=_get_pause(tokens)))
        await self._database.execute(claim.user_id, _ADMIT)
        return None

    async def _update(self, claim: ClaimedSession, statement: str, **values: object) -> None:
        where = {"session": claim.session_id, "claimed": claim.claimed_until}
        await self._database.execute(claim.user_id, statement, **where, **values)  # pyright: ignore[reportArgumentType]

    @staticmethod
    async def _try(store: Callable[[], Awaitable[None]]) -> None:
        """Stores what a renewal changed, also after a short outage of the database."""
        for pause in range(1, _STORE_TRIES):
            with suppress(DatabaseUnavailable):
                return await store()
            await asyncio.sleep(pause)
        return await store()

    async def _read(self, user_id: str, session_id: str) -> _Stored | None:
        row = await self._database.fetch_one(user_id, _READ, session=session_id)
        content = self._sealer.open(row["sealed"], session_id) if row else None
        return _Stored(**json.loads(content)) if content else None

    def _seal(self, session_id: str, stored: _Stored) -> bytes:
        content = {"subject": stored.subject, "id_token": stored.id_token, "refresh_token": stored.refresh_token}
        return self._sealer.seal(json.dumps(content).encode(), session_id)


def _get_pause(tokens: Tokens) -> float:
    """Returns the seconds to the next renewal: an hour, or half of what the refresh token lasts."""
    return min(_RENEW_SECONDS, (tokens.refresh_seconds or float("inf")) / 2)
