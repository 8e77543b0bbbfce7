"""Answers HEAD like GET, without the body."""

import asyncio

from starlette.types import ASGIApp, Message, Receive, Scope, Send


class HeadRequests:
    """Lets the route of GET answer a HEAD request, and drops the body of the response.

    A stream ends after its headers, as its reader seems to disconnect then.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] != "HEAD":
            await self._app(scope, receive, send)
            return
        has_started, has_body = asyncio.Event(), True

        async def receive_until_start() -> Message:
            nonlocal has_body
            if has_body:
                message = await receive()
                has_body = message.get("more_body", False)
                return message
            await has_started.wait()
            return {"type": "http.disconnect"}

        async def send_start(message: Message) -> None:
            if message["type"] == "http.response.start":
                await send(message)
                await send({"type": "http.response.body"})
                has_started.set()

        await self._app({**scope, "method": "GET"}, receive_until_start, send_start)
