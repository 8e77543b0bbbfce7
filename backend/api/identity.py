"""Who sends a request, by its token or its session cookie, and when that ends."""

import asyncio
import math
import secrets
import time
from collections.abc import Collection, Container
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any
from urllib.parse import unquote, urlsplit

import jwt
from starlette.requests import HTTPConnection

from backend.accounts.accounts import LOCAL_USER
from backend.accounts.sessions import SIGN_INS, Kind, Sessions
from backend.api.accounts.proxy import ProxyUsers
from backend.api.bearer_tokens import BearerTokens, log_rejection
from backend.api.errors import ForeignOrigin, Unauthorized
from backend.errors import InvalidRequest, shorten
from backend.settings import BackendSettings
from common import scopes
from common.clock import find_zone
from common.server.address_turns import end_address_turn
from common.server.edge import get_own_origin, is_from_this_machine
from common.tokens import (
    ISSUER,
    LEEWAY_SECONDS,
    MODE,
    AccessTokenVerifier,
    OwnTokenRejected,
    SharedSecret,
    make_token,
    read_session_id,
)

OWNER_HEADER, TIME_ZONE_HEADER, USER_HEADER = "X-Owner-Secret", "X-Time-Zone", "X-Expected-User"
SESSION = "todo-assistant/session"
_COOKIE, _MAX_COPIES = "todo_session", 10
_ALL = frozenset({scopes.ALL})


class OtherUser(Unauthorized):
    """Another user is signed in in this browser now. Sign in again to continue."""

    code = "other_user"


class DeviceNotLinked(Unauthorized):
    """This device is not linked. Choose “Use on my phone” on the computer that has your tasks (docs/phone.md)."""

    code = "device_not_linked"


class SignIn:
    """How long the token or cookie of a request opens anything, which a stream may outlive."""

    def __init__(
        self,
        user_id: str,
        *,
        expires: float = math.inf,
        session_id: str | None = None,
        ended: Container[str] = (),
        scopes: frozenset[str] = _ALL,
    ) -> None:
        """`expires` is the `exp` of the token, and `session_id` is of a cookie or token whose session the user can end.

        `ended` has the ids of the sessions that are known to be ended.
        """
        self.user_id, self.session_id, self.scopes = user_id, session_id, scopes
        self._ended = ended
        self._over_at = expires + LEEWAY_SECONDS
        self._is_ended = False

    @property
    def is_over(self) -> bool:
        self._is_ended = self._is_ended or time.time() >= self._over_at or (self.session_id or "") in self._ended
        return self._is_ended

    async def wait_until_over(self, sessions: Sessions, *, look_seconds: float) -> None:
        """Returns when its session was ended, in this or another process, or when it has expired.

        It looks at the clock every `look_seconds`, as that may be set, and does not go on while a machine sleeps.
        """
        while not self.is_over:
            rest = max(0.0, min(self._over_at - time.time(), look_seconds))
            if self.session_id is None:
                await asyncio.sleep(rest)
                continue
            with suppress(TimeoutError):
                await asyncio.wait_for(sessions.ended.wait_for(self.user_id, self.session_id), rest)
                self._is_ended = True

    @property
    def expires(self) -> datetime | None:
        return None if self._over_at == math.inf else datetime.fromtimestamp(self._over_at - LEEWAY_SECONDS, UTC)

    @property
    def can_end(self) -> bool:
        return self._over_at < math.inf or self.session_id is not None

    @property
    def is_by_page(self) -> bool:
        """Whether it is by the page's cookie, and so neither by a token of an identity provider nor by one of ours."""
        return self.session_id is not None and scopes.ALL in self.scopes


@dataclass(frozen=True, slots=True)
class CookieSession:
    """The session that a valid cookie names, and until when the cookie is valid, as Unix time."""

    user_id: str
    id: str
    expires: float


@dataclass(frozen=True, slots=True)
class AuthenticatedUser:
    """The user of a request; `time_zone` is the one that the request names.

    The owner is the user who runs the services: conversations may work in directories of theirs. `is_owner` tells that
    the request has the owner's secret, `is_guest` that it does not although there is one.
    """

    user_id: str
    time_zone: str | None = None
    is_owner: bool = False
    is_guest: bool = False
    sign_in: SignIn = field(default_factory=lambda: SignIn(LOCAL_USER), compare=False)


