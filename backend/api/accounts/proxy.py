"""Users whom a reverse proxy signs in and names in a header (AUTH_MODE=proxy)."""

import asyncio
import time
from collections import OrderedDict
from dataclasses import dataclass
from datetime import UTC, datetime
from ipaddress import IPv6Address, ip_address, ip_network

from starlette.requests import HTTPConnection

from backend.accounts.accounts import LOCAL_USER, store_account
from backend.accounts.events import add_event
from backend.accounts.sessions import AccountDisabled, Sessions
from backend.api.errors import Unauthorized
from backend.errors import InvalidRequest
from backend.settings import BackendSettings
from common.database import Database
from common.server.connection_owner import get_peer
from common.server.limits import THIS_MACHINE
from common.tokens import is_user_id

_SESSION_SECONDS = 3600
"""How long a stream may stay open: only a new request shows whether the proxy still lets the user in."""
_DISABLED_SECONDS = 1.0
_MAX_USERS = 10_000
_MAX_NAME_LENGTH = 100
_NAME = "Through the proxy"


class InvalidProxyHeader(InvalidRequest):
    """The proxy names no usable user. The operator of this server can find out why in docs/sign-in.md."""

    code = "invalid_proxy_header"


@dataclass(frozen=True, slots=True)
class ProxyUser:
    user_id: str
    name: str


@dataclass(frozen=True, slots=True)
class ProxySession:
    """A session of a user in this process; None: the account is disabled."""

    id: str | None
    name: str
    expires: float
    """Unix time."""


class ProxyUsers:
    """Reads the headers of TRUSTED_PROXIES.

    Each user has a session in each process, so that a disabled account ends at once.
    """

    def __init__(self, settings: BackendSettings) -> None:
        self.sign_out_url = settings.proxy_sign_out_url
        self._user_header = settings.proxy_user_header.lower().encode()
        self._name_header = settings.proxy_name_header.lower().encode()
        trusted = {*settings.trusted_proxies, *(THIS_MACHINE if {*THIS_MACHINE} & {*settings.trusted_proxies} else ())}
        self._networks = [ip_network(one) for one in sorted(trusted)]
        self._sessions = OrderedDict[str, ProxySession]()
        self._beginning = dict[str, asyncio.Task[ProxySession]]()

    def read_user(self, request: HTTPConnection) -> ProxyUser | None:
        """Returns the user whom the proxy names; None without the header, or from any other peer.

        Raises `InvalidProxyHeader`.
        """
        if not self._is_trusted(get_peer(request.scope)):
            return None
        user_id, name = self._read(request, self._user_header), self._read(request, self._name_header)
        if not user_id:
            return None
        if not is_user_id(user_id) or not user_id.isprintable() or user_id == LOCAL_USER:
            raise InvalidProxyHeader
        return ProxyUser(user_id, name[:_MAX_NAME_LENGTH] if name and name.isprintable() else user_id)

    async def open_session(self, user: ProxyUser, database: Database, sessions: Sessions) -> ProxySession:
        """Returns the session of a user, or begins one. Raises `Unauthorized` for a disabled account."""
        found = self._sessions.get(user.user_id)
        is_current = found is not None and found.expires > time.time() and found.name == user.name
        if found is None or not is_current or (found.id and await sessions.ended.includes(user.user_id, found.id)):
            beginning = self._beginning.get(user.user_id)
            if beginning is None:
                beginning = asyncio.create_task(self._begin(user, database, sessions))
                self._beginning[user.user_id] = beginning
                beginning.add_done_callback(lambda _: self._beginning.pop(user.user_id, None))
            found = await asyncio.shield(beginning)
        if found.id is None:
            raise Unauthorized(str(AccountDisabled()))
        return found

    async def _begin(self, user: ProxyUser, database: Database, sessions: Sessions) -> ProxySession:
        if await store_account(database, user.user_id, user.name):
            await add_event(database, user.user_id, "account_made", by="proxy")
        expires = time.time() + _SESSION_SECONDS
        session_id: str | None = None
        try:
            session_id = await sessions.begin(
                user.user_id, kind="session", name=_NAME, expires=datetime.fromtimestamp(expires, UTC)
            )
        except AccountDisabled:
            expires = time.time() + _DISABLED_SECONDS
        begun = self._sessions[user.user_id] = ProxySession(session_id, user.name, expires)
        if len(self._sessions) > _MAX_USERS:
            self._sessions.popitem(last=False)
        return begun

    def _read(self, request: HTTPConnection, header: bytes) -> str | None:
        """Returns the value of a header that must be there once.

        Proxies and frameworks take `_` and `-` for the same, and so one could be a client's that the proxy let through.
        """
        sent = [(name, value) for name, value in request.scope["headers"] if name.replace(b"_", b"-") == header]
        if not sent:
            return None
        if len(sent) > 1 or sent[0][0] != header:
            raise InvalidProxyHeader
        try:
            return sent[0][1].decode()
        except UnicodeDecodeError:
            raise InvalidProxyHeader from None

    def _is_trusted(self, peer: str | None) -> bool:
        try:
            address = ip_address(peer or "")
        except ValueError:
            return False
        if isinstance(address, IPv6Address) and address.ipv4_mapped is not None:
            address = address.ipv4_mapped
        return any(address in network for network in self._networks)
