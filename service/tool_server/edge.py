import logging

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from service.edge import with_headers
from service.tool_server.refusals import shown

log = logging.getLogger(__name__)


class Edge:
    """Takes the spaces off header values, answers /mcp/ as /mcp, adds the usual headers, and logs what was refused."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return await self._app(scope, receive, send)
        # httptools leaves the spaces there; RFC 9110 says that they are no part of the value.
        headers = [(name, value.strip(b" \t")) for name, value in scope["headers"]]
        path = "/mcp" if scope["path"] == "/mcp/" else scope["path"]

        async def watched(message: Message) -> None:
            if message["type"] == "http.response.start":
                _log_refusal(message["status"], Headers(raw=headers))
            await send(message)

        return await self._app({**scope, "headers": headers, "path": path}, receive, with_headers(scope, watched))


def _log_refusal(status: int, headers: Headers) -> None:
    if status == 421:
        log.warning("refused Host %r: if it is yours, add it to ALLOWED_HOSTS", shown(headers.get("host", "")))
    elif status == 403:
        log.warning("refused Origin %r: if it is yours, add it to ALLOWED_ORIGINS", shown(headers.get("origin", "")))
