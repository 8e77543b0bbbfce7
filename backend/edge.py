"""What every HTTP request passes: known host, known origin, and the headers every answer carries."""

from collections.abc import Iterable

from starlette.datastructures import Headers, MutableHeaders
from starlette.middleware.cors import CORSMiddleware
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

LOOPBACK = frozenset({"localhost", "127.0.0.1", "[::1]"})
HEADERS = {
    "Content-Security-Policy": "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}


class Edge:
    """Refuses foreign hosts (DNS rebinding) and foreign origins, before anything of the application runs."""

    def __init__(self, app: ASGIApp, *, hosts: Iterable[str], origins: Iterable[str]) -> None:
        self._origins = tuple(origins)
        self._hosts = LOOPBACK | {host.lower() for host in hosts}
        cors = CORSMiddleware(
            app,
            allow_origins=self._origins,
            allow_methods=["GET", "POST", "DELETE"],
            allow_headers=["authorization", "content-type"],
        )
        self._app = cors if self._origins else app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        refusal = self._refuse(Headers(scope=scope))
        await (refusal or self._app)(scope, receive, send_with_headers)

    def _refuse(self, headers: Headers) -> JSONResponse | None:
        host = headers.get("host", "").lower()
        if without_port(host) not in self._hosts:
            sentence = "This host name is not served here: add it to ALLOWED_HOSTS."
            return JSONResponse({"error": sentence}, status_code=421)
        origin = headers.get("origin")
        if origin is not None and origin not in self._origins and origin.lower().partition("://")[2] != host:
            sentence = "Requests from this web page's origin are not served: add it to ALLOWED_ORIGINS."
            return JSONResponse({"error": sentence}, status_code=403)
        return None


def without_port(host: str) -> str:
    return host if host.endswith("]") else host.rpartition(":")[0] or host
