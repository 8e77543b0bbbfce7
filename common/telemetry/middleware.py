from collections.abc import Sequence

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from common.telemetry import request_id, traces


class Watched:
    """Gives every request its id, and each POST to a path of `traced`, or below one, a span; outside of all else.

    What is below a path is named by users, and not traced.
    """

    def __init__(self, app: ASGIApp, *, traced: Sequence[str]) -> None:
        self._app = app
        self._traced = traced

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        asked = request_id.taken_or_made(headers.get(request_id.HEADER, "").strip())
        token = request_id.current.set(asked)
        answer_header = (request_id.HEADER.encode(), asked.encode())

        async def send_with_id(message: Message) -> None:
            if message["type"] == "http.response.start":
                message = {**message, "headers": [*message.get("headers", ()), answer_header]}
                traces.annotate({"http.response.status_code": message["status"]})
            await send(message)

        try:
            place = next((path for path in self._traced if f"{scope['path']}/".startswith(f"{path}/")), None)
            if scope["method"] != "POST" or place is None:
                await self._app(scope, receive, send_with_id)
                return
            said = {"http.request.method": "POST", "url.path": place, "todo.request_id": asked}
            with traces.span(f"POST {place}", said, kind="SERVER", parent=headers):
                await self._app(scope, receive, send_with_id)
        finally:
            request_id.current.reset(token)
