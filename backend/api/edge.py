"""The checks of every HTTP request, known host, known origin and JSON, and the headers of every response."""

import re
from collections.abc import Iterable

from starlette.datastructures import Headers
from starlette.middleware.cors import CORSMiddleware
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from backend.api.errors import BodyNotJson, ForeignHost, ForeignWebsite, render_error
from backend.errors import BackendError, InvalidRequest, shorten
from common.server.response_headers import HEADERS, add_headers

TIME_ZONE_HEADER = "X-Time-Zone"
LOOPBACK = frozenset({"localhost", "127.0.0.1", "[::1]"})
_HEADERS = HEADERS | {"Cross-Origin-Opener-Policy": "same-origin", "Cross-Origin-Resource-Policy": "same-origin"}
_FOREIGN_WEBSITE = (
    f"{ForeignWebsite.__doc__} Its operator can add the website to ALLOWED_ORIGINS, or, behind an HTTPS proxy, the "
    "proxy's address to TRUSTED_PROXIES."
)
_HOST = re.compile(r"(\[[0-9a-f:.]+\]|[^:\[\]]+)(?::[0-9]{0,5})?")
_DEFAULT_PORTS = {"http": ":80", "https": ":443"}


class Edge:
    """Rejects foreign hosts (DNS rebinding), foreign origins and bodies that are no JSON, before anything else runs."""

    def __init__(self, app: ASGIApp, *, hosts: Iterable[str], origins: Iterable[str]) -> None:
        self._origins = tuple(origins)
        self._hosts = LOOPBACK | {host.lower() for host in hosts}
        cors = _Cors(
            app,
            allow_origins=self._origins,
            allow_credentials=True,
            allow_methods=["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"],
            allow_headers=[
                *("authorization", "content-type", TIME_ZONE_HEADER, "idempotency-key", "last-event-id", "if-match"),
                "x-ai-sdk-version",
            ],
            expose_headers=["x-request-id", "retry-after", "x-vercel-ai-ui-message-stream", "etag"],
        )
        self._app = cors if self._origins else app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        error = self._find_error(scope, Headers(scope=scope))
        answer = self._app if error is None else render_error(error)
        await answer(scope, receive, add_headers(scope, send, _HEADERS))

    def _find_error(self, scope: Scope, headers: Headers) -> BackendError | None:
        if remove_port(headers.get("host", "").lower()) not in self._hosts:
            return ForeignHost()
        origin = headers.get("origin")
        if origin is not None and origin not in self._origins and origin.lower() != get_own_origin(scope, headers):
            return ForeignWebsite(_FOREIGN_WEBSITE)
        has_body = "transfer-encoding" in headers or headers.get("content-length", "0") != "0"
        media_type = headers.get("content-type", "").partition(";")[0].strip().lower()
        if scope["method"] in ("POST", "PATCH") and has_body and media_type != "application/json":
            return BodyNotJson(f"{BodyNotJson.__doc__} It was sent as {shorten(media_type) or 'no type'}.")
        return None


class _Cors(CORSMiddleware):
    def preflight_response(self, request_headers: Headers) -> Response:
        """Rejects a preflight with an error like those of other requests; Starlette's (1.10) is plain text."""
        response = super().preflight_response(request_headers)
        if response.status_code == 200:
            return response
        method = request_headers["access-control-request-method"]
        headers = request_headers.get("access-control-request-headers")
        sent = shorten(f"{method} with the headers {headers}" if headers else method)
        return render_error(
            InvalidRequest(f"Pages of other websites cannot send {sent}. Leave out what this API lacks.")
        )


def get_own_origin(scope: Scope, headers: Headers) -> str:
    """Returns the origin of this server's pages, by the scheme and Host of the request, as browsers write it."""
    scheme = scope["scheme"]
    return f"{scheme}://{headers.get('host', '').lower().removesuffix(_DEFAULT_PORTS.get(scheme, ''))}"


def remove_port(host: str) -> str:
    found = _HOST.fullmatch(host)
    return found[1] if found else host
