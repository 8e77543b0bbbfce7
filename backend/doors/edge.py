"""What every HTTP request passes: known host, known origin, JSON, and the headers every answer carries."""

from collections.abc import Iterable

from starlette.datastructures import Headers
from starlette.middleware.cors import CORSMiddleware
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from backend.doors.time_zone import HEADER
from service.edge import HEADERS, with_headers

LOOPBACK = frozenset({"localhost", "127.0.0.1", "[::1]"})
_HEADERS = HEADERS | {"Cross-Origin-Opener-Policy": "same-origin", "Cross-Origin-Resource-Policy": "same-origin"}
_DEFAULT_PORTS = {"http": ":80", "https": ":443"}


class Edge:
    """Refuses foreign hosts (DNS rebinding), foreign origins and bodies that are no JSON, before anything else runs."""

    def __init__(self, app: ASGIApp, *, hosts: Iterable[str], origins: Iterable[str]) -> None:
        self._origins = tuple(origins)
        self._hosts = LOOPBACK | {host.lower() for host in hosts}
        cors = CORSMiddleware(
            app,
            allow_origins=self._origins,
            allow_methods=["GET", "POST", "PUT", "PATCH", "DELETE"],
            allow_headers=["authorization", "content-type", HEADER, "idempotency-key", "last-event-id", "if-match"],
            expose_headers=["x-request-id", "retry-after", "x-vercel-ai-ui-message-stream", "etag"],
        )
        self._app = cors if self._origins else app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        refusal = self._refuse(scope, Headers(scope=scope))
        await (refusal or self._app)(scope, receive, with_headers(scope, send, _HEADERS))

    def _refuse(self, scope: Scope, headers: Headers) -> JSONResponse | None:
        if without_port(headers.get("host", "").lower()) not in self._hosts:
            return _refusal(421, "This host name is not served here: add it to ALLOWED_HOSTS.")
        origin = headers.get("origin")
        if origin is not None and origin not in self._origins and origin.lower() != own_origin(scope, headers):
            return _refusal(
                403,
                "Requests from this web page's origin are not served: add it to ALLOWED_ORIGINS; where it is this "
                "server's own, behind a proxy that speaks https, add the proxy's address to TRUSTED_PROXIES.",
            )
        if scope["method"] in ("POST", "PATCH") and _has_body(headers) and _media_type(headers) != "application/json":
            return _refusal(415, "A body must be JSON and say so: send it with Content-Type: application/json.")
        return None


def own_origin(scope: Scope, headers: Headers) -> str:
    """The origin of the pages that this server serves by the name it was asked by, as browsers spell it."""
    scheme = scope["scheme"]
    return f"{scheme}://{headers.get('host', '').lower().removesuffix(_DEFAULT_PORTS.get(scheme, ''))}"


def without_port(host: str) -> str:
    return host if host.endswith("]") else host.rpartition(":")[0] or host


def _has_body(headers: Headers) -> bool:
    return "transfer-encoding" in headers or headers.get("content-length", "0") != "0"


def _media_type(headers: Headers) -> str:
    return headers.get("content-type", "").partition(";")[0].strip().lower()


def _refusal(status: int, sentence: str) -> JSONResponse:
    return JSONResponse({"error": sentence}, status_code=status)