class Identity:
    """Finds the user of a request by its bearer token or its session cookie, never by its body."""

    def __init__(self, settings: BackendSettings) -> None:
        self.required, self.mode = settings.signs_in, settings.auth_mode
        self.has_sessions = settings.has_sessions
        self.has_provider = settings.auth_mode not in ("none", "password")
        self._serves_this_machine_only = settings.serves_this_machine_only
        self._owner_secret = settings.owner_secret
        self.proxy = ProxyUsers(settings) if settings.auth_mode == "proxy" else None
        if self.has_sessions:
            assert settings.mcp_token_secret
            secret = settings.mcp_token_secret.get_secret_value()
            self.bearer_tokens = BearerTokens(settings, secret)
            self._sessions = AccessTokenVerifier({ISSUER: SharedSecret(secret)}, audience=SESSION, mode=self.mode)
            self._secret = secret

    def is_local(self, request: HTTPConnection) -> bool:
        """Whether a request needs no sign-in: one of this machine, if users do not sign in."""
        return not self.required and (not self._serves_this_machine_only or is_from_this_machine(request.scope))

    async def authenticate(
        self, request: HTTPConnection, sessions: Sessions, *, accepts_password: bool = False
    ) -> AuthenticatedUser:
        """Returns the user; the local one for a request of this machine or a linked device if no sign-in is required.

        With `accepts_password`, the token may also be the password of HTTP's Basic scheme. Raises `Unauthorized`, also
        for an invalid bearer token beside a valid cookie, `OtherUser` if the page that sent it belongs to another one,
        `ForeignOrigin` for a cookie sent from another site, and `InvalidRequest` for an unknown time zone.
        """
        user_id, sign_in = LOCAL_USER, SignIn(LOCAL_USER)
        if self.required:
            user_id, sign_in = await self._find_user(request, sessions, accepts_password=accepts_password)
        elif not self.is_local(request):
            user_id, sign_in = await self.find_device(request, sessions)
        _check_expected_user(request, user_id)
        zone = request.headers.get(TIME_ZONE_HEADER)
        if zone is not None and find_zone(zone) is None:
            raise InvalidRequest(
                f"{TIME_ZONE_HEADER} must be a time zone of IANA's database, such as Europe/Berlin, and not "
                f"{shorten(zone) or 'empty'}."
            )
        is_owner = False
        if self._owner_secret is not None:
            sent = request.headers.get(OWNER_HEADER, "").encode()
            is_owner = secrets.compare_digest(sent, self._owner_secret.get_secret_value().encode())
        return AuthenticatedUser(
            user_id,
            time_zone=zone,
            is_owner=is_owner,
            is_guest=self._owner_secret is not None and not is_owner,
            sign_in=sign_in,
        )

    async def _find_user(
        self, request: HTTPConnection, sessions: Sessions, *, accepts_password: bool
    ) -> tuple[str, SignIn]:
        if self.proxy is not None and (user := self.proxy.read_user(request)) is not None:
            # The browser sends what the proxy knows the user by with requests of any website, as it does a cookie.
            if not (is_from_own_page(request) or _only_reads(request)):
                raise ForeignOrigin
            end_address_turn(request.scope)
            session = await self.proxy.open_session(user, request.app.state.services.database, sessions)
            return user.user_id, SignIn(
                user.user_id, expires=session.expires, session_id=session.id, ended=sessions.ended
            )
        if "authorization" in request.headers:
            claims = await self.bearer_tokens.read(request, accepts_password=accepts_password)
            if claims["iss"] != ISSUER:
                return claims["sub"], SignIn(claims["sub"], expires=claims["exp"])
            end_address_turn(request.scope)  # as for a cookie
            if await sessions.ended.includes(claims["sub"], claims["jti"]):
                raise Unauthorized(str(OwnTokenRejected("ended")))
            return claims["sub"], _create_sign_in(claims, sessions, scopes.read_scopes(claims.get("scope")))
        if self.proxy is not None:  # there are no cookies
            raise Unauthorized
        return await self._find_user_of_cookie(request, sessions)

    async def find_device(self, request: HTTPConnection, sessions: Sessions) -> tuple[str, SignIn]:
        """Returns the local user for the cookie of a linked device. Raises `DeviceNotLinked` and `ForeignOrigin`."""
        if not self.has_sessions:
            raise DeviceNotLinked
        try:
            user_id, sign_in = await self._find_user_of_cookie(request, sessions)
        except Unauthorized:
            raise DeviceNotLinked from None
        if user_id != LOCAL_USER:  # as of an installation in which users signed in
            raise DeviceNotLinked
        return user_id, sign_in

    async def _find_user_of_cookie(self, request: HTTPConnection, sessions: Sessions) -> tuple[str, SignIn]:
        cookies = _sent_cookies(request)
        if not cookies:
            raise Unauthorized
        if len(cookies) > 1:  # one could be somebody else's, put there to have a user work in that session
            raise Unauthorized("Your browser sent two session cookies. Delete this site's cookies and sign in again.")
        claims = await self._get_session_claims(request, cookies[0])
        if await sessions.ended.includes(claims["sub"], claims["jti"]):
            raise Unauthorized
        return claims["sub"], _create_sign_in(claims, sessions, _ALL)

    def create_cookie(self, user_id: str, *, expires: int, session_id: str, kind: Kind) -> str:
        """Creates the value of the page's cookie for a session."""
        claims = {"jti": session_id, "scope": scopes.ALL, "kind": kind, MODE: self.mode}
        return make_token(self._secret, user_id, audience=SESSION, expires=expires, **claims)

    async def list_cookie_sessions(self, request: HTTPConnection) -> list[CookieSession]:
        """Returns the sessions of the request's cookies, of which there may be copies.

        Raises `ForeignOrigin`, `OtherUser`, and `Unauthorized` for more copies than browsers have.
        """
        cookies = _sent_cookies(request) if self.has_sessions else []
        if len(cookies) > _MAX_COPIES:  # checking hundreds would hold up others
            raise Unauthorized("Your browser sent too many session cookies. Delete this site's cookies.")
        found = list[CookieSession]()
        for cookie in cookies:
            with suppress(Unauthorized):  # such a cookie opens nothing as it is
                claims = await self._get_session_claims(request, cookie)
                found.append(CookieSession(claims["sub"], claims["jti"], claims["exp"]))
        for session in found:
            _check_expected_user(request, session.user_id)
        return found

    async def find_session(
        self, request: HTTPConnection, user_id: str, kinds: Collection[Kind] = SIGN_INS
    ) -> str | None:
        """Returns the session of a user whose cookie the request has, if there is one; it may be ended."""
        with suppress(Unauthorized, ForeignOrigin):
            for cookie in _sent_cookies(request)[:1]:
                claims = await self._get_session_claims(request, cookie)
                return claims["jti"] if claims["sub"] == user_id and claims.get("kind", "session") in kinds else None
        return None

    async def _get_session_claims(self, request: HTTPConnection, cookie: str) -> dict[str, Any]:
        if not is_from_own_page(request):
            raise ForeignOrigin
        try:
            claims = await self._sessions.verify(cookie)
            read_session_id(claims)
        except jwt.PyJWTError as error:
            log_rejection(error)
            raise Unauthorized from None
        end_address_turn(request.scope)  # whether it was ended is read with the user's share of the database
        if claims.get("scope") != scopes.ALL:  # as of versions that stored no sessions
            raise Unauthorized
        return claims


