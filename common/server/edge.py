"""The checks of every HTTP request, known host, known origin and JSON, and the headers of every response."""

import logging
import re
from collections.abc import Callable, Container, Iterable, Mapping
from ipaddress import IPv4Address, IPv6Address
from typing import Any, ClassVar

from starlette.datastructures import Headers
from starlette.middleware.cors import CORSMiddleware
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from common.server.response_headers import add_headers
from common.settings import is_loopback
from common.text import remove_invisible

log = logging.getLogger(__name__)

LOOPBACK = frozenset({"localhost", "127.0.0.1", "[::1]"})
_HOST = re.compile(r"(\[[0-9a-f:.]+\]|[^:\[\]]+)(?::[0-9]{0,5})?")
_LOOPBACK_ORIGIN = re.compile(r"https?://(localhost|127\.0\.0\.1|\[::1\])(:[0-9]{1,5})?", re.IGNORECASE)
_OF_PROXIES = ("forwarded", "x-real-ip", "via")
_DEFAULT_PORTS = {"http": ":80", "https": ":443"}
_FORM = "application/x-www-form-urlencoded"
_SHOWN_CHARS = 100


class Rejected(Exception):
    """Why a request is rejected at the edge; its docstring is the sentence."""

    status: ClassVar[int]

    def __str__(self) -> str:
        return " ".join((super().__str__() or type(self).__doc__ or "").split())


class ForeignHost(Rejected):
    """This server does not answer to this host name. Its operator can add it to ALLOWED_HOSTS."""

    status = 421


class ForeignWebsite(Rejected):
    """This server does not accept requests from this website. Its operator can add the website to ALLOWED_ORIGINS, or,
    behind an HTTPS proxy, the proxy's address to TRUSTED_PROXIES.
    """

    status = 403


class ForeignMachine(Rejected):
    """Without sign-in, this server only accepts requests of its own machine, at localhost and without a proxy. Its
    operator can set AUTH_MODE, or, behind a proxy that only this machine can reach, AUTH_NONE_BEYOND_LOOPBACK=true.
    """

    status = 403


class BodyNotJson(Rejected):
    """The body must be JSON with Content-Type: application/json."""

    status = 415


class ForeignRequest(Rejected):
    """A preflight of what pages of other websites cannot send."""

    status = 400


Render = Callable[[Rejected], Response]


def render_rejected(error: Rejected) -> Response:
    return JSONResponse({"error": str(error)}, error.status)


class Edge:
    """Rejects foreign hosts (DNS rebinding), foreign origins and bodies that are no JSON, before anything else runs.

    `cors` are further options of Starlette's middleware for pages of `origins`. With `loopback_origins`, pages of other
    ports of this machine may send requests to it, as developers' tools do. With `any_address`, each Host that is an
    address is known, as a container does not know those of its machine: DNS rebinding needs a name. With
    `this_machine_only`, other machines are rejected. Pages of any website may use `public_paths`, where no cookie
    counts, and send forms there; what is behind them answers preflights.
    """

    def __init__(
        self,
        app: ASGIApp,
        *,
        hosts: Iterable[str],
        origins: Iterable[str],
        cors: Mapping[str, Any] | None = None,
        loopback_origins: bool = False,
        any_address: bool = False,
        this_machine_only: bool = False,
        public_paths: Container[str] = (),
        render: Render = render_rejected,
    ) -> None:
        self._public_paths = public_paths
        self._public_app = app
        self._origins = tuple(origins)
        self._hosts = LOOPBACK | {host.lower() for host in hosts}
        self._loopback_origins, self._any_address = loopback_origins, any_address
        self._this_machine_only = this_machine_only
        self._render = render
        self._app = _Cors(app, render, allow_origins=self._origins, **(cors or {})) if self._origins else app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        # httptools leaves the spaces around a value, which are no part of it (RFC 9110, section 5.5).
        scope["headers"] = [(name, value.strip(b" \t")) for name, value in scope["headers"]]
        is_public = scope["path"] in self._public_paths
        error = self._find_error(scope, Headers(scope=scope), is_public)
        app = self._public_app if is_public else self._app
        answer = app if error is None else self._render(error)
        await answer(scope, receive, add_headers(scope, send))

    def _find_error(self, scope: Scope, headers: Headers, is_public: bool) -> Rejected | None:
        host, origin = remove_port(headers.get("host", "").lower()), headers.get("origin")
        if host not in self._hosts and host != _get_address(scope) and not (self._any_address and _is_address(host)):
            log.warning("rejected Host %r: if it is your own, add it to ALLOWED_HOSTS", _shorten(host))
            return ForeignHost()
        if origin is not None and not is_public and not self._is_known(origin, scope, headers):
            log.warning("rejected Origin %r: if it is your own, add it to ALLOWED_ORIGINS", _shorten(origin))
            return ForeignWebsite()
        if self._this_machine_only and not is_from_this_machine(scope):
            return ForeignMachine()
        has_body = "transfer-encoding" in headers or headers.get("content-length", "0") != "0"
        media_type = headers.get("content-type", "").partition(";")[0].strip().lower()
        is_accepted = media_type == "application/json" or (is_public and media_type == _FORM)
        if scope["method"] in ("POST", "PATCH") and has_body and not is_accepted:
            return BodyNotJson(f"{BodyNotJson.__doc__} It was sent as {_shorten(media_type) or 'no type'}.")
        return None

    def _is_known(self, origin: str, scope: Scope, headers: Headers) -> bool:
        if origin in self._origins or origin.lower() == get_own_origin(scope, headers):
            return True
        is_here = remove_port(headers["host"].lower()) in LOOPBACK
        return self._loopback_origins and is_here and _LOOPBACK_ORIGIN.fullmatch(origin) is not None


