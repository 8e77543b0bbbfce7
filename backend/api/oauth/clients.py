"""OAuth clients: registered ones, whose id is their signed description, and those with a metadata document (CIMD).

No client is stored: who registers any number of them fills no table (RFC 7591, appendix A.5.2).
"""

import asyncio
import hashlib
import hmac
import logging
import re
import secrets
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import SplitResult, parse_qsl, urlsplit

import jwt

from common.text import is_single_line_text, is_storable, remove_invisible

if TYPE_CHECKING:
    from fastmcp.server.auth.cimd import CIMDFetcher

log = logging.getLogger(__name__)

PUBLIC_CLIENT = "none"
"""How clients authenticate at the token endpoint: not at all, as a secret of theirs could not be kept."""
MAX_REDIRECT_URIS = 5
_MAX_URI_LENGTH = 300
_MAX_NAME_LENGTH = 80
_MAX_ID_LENGTH = 4_000
_AUDIENCE = "todo-assistant/client"
_FETCH_SECONDS = 10.0
_LOOPBACK = ("localhost", "127.0.0.1", "::1")
# They open something in the browser itself, some with the rights of the page that leads there.
_BROWSER_SCHEMES = frozenset(
    (
        *("javascript", "data", "vbscript", "file", "blob", "filesystem", "about", "view-source", "chrome"),
        *("resource", "ftp", "ws", "wss"),
    )
)
_SCHEME = re.compile("[a-z][a-z0-9+.-]*")
_PARAMETERS = frozenset(("code", "state", "iss", "error", "error_description", "error_uri"))
UNNAMED = "A program without a name"


@dataclass(frozen=True, slots=True)
class OAuthClient:
    """`host` is of its metadata document, which proves whose client it is; None for a registered one."""

    id: str
    name: str
    redirect_uris: tuple[str, ...]
    host: str | None = None

    def allows(self, redirect_uri: str) -> bool:
        """Whether codes may be sent there: the address is the client's, or differs in the port on this machine.

        A program opens whatever port is free (RFC 8252, section 7.3).
        """
        if not is_redirect_uri(redirect_uri):
            return False
        return any(one == redirect_uri or _is_same_program(one, redirect_uri) for one in self.redirect_uris)


class Clients:
    def __init__(self, secret: str) -> None:
        self._key = hmac.digest(secret.encode(), _AUDIENCE.encode(), "sha256")
        self._documents = _create_fetcher()

    def register(self, name: str | None, redirect_uris: Iterable[str]) -> str:
        """Returns the id of a new client."""
        claims = {"aud": _AUDIENCE, "id": secrets.token_urlsafe(6), "name": name or "", "uris": [*redirect_uris]}
        return jwt.encode(claims, self._key, algorithm="HS256")

    def is_known(self, client_id: str) -> bool:
        """Whether such a client exists, as far as that can be said without its metadata document."""
        return self._is_document(client_id) or self._read_id(client_id) is not None

    async def find(self, client_id: str) -> OAuthClient | None:
        return await self._fetch(client_id) if self._is_document(client_id) else self._read_id(client_id)

    def _read_id(self, client_id: str) -> OAuthClient | None:
        if len(client_id) > _MAX_ID_LENGTH or not client_id.isascii():
            return None
        try:
            claims = jwt.decode(client_id, self._key, algorithms=["HS256"], audience=_AUDIENCE)
        except jwt.PyJWTError:
            return None
        return OAuthClient(client_id, clean_name(claims["name"]), tuple(claims["uris"]))

    def _is_document(self, client_id: str) -> bool:
        return self._documents.is_cimd_client_id(client_id) and is_redirect_uri(client_id)

    async def _fetch(self, address: str) -> OAuthClient | None:
        """Reads a metadata document. FastMCP (4.2) connects to public addresses only, over https, without redirects."""
        try:
            async with asyncio.timeout(_FETCH_SECONDS):
                document = await self._documents.fetch(address)
        except Exception as error:  # noqa: BLE001 - a document may be anything, such as JSON that is too deep
            log.info("cannot read the metadata document of a client: %s", type(error).__name__)
            return None
        if document.token_endpoint_auth_method != PUBLIC_CLIENT or str(document.client_id) != address:
            return None
        allowed = tuple(uri for uri in document.redirect_uris if is_redirect_uri(uri))
        return OAuthClient(address, clean_name(document.client_name), allowed, urlsplit(address).hostname)


def _create_fetcher() -> "CIMDFetcher":
    # Not at the top: it takes a tenth of a second, and only servers with accounts need it.
    from fastmcp.server.auth.cimd import CIMDFetcher

    logger = logging.getLogger("fastmcp")
    logger.handlers.clear()  # it has a format of its own (FastMCP 4.2)
    logger.propagate = True
    logger.setLevel(logging.WARNING)  # a line of less has the client's name
    return CIMDFetcher(timeout=_FETCH_SECONDS)


def clean_name(name: str | None) -> str:
    """Returns a client's own name as a line of text, or one that says that it has none."""
    name = " ".join(remove_invisible((name or "")[: 2 * _MAX_NAME_LENGTH]).split())[:_MAX_NAME_LENGTH]
    return name if is_single_line_text(name, max_length=_MAX_NAME_LENGTH) else UNNAMED


def digest_id(client_id: str) -> str:
    """Returns what stands for a client in codes and tokens: its id may be long."""
    return hashlib.sha256(client_id.encode(errors="surrogatepass")).hexdigest()[:32]


def is_redirect_uri(uri: str) -> bool:
    """Whether codes may be sent to an address: https, http on this machine, or the scheme of another program."""
    is_plain = uri.isascii() and is_storable(uri) and not any(c in uri for c in " \\\"'<>#`")
    if not is_plain or len(uri) > _MAX_URI_LENGTH:
        return False
    try:
        parts = urlsplit(uri)
        _ = parts.port  # raises ValueError
    except ValueError:
        return False
    if not uri.startswith(f"{parts.scheme}:") or not _SCHEME.fullmatch(parts.scheme) or "@" in parts.netloc:
        return False
    if any(name in _PARAMETERS for name, _ in parse_qsl(parts.query, keep_blank_values=True)):
        return False
    if parts.scheme == "https":
        return bool(parts.hostname)
    if parts.scheme == "http":
        return parts.hostname in _LOOPBACK
    return parts.scheme not in _BROWSER_SCHEMES


def describe_address(redirect_uri: str) -> str:
    """Returns where codes are sent, for people: a host, a program of this machine, or another program's scheme."""
    parts = urlsplit(redirect_uri)
    return parts.hostname or "" if parts.scheme in ("http", "https") else f"{parts.scheme}:"


def _is_same_program(registered: str, sent: str) -> bool:
    one, other = urlsplit(registered), urlsplit(sent)
    return one.scheme == "http" and _without_port(one) == _without_port(other)


def _without_port(parts: SplitResult) -> tuple[str, str | None, str, str]:
    return parts.scheme, parts.hostname, parts.path, parts.query
