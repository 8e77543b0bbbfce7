"""A chat-completions endpoint that refuses what a provider refuses, in that provider's words; the rest is scripted.

The rules are those collected from the providers' documentation and from public reports of refused requests.
"""

import json
from collections.abc import Callable, Iterator
from typing import Any

from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

Body = dict[str, Any]
Rule = Callable[[Body], str | None]

COMMON = {"model", "messages", "stream", "stream_options", "tools", "tool_choice", "parallel_tool_calls"} | {
    "temperature",
    "top_p",
    "stop",
    "seed",
    "response_format",
    "user",
}


def only(*more: str) -> Rule:
    return lambda body: next((f"unknown property {key}" for key in body if key not in COMMON | {*more}), None)


def one_strict_value(body: Body) -> str | None:
    values = {tool["function"].get("strict") for tool in body.get("tools", [])}
    return "Tools with mixed values for 'strict' are not allowed" if len(values) > 1 else None


def no_strict(body: Body) -> str | None:
    return next(("unknown property strict" for tool in body.get("tools", []) if "strict" in tool["function"]), None)


def messages_have_only(*keys: str) -> Rule:
    allowed = {"role", "content", "tool_calls", "tool_call_id", "name", "refusal", *keys}

    def rule(body: Body) -> str | None:
        return next(
            (f"messages.{key} unsupported" for message in body["messages"] for key in message if key not in allowed),
            None,
        )

    return rule


def content_is_text(body: Body) -> str | None:
    odd = (message for message in body["messages"] if not isinstance(message.get("content"), str | None))
    return next(("content must be a string" for _ in odd), None)


def temperature_up_to(most: float) -> Rule:
    return lambda body: f"temperature is at most {most}" if body.get("temperature", 0) > most else None


def effort_is(*efforts: str) -> Rule:
    return lambda body: (
        None if body.get("reasoning_effort") in (None, *efforts) else "wrong_api_format: reasoning_effort"
    )


def ids_are_paired(body: Body) -> str | None:
    waiting: list[str] = []
    for message in body["messages"]:
        if message["role"] == "tool":
            if message["tool_call_id"] not in waiting:
                return "tool message without its call"
            waiting.remove(message["tool_call_id"])
        elif waiting:
            return "call without its output"
        waiting += [call["id"] for call in message.get("tool_calls") or []]
    return "call without its output" if waiting else None


RULES: dict[str, tuple[Rule, ...]] = {
    "cerebras": (
        only("max_completion_tokens", "reasoning_effort"),
        one_strict_value,
        messages_have_only("reasoning"),
        temperature_up_to(1.5),
        effort_is("low", "medium", "high"),
        ids_are_paired,
    ),
    "openai": (
        only("max_completion_tokens", "store", "metadata"),
        messages_have_only(),
        temperature_up_to(2),
        ids_are_paired,
    ),
    "ollama": (only("max_tokens"), content_is_text, messages_have_only(), ids_are_paired),
    "anthropic": (
        only("max_tokens", "max_completion_tokens"),
        messages_have_only(),
        temperature_up_to(1),
        ids_are_paired,
    ),
    "custom": (only("max_tokens"), no_strict, content_is_text, messages_have_only(), ids_are_paired),
}
FLAT = {"cerebras"}


def refusals(provider: str, body: Body) -> Iterator[str]:
    return (reason for rule in RULES[provider] if (reason := rule(body)))


class StrictProvider:
    """Wraps the scripted model; `refused` is what it refused, in order."""

    def __init__(self, app: ASGIApp, provider: str) -> None:
        self._app = app
        self._provider = provider
        self.refused: list[str] = []

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or not scope["path"].endswith("/chat/completions"):
            await self._app(scope, receive, send)
            return
        body = b""
        while (message := await receive())["type"] == "http.request":
            body += message.get("body", b"")
            if not message.get("more_body"):
                break
        reason = next(refusals(self._provider, json.loads(body)), None)
        if reason is not None:
            self.refused.append(reason)
            await self._refuse(reason)(scope, receive, send)
            return
        pending: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

        async def replay() -> Message:
            return pending.pop() if pending else await receive()

        await self._app(scope, replay, send)

    def _refuse(self, reason: str) -> JSONResponse:
        error = {
            "message": reason,
            "type": "invalid_request_error",
            "param": "validation_error",
            "code": "wrong_api_format",
        }
        return JSONResponse(error if self._provider in FLAT else {"error": error}, status_code=400)