def _create_sign_in(claims: dict[str, Any], sessions: Sessions, granted: frozenset[str]) -> SignIn:
    """Notes the use of a session that is open."""
    user_id, session_id = claims["sub"], claims["jti"]
    sessions.uses.note(user_id, session_id)
    return SignIn(user_id, expires=claims["exp"], session_id=session_id, ended=sessions.ended, scopes=granted)


def cookie_name(request: HTTPConnection) -> str:
    """Over https only this very host can set the cookie, and only so (RFC 6265bis, section 4.1.3.2)."""
    return f"__Host-{_COOKIE}" if request.scope["scheme"] == "https" else _COOKIE


def _check_expected_user(request: HTTPConnection, user_id: str) -> None:
    """Raises `OtherUser` if the request names another user, who was signed in when its page was opened."""
    expected = request.headers.get(USER_HEADER)
    if expected is not None and unquote(expected) != user_id:
        raise OtherUser


def _sent_cookies(request: HTTPConnection) -> list[str]:
    parts = (part.partition("=") for header in request.headers.getlist("cookie") for part in header.split(";"))
    name = cookie_name(request)
    return [value.strip() for key, _, value in parts if key.strip() == name]


def is_from_own_page(request: HTTPConnection) -> bool:
    """Whether browsers say that a request comes from this server's page: by Origin, else Sec-Fetch-Site, else Referer.

    They send Sec-Fetch-Site only over https and to loopback addresses, and with GET no Origin.
    """
    origin, site = request.headers.get("origin"), request.headers.get("sec-fetch-site")
    if site not in (None, "same-origin"):
        return False
    if origin is None and site is None:
        origin = _get_referring_origin(request)
    return site is not None if origin is None else origin.lower() == get_own_origin(request.scope, request.headers)


def _get_referring_origin(request: HTTPConnection) -> str | None:
    with suppress(ValueError):
        parts = urlsplit(request.headers.get("referer", ""))
        return f"{parts.scheme}://{parts.netloc}" if parts.netloc else None
    return None


def _only_reads(request: HTTPConnection) -> bool:
    """Whether a request changes nothing, and no page of another website sent it."""
    return request.scope["method"] in ("GET", "HEAD") and request.headers.get("sec-fetch-site") in (None, "none")
