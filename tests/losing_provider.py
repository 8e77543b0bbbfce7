"""A chat-completions endpoint that loses the calls of streamed answers, as several servers of local models did."""

import json
from typing import Any

from starlette.types import ASGIApp, Message, Receive, Scope, Send

_DATA = b"data: "


class LosingProvider:
    """Wraps the scripted model."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def lose(message: Message) -> None:
            body: bytes = message.get("body", b"")
            if body.startswith(_DATA) and body.strip() != _DATA + b"[DONE]":
                message = {
                    **message,
                    "body": _DATA + json.dumps(_without_calls(json.loads(body[6:]))).encode() + b"\n\n",
                }
            await send(message)

        await self._app(scope, receive, lose)


def _without_calls(chunk: dict[str, Any]) -> dict[str, Any]:
    for choice in chunk["choices"]:
        choice["delta"].pop("tool_calls", None)
        if choice["finish_reason"] == "tool_calls":
            choice["finish_reason"] = "stop"
    return chunk
