"""The headers that every answer of a service carries."""

from collections.abc import Mapping

from starlette.datastructures import MutableHeaders
from starlette.types import Message, Scope, Send

HEADERS = {
    "Content-Security-Policy": "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
}
# So that a browser that was here once asks by https only; what else the name serves is not ours to say.
_HSTS = {"Strict-Transport-Security": "max-age=31536000"}


def with_headers(scope: Scope, send: Send, headers: Mapping[str, str] = HEADERS) -> Send:
    """Sends answers with these headers, where they have none of that name, and by https with HSTS."""

    async def send_with_headers(message: Message) -> None:
        if message["type"] == "http.response.start":
            sent = MutableHeaders(scope=message)
            for name, value in {**headers, **(_HSTS if scope["scheme"] == "https" else {})}.items():
                sent.setdefault(name, value)
        await send(message)

    return send_with_headers
