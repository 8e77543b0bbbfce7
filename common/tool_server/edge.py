import logging

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from common.edge import with_headers
from common.tool_server.accept import sending_events, with_both
from common.tool_server.refusals import shown

log = logging.getLogger(__name__)


class Edge:
    """Strips header values, completes Accept, serves /mcp/ as /mcp, adds the usual headers and logs refused hosts."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return await self._app(scope, receive, send)
        # httptools leaves the spaces there; RFC 9110 says that they are no part of the value.
        headers = [(name, value.strip(b" \t")) for name, value in scope["headers"]]
        path = "/mcp" if scope["path"] == "/mcp/" else scope["path"]
        as_events = False
        if path == "/mcp" and scope["method"] == "POST":
            headers, as_events = with_both(headers)
        sends = sending_events(send) if as_events else send

        async def watched(message: Message) -> None:
            if message["type"] == "http.response.start":
                _log_refusal(message["status"], Headers(raw=headers))
            await sends(message)

        return await self._app({**scope, "headers": headers, "path": path}, receive, with_headers(scope, watched))


def _log_refusal(status: int, headers: Headers) -> None:
    if status == 421:
        log.warning("rejected Host %r: if it is your own, add it to ALLOWED_HOSTS", shown(headers.get("host", "")))
    elif status == 403:
        log.warning(
            "rejected Origin %r: if it is your own, add it to ALLOWED_ORIGINS", shown(headers.get("origin", ""))
        )
