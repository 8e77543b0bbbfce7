import json
from typing import Any

from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tests.strict_provider import habits
from tests.strict_provider.rules import refusals

_DATA = "data: "
_CHARS = 4  # of a token


class StrictProvider:
    """Wraps the scripted model; `refused` is what it refused, `headers` what it was sent with each request, in order.

    A request with more tokens than the `context` is cut from the front, and nothing said.
    """

    def __init__(self, app: ASGIApp, provider: str, *, loses_calls: bool = False, context: int | None = None) -> None:
        self._app = app
        self._provider = provider
        self._loses_calls = loses_calls
        self._context = context
        self.refused: list[str] = []
        self.headers: list[dict[str, str]] = []

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or not scope["path"].endswith("/chat/completions"):
            await self._app(scope, receive, send)
            return
        self.headers.append({name.decode(): value.decode() for name, value in scope["headers"]})
        raw = b""
        while (message := await receive())["type"] == "http.request":
            raw += message.get("body", b"")
            if not message.get("more_body"):
                break
        body = json.loads(raw)
        reason = next(refusals(self._provider, body), None)
        if reason is not None:
            self.refused.append(reason)
            status = habits.status_of_refusal(self._provider, reason)
            await JSONResponse(habits.error(self._provider, reason, status), status_code=status)(scope, receive, send)
            return
        tokens = self._cut(body)
        sender = habits.ANSWERS.get(self._provider, habits.Answer)()
        pending: list[Message] = [{"type": "http.request", "body": json.dumps(body).encode(), "more_body": False}]

        async def replay() -> Message:
            return pending.pop() if pending else await receive()

        async def deliver(message: Message) -> None:
            if text := message.get("body", b"").decode():
                message = {**message, "body": self._as_sent(text, tokens, sender).encode()}
            await send(message)

        await self._app(scope, replay, deliver)

    def _cut(self, body: dict[str, Any]) -> int:
        """The tokens that are read of a request."""
        while (tokens := len(json.dumps(body)) // _CHARS) > (self._context or tokens) and len(body["messages"]) > 1:
            del body["messages"][0]
        return min(tokens, self._context or tokens)

    def _as_sent(self, text: str, tokens: int, sender: habits.Answer) -> str:
        """A frame of a stream, or a whole answer, as the provider sends it."""
        is_streamed = text.startswith(_DATA)
        before = sender.before if is_streamed else ""
        if text.startswith(f"{_DATA}[DONE]") and not sender.says_done:
            return ""
        try:
            answer = json.loads(text.removeprefix(_DATA))
        except ValueError:
            return before + text
        if not isinstance(answer, dict) or "choices" not in answer:
            return before + text
        if answer.get("usage"):
            answer["usage"]["prompt_tokens"] = tokens
        if not is_streamed:
            return json.dumps(sender.send(answer)[-1])
        frames = sender.send(answer)
        if self._loses_calls:
            for frame in frames:
                habits.lose_calls(frame)
        return "".join(f"{before}{_DATA}{json.dumps(frame)}\n\n" for frame in frames)
