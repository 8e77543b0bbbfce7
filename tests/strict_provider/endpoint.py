import json
from typing import Any

from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from backend.settings import ProviderName
from tests.strict_provider import responses
from tests.strict_provider.contracts import CONTRACTS
from tests.strict_provider.responses_endpoint import ResponsesEndpoint

_DATA = "data: "
_CHARS_PER_TOKEN = 4


class StrictProvider:
    """Wraps the scripted model; `rejections` has the reasons of rejected requests, `headers` those of every request.

    The oldest messages of a request with more tokens than `context` are silently dropped.
    """

    def __init__(
        self, app: ASGIApp, provider: ProviderName, *, drops_calls: bool = False, context: int | None = None
    ) -> None:
        self._app = app
        self._contract = CONTRACTS[provider]
        self._drops_calls = drops_calls
        self._context = context
        self.rejections: list[str] = []
        self.headers: list[dict[str, str]] = []
        self.responses = ResponsesEndpoint(app, self.rejections)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        paths = ("/chat/completions", "/responses")
        if scope["type"] != "http" or not scope["path"].endswith(paths):
            await self._app(scope, receive, send)
            return
        self.headers.append({name.decode(): value.decode() for name, value in scope["headers"]})
        body, _ = await read_body(receive)
        if scope["path"].endswith("/responses"):
            await self.responses(scope, receive, send, body)
            return
        reason = next(self._contract.find_violations(body), None)
        if reason is not None:
            self.rejections.append(reason)
            status = self._contract.rejection_status
            await JSONResponse(self._contract.render_error(reason, status), status_code=status)(scope, receive, send)
            return
        tokens = self._drop_oldest_messages(body)
        formatter = self._contract.formatter()
        pending: list[Message] = [{"type": "http.request", "body": json.dumps(body).encode(), "more_body": False}]

        async def replay() -> Message:
            return pending.pop() if pending else await receive()

        async def deliver(message: Message) -> None:
            if text := message.get("body", b"").decode():
                message = {**message, "body": self._format(text, tokens, formatter).encode()}
            await send(message)

        await self._app(scope, replay, deliver)

    def _drop_oldest_messages(self, body: dict[str, Any]) -> int:
        """Shortens a request to the context; returns its number of tokens."""
        while (tokens := len(json.dumps(body)) // _CHARS_PER_TOKEN) > (self._context or tokens) and len(
            body["messages"]
        ) > 1:
            del body["messages"][0]
        return min(tokens, self._context or tokens)

    def _format(self, text: str, tokens: int, formatter: responses.Formatter) -> str:
        """Converts an event of a stream, or a whole response, to the provider's format."""
        is_streamed = text.startswith(_DATA)
        prefix = formatter.prefix if is_streamed else ""
        if text.startswith(f"{_DATA}[DONE]") and not formatter.sends_done:
            return ""
        try:
            response = json.loads(text.removeprefix(_DATA))
        except ValueError:
            return prefix + text
        if not isinstance(response, dict) or "choices" not in response:
            return prefix + text
        if response.get("usage"):
            response["usage"]["prompt_tokens"] = tokens
        if not is_streamed:
            return json.dumps(formatter.format(response)[-1])
        chunks = formatter.format(response)
        if self._drops_calls:
            for chunk in chunks:
                responses.drop_calls(chunk)
        return "".join(f"{prefix}{_DATA}{json.dumps(chunk)}\n\n" for chunk in chunks)


async def read_body(receive: Receive) -> tuple[dict[str, Any], bytes]:
    raw = b""
    while (message := await receive())["type"] == "http.request":
        raw += message.get("body", b"")
        if not message.get("more_body"):
            break
    return json.loads(raw), raw