class _Cors(CORSMiddleware):
    def __init__(self, app: ASGIApp, render: Render, **options: Any) -> None:
        super().__init__(app, **options)
        self._render = render

    def preflight_response(self, request_headers: Headers) -> Response:
        """Rejects a preflight with an error like those of other requests; Starlette's (1.10) is plain text."""
        response = super().preflight_response(request_headers)
        if response.status_code == 200:
            return response
        method = request_headers["access-control-request-method"]
        headers = request_headers.get("access-control-request-headers")
        sent = _shorten(f"{method} with the headers {headers}" if headers else method)
        return self._render(
            ForeignRequest(f"Pages of other websites cannot send {sent}. Leave out what this API lacks.")
        )


def get_own_origin(scope: Scope, headers: Headers) -> str:
    """Returns the origin of this server's pages, by the scheme and Host of the request, as browsers write it."""
    scheme = scope["scheme"]
    return f"{scheme}://{headers.get('host', '').lower().removesuffix(_DEFAULT_PORTS.get(scheme, ''))}"


def is_from_this_machine(scope: Scope) -> bool:
    """Whether both ends of the connection and Host are loopback addresses, and no header is of a proxy.

    A program that forwards bytes, such as `ssh -L` or socat, adds no header: its requests count as this machine's.
    """
    headers, client, server = Headers(scope=scope), scope.get("client"), scope.get("server")
    if client is None or server is None or not (is_loopback(client[0]) and is_loopback(server[0])):
        return False
    if any(name in _OF_PROXIES or name.startswith("x-forwarded-") for name in headers):
        return False
    return is_loopback(remove_port(headers.get("host", "").lower()).strip("[]"))


def remove_port(host: str) -> str:
    found = _HOST.fullmatch(host)
    return found[1] if found else host


def _is_address(host: str) -> bool:
    try:
        return bool(IPv6Address(host[1:-1]) if host.startswith("[") and host.endswith("]") else IPv4Address(host))
    except ValueError:
        return False


def _get_address(scope: Scope) -> str | None:
    """Returns the address at which the request arrived, which no rebinding can give to another website's name."""
    server = scope.get("server")
    if server is None or server[1] is None:  # of a Unix socket
        return None
    return f"[{server[0]}]" if ":" in server[0] else server[0]


def _shorten(sent: str) -> str:
    seen = remove_invisible(sent[:_SHOWN_CHARS])
    return f"{seen}…" if len(sent) > _SHOWN_CHARS else seen
