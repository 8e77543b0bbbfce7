"""What servers demand of the model turns that they are given back, in the words of public reports."""

from collections.abc import Callable
from typing import Any

from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tests.strict_provider.endpoint import read_body

Json = dict[str, Any]
Demand = Callable[[list[Json]], str | None]
"""Returns why a server rejects these messages."""


class DemandingServer:
    """Wraps the scripted model; `rejections` has the reasons of rejected requests."""

    def __init__(self, app: ASGIApp, demand: Demand, status: int = 400) -> None:
        self._app, self._demand, self._status = app, demand, status
        self.rejections: list[str] = []

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or not scope["path"].endswith("/chat/completions"):
            await self._app(scope, receive, send)
            return
        body, raw = await read_body(receive)
        if (reason := self._demand(body["messages"])) is not None:
            self.rejections.append(reason)
            error = {"error": {"message": reason, "type": "invalid_request_error", "code": "invalid_request_error"}}
            await JSONResponse(error, status_code=self._status)(scope, receive, send)
            return
        pending: list[Message] = [{"type": "http.request", "body": raw, "more_body": False}]

        async def replay() -> Message:
            return pending.pop() if pending else await receive()

        await self._app(scope, replay, send)


def _called(messages: list[Json]) -> list[tuple[int, Json]]:
    return [(number, message) for number, message in enumerate(messages) if message.get("tool_calls")]


def reject_null(messages: list[Json]) -> str | None:
    """Ollama, GLM in its cloud: pydantic/pydantic-ai#5206, Dicklesworthstone/pi_agent_rust#45."""
    nulls = (number for number, message in enumerate(messages) if message.get("content") is None)
    return next((f"messages.{number}.content: invalid message content type: <nil>" for number in nulls), None)


def reject_empty(messages: list[Json]) -> str | None:
    """Bedrock behind several gateways: vercel/ai#14618."""
    empty = any(message.get("content") == "" for message in messages)
    return "ValidationException: messages: text content blocks must be non-empty" if empty else None


def reject_null_and_empty(messages: list[Json]) -> str | None:
    """Bedrock's Converse behind a gateway: Portkey-AI/gateway#995."""
    at = next((number for number, one in enumerate(messages) if "content" in one and not one["content"]), None)
    words = "bedrock error: The content field in the Message object at messages.{} is empty. Add a ContentBlock object"
    return None if at is None else words.format(at)


def require_content(messages: list[Json]) -> str | None:
    missing = any("content" not in message for message in messages)
    return "messages: Field required: content" if missing else None


def require_reasoning_content(messages: list[Json]) -> str | None:
    """DeepSeek V4, for all answers of a run with calls: qwersyk/Newelle#404, api-docs.deepseek.com."""
    turns = [message for message in messages if message["role"] == "assistant"]
    lacks = _called(messages) and not all(message.get("reasoning_content") for message in turns)
    return "The `reasoning_content` in the thinking mode must be passed back to the API." if lacks else None


def require_kimi_reasoning(messages: list[Json]) -> str | None:
    """Kimi K2.6 behind a gateway that sends `reasoning`: liliMozi/openhanako#1667, earendil-works/pi#4514."""
    for number, message in _called(messages):
        if "reasoning" in message:
            return f"Error from provider: Extra inputs are not permitted, field: 'messages[{number}].reasoning'"
        if not message.get("reasoning_content"):
            return (
                f"thinking is enabled but reasoning_content is missing in assistant tool call message at index {number}"
            )
    return None


def reject_reasoning_content(messages: list[Json]) -> str | None:
    """Cerebras, egoist/chatwise-releases#1442."""
    name = next((f"messages.{at}.assistant.reasoning_content" for at, one in _having(messages)), None)
    return None if name is None else f"{name}: property '{name}' is unsupported"


def forbid_reasoning_content(messages: list[Json]) -> str | None:
    """Mistral behind LiteLLM, BerriAI/litellm#30835; Mistral itself, charmbracelet/crush#1590."""
    at = next((number for number, _ in _having(messages)), None)
    loc = f'["body","messages",{at},"assistant","reasoning_content"]'
    return None if at is None else f'[{{"type":"extra_forbidden","loc":{loc},"msg":"Extra inputs are not permitted"}}]'


def _having(messages: list[Json]) -> list[tuple[int, Json]]:
    return [(number, message) for number, message in enumerate(messages) if "reasoning_content" in message]


def require_details(messages: list[Json]) -> str | None:
    """Gemini 3 over OpenRouter: RooCodeInc/Roo-Code#10307, microsoft/agent-framework#2947."""
    lacks = any(not message.get("reasoning_details") for _, message in _called(messages))
    return "Function call is missing a thought_signature in functionCall parts." if lacks else None


def require_signature(messages: list[Json]) -> str | None:
    """Gemini through an endpoint like OpenAI's: securo-finance/securo#884."""
    for _, message in _called(messages):
        if "thought_signature" not in str(message["tool_calls"][0].get("extra_content")):
            return "Function call is missing a thought_signature in functionCall parts."
    return None


def require_signed_ids(messages: list[Json]) -> str | None:
    """Gemini behind LiteLLM, which puts signatures into ids: BerriAI/litellm#16895."""
    for number, message in _called(messages):
        ids = [call["id"] for call in message["tool_calls"]]
        outputs = [one["tool_call_id"] for one in messages[number + 1 : number + 1 + len(ids)]]
        if "__thought__" not in ids[0] or ids != outputs:
            return "Function call is missing a thought_signature in functionCall parts."
    return None


def require_opaque(messages: list[Json]) -> str | None:
    """Copilot's chat completions: anomalyco/opencode#8900."""
    lacks = any(not message.get("reasoning_opaque") for _, message in _called(messages))
    return "Invalid request: missing reasoning_opaque (thought signature)" if lacks else None


def require_whole_thinking(messages: list[Json]) -> str | None:
    """Claude behind OpenRouter or LiteLLM, whose signature is of the whole text: apache/seatunnel#10902."""
    for _, message in _called(messages):
        texts = [part["text"] for part in message.get("reasoning_details", ()) if part.get("signature") == "c2ln"]
        if texts != ["One thing to add."]:
            return "messages.1.content.0: Invalid `signature` in `thinking` block"
    return None


def fail_template(messages: list[Json]) -> str | None:
    """A chat template that joins texts, in llama.cpp, which answers with status 500."""
    nulls = any(message.get("content") is None for message in messages)
    return "Value is not callable: null at row 34, column 21 of the template" if nulls else None
