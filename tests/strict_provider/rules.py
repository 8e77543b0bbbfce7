"""The requests that each provider rejects, by its documentation and by public reports; see `sources.md`."""

import json
import re
from collections.abc import Callable, Iterator
from typing import Any

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


def allow_common_fields_and(*more: str) -> Rule:
    return lambda body: next((f"unknown property {key}" for key in body if key not in COMMON | {*more}), None)


def allow_fields(*known: str) -> Rule:
    return lambda body: next((f"extra_forbidden: {key}" for key in body if key not in known), None)


def require_equal_strict(body: Body) -> str | None:
    values = {tool["function"].get("strict") for tool in body.get("tools", [])}
    return "Tools with mixed values for 'strict' are not allowed" if len(values) > 1 else None


def reject_strict(body: Body) -> str | None:
    return next(("unknown property strict" for tool in body.get("tools", []) if "strict" in tool["function"]), None)


def allow_message_fields(*keys: str) -> Rule:
    allowed = {"role", "content", "tool_calls", "tool_call_id", "name", "refusal", *keys}

    def rule(body: Body) -> str | None:
        return next(
            (f"messages.{key} unsupported" for message in body["messages"] for key in message if key not in allowed),
            None,
        )

    return rule


def reject_names(body: Body) -> str | None:
    return next(("messages[].name is not supported" for message in body["messages"] if "name" in message), None)


def require_text_content(body: Body) -> str | None:
    invalid = (message for message in body["messages"] if not isinstance(message.get("content"), str | None))
    return next(("content must be a string" for _ in invalid), None)


def reject_null_content(body: Body) -> str | None:
    """As Ollama does (pydantic/pydantic-ai#5206)."""
    nulls = (number for number, message in enumerate(body["messages"]) if message.get("content") is None)
    return next((f"messages.{number}.content: invalid message content type: <nil>" for number in nulls), None)


def limit_temperature(maximum: float) -> Rule:
    return lambda body: f"temperature is at most {maximum}" if body.get("temperature", 0) > maximum else None


def reject_temperature_for(models: str) -> Rule:
    """Reasoning models reject a temperature, unless the effort is none."""
    return lambda body: (
        "temperature is deprecated for this model"
        if "temperature" in body and re.match(models, body["model"]) and body.get("reasoning_effort") != "none"
        else None
    )


def reject_tools_while_reasoning(models: str) -> Rule:
    return lambda body: (
        f"Function tools with reasoning_effort are not supported for {body['model']} in /v1/chat/completions. To use"
        " function tools, use /v1/responses or set reasoning_effort to 'none'."
        if body.get("tools") and re.match(models, body["model"]) and body.get("reasoning_effort") != "none"
        else None
    )


def allow_efforts(*efforts: str) -> Rule:
    return lambda body: (
        None if body.get("reasoning_effort") in (None, *efforts) else "wrong_api_format: reasoning_effort"
    )


def require_paired_calls(body: Body) -> str | None:
    open_calls: list[str] = []
    for message in body["messages"]:
        if message["role"] == "tool":
            if message["tool_call_id"] not in open_calls:
                return "tool message without its call"
            open_calls.remove(message["tool_call_id"])
        elif open_calls:
            return "call without its output"
        open_calls += [call["id"] for call in message.get("tool_calls") or []]
    return "call without its output" if open_calls else None


def list_calls(body: Body) -> Iterator[Body]:
    return (call for message in body["messages"] for call in message.get("tool_calls") or ())


def require_nine_character_ids(body: Body) -> str | None:
    invalid = (call["id"] for call in list_calls(body) if not re.fullmatch("[a-zA-Z0-9]{9}", call["id"]))
    return next((f"Tool call id was {id} but must be a-z, A-Z, 0-9, with a length of 9." for id in invalid), None)


def require_object_arguments(body: Body) -> str | None:
    try:
        objects = all(isinstance(json.loads(call["function"]["arguments"]), dict) for call in list_calls(body))
    except ValueError:
        objects = False
    return None if objects else "Failed to parse tool call arguments as JSON"


def require_signed_calls(body: Body) -> str | None:
    """Requires a signature on the first call of each message since the last user message: parallel calls share it."""
    users = [index for index, message in enumerate(body["messages"]) if message["role"] == "user"]
    turn = body["messages"][max(users, default=0) :]
    first = (message["tool_calls"][0] for message in turn if message.get("tool_calls"))
    signed = (call.get("extra_content", {}).get("google", {}).get("thought_signature") for call in first)
    return None if all(signed) else "Function call is missing a thought_signature in functionCall parts."


def require_role_order(*, tool: tuple[str, ...], user: tuple[str, ...], assistant: tuple[str, ...]) -> Rule:
    """Takes the roles that may follow each role. Only the first message may be a system message."""
    after = {"tool": tool, "user": user, "assistant": assistant, "call": ("tool",), None: ("user",)}

    def rule(body: Body) -> str | None:
        last: str | None = None
        for index, message in enumerate(body["messages"]):
            role = message["role"]
            if role == "system" and index == 0:
                continue
            if role not in after[last]:
                return f"Unexpected role '{role}' after role '{last}'"
            last = "call" if message.get("tool_calls") else role
        return None if last in ("user", "tool") else f"Expected last role User or Tool, got {last}"

    return rule


require_alternating_roles = require_role_order(tool=("tool", "assistant"), user=("assistant",), assistant=("user",))


def require_assistant_content(body: Body) -> str | None:
    empty = (
        message
        for message in body["messages"]
        if message["role"] == "assistant" and not message.get("content") and not message.get("tool_calls")
    )
    return next(("Assistant message must have either content or tool_calls" for _ in empty), None)
