import json
from typing import Any

from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tests.strict_provider import habits
from tests.strict_provider.rules import refusals

_DATA = "data: "
_CHARS = 4  # of a token


class StrictProvider:
    """Wraps the scripted model; `refused` is what it refused, in order.

    A request with more tokens than the `context` is cut from the front, and nothing said.
    """

    def __init__(self, app: ASGIApp, provider: str, *, loses_calls: bool = False, context: int | None = None) -> None:
        self._app = app
        self._provider = provider
        self._loses_calls = loses_calls
        self._context = context
        self.refused: list[str] = []

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or not scope["path"].endswith("/chat/completions"):
            await self._app(scope, receive, send)
            return
        raw = b""
        while (message := await receive())["type"] == "http.request":
            raw += message.get("body", b"")
            if not message.get("more_body"):
                break
        body = json.loads(raw)
        reason = next(refusals(self._provider, body), None)
        if reason is not None:
            self.refused.append(reason)
            await JSONResponse(habits.error(self._provider, reason, 400), status_code=400)(scope, receive, send)
            return
        tokens = self._cut(body)
        pending: list[Message] = [{"type": "http.request", "body": json.dumps(body).encode(), "more_body": False}]

        async def replay() -> Message:
            return pending.pop() if pending else await receive()

        async def deliver(message: Message) -> None:
            if text := message.get("body", b"").decode():
                message = {**message, "body": self._as_sent(text, tokens).encode()}
            await send(message)

        await self._app(scope, replay, deliver)

    def _cut(self, body: dict[str, Any]) -> int:
        """The tokens that are read of a request."""
        while (tokens := len(json.dumps(body)) // _CHARS) > (self._context or tokens) and len(body["messages"]) > 1:
            del body["messages"][0]
        return min(tokens, self._context or tokens)

    def _as_sent(self, text: str, tokens: int) -> str:
        """A frame of a stream, or a whole answer, as the provider sends it."""
        is_streamed = text.startswith(_DATA)
        before = habits.BEFORE.get(self._provider, "") if is_streamed else ""
        try:
            answer = json.loads(text.removeprefix(_DATA))
        except ValueError:
            return before + text
        if not isinstance(answer, dict) or "choices" not in answer:
            return before + text
        habits.CHANGES.get(self._provider, lambda _: None)(answer)
        if self._loses_calls and is_streamed:
            habits.lose_calls(answer)
        if answer.get("usage"):
            answer["usage"]["prompt_tokens"] = tokens
        return f"{before}{_DATA}{json.dumps(answer)}\n\n" if is_streamed else json.dumps(answer)
