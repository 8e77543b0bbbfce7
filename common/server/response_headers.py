"""The security headers of every response."""

from starlette.datastructures import MutableHeaders
from starlette.types import Message, Scope, Send

HEADERS = {
    "Content-Security-Policy": "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}
# Without includeSubDomains: other services of the domain may not support https.
_HSTS = {"Strict-Transport-Security": "max-age=31536000"}


def add_headers(scope: Scope, send: Send) -> Send:
    """Adds the headers that a response does not have yet, and HSTS to a response by https."""

    async def send_with_headers(message: Message) -> None:
        if message["type"] == "http.response.start":
            response_headers = MutableHeaders(scope=message)
            for name, value in {**HEADERS, **(_HSTS if scope["scheme"] == "https" else {})}.items():
                response_headers.setdefault(name, value)
        await send(message)

    return send_with_headers
