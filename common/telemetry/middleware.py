import re
import secrets
from collections.abc import Sequence

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from common.telemetry import logs, traces

_ACCEPTED_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")


class TelemetryMiddleware:
    """The outermost middleware: gives every request an id, and each POST to a path of `traced` or below a span.

    The span has only the path of `traced`, because the rest may be chosen by users.
    """

    def __init__(self, app: ASGIApp, *, traced: Sequence[str]) -> None:
        self._app = app
        self._traced = traced

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        id_ = headers.get(traces.REQUEST_ID_HEADER, "").strip()
        if not _ACCEPTED_ID.fullmatch(id_):
            id_ = secrets.token_hex(8)
        token = logs.request_id.set(id_)
        id_header = (traces.REQUEST_ID_HEADER.encode(), id_.encode())

        async def send_with_id(message: Message) -> None:
            if message["type"] == "http.response.start":
                message = {**message, "headers": [*message.get("headers", ()), id_header]}
                traces.annotate({"http.response.status_code": message["status"]})
            await send(message)

        try:
            traced_path = next((path for path in self._traced if f"{scope['path']}/".startswith(f"{path}/")), None)
            if scope["method"] != "POST" or traced_path is None:
                await self._app(scope, receive, send_with_id)
                return
            attributes = {"http.request.method": "POST", "url.path": traced_path, "todo.request_id": id_}
            with traces.span(f"POST {traced_path}", attributes, kind="SERVER", parent=headers):
                await self._app(scope, receive, send_with_id)
        finally:
            logs.request_id.reset(token)
