"""What each provider refuses, as its documentation and public reports of refused requests have it.

docs/providers.md names the pages.
"""

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


def no_names(body: Body) -> str | None:
    return next(("messages[].name is not supported" for message in body["messages"] if "name" in message), None)


def content_is_text(body: Body) -> str | None:
    odd = (message for message in body["messages"] if not isinstance(message.get("content"), str | None))
    return next(("content must be a string" for _ in odd), None)


def temperature_up_to(most: float) -> Rule:
    return lambda body: f"temperature is at most {most}" if body.get("temperature", 0) > most else None


def no_temperature_for(models: str) -> Rule:
    """Models that think choose it by themselves; an effort of none says that they do not."""
    return lambda body: (
        "temperature is deprecated for this model"
        if "temperature" in body and re.match(models, body["model"]) and body.get("reasoning_effort") != "none"
        else None
    )


def no_tools_while_reasoning(models: str) -> Rule:
    return lambda body: (
        "function tools are not supported: set reasoning_effort to 'none'"
        if body.get("tools") and re.match(models, body["model"]) and body.get("reasoning_effort") != "none"
        else None
    )


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
        only("max_completion_tokens", "store", "metadata", "reasoning_effort"),
        messages_have_only(),
        temperature_up_to(2),
        no_temperature_for(r"o\d|gpt-[5-9]"),
        no_tools_while_reasoning(r"gpt-5\.6|gpt-6"),
        ids_are_paired,
    ),
    "ollama": (
        only("max_tokens", "reasoning_effort"),
        content_is_text,
        messages_have_only("reasoning"),
        effort_is("low", "medium", "high", "max", "none"),
        ids_are_paired,
    ),
    "anthropic": (
        only("max_tokens", "max_completion_tokens"),
        messages_have_only(),
        temperature_up_to(1),
        no_temperature_for(r"claude-\w+-(4-[7-9]|[5-9])"),
        ids_are_paired,
    ),
    "groq": (
        only("max_completion_tokens", "reasoning_effort"),
        messages_have_only(),
        no_names,
        temperature_up_to(2),
        effort_is("low", "medium", "high"),
        ids_are_paired,
    ),
    "openrouter": (
        only("max_tokens", "reasoning_effort", "reasoning"),
        messages_have_only("reasoning", "reasoning_details"),
        temperature_up_to(2),
        effort_is("low", "medium", "high", "xhigh", "max", "minimal", "none"),
        ids_are_paired,
    ),
    "custom": (only("max_tokens"), no_strict, content_is_text, messages_have_only(), ids_are_paired),
}


def refusals(provider: str, body: Body) -> Iterator[str]:
    return (reason for rule in RULES[provider] if (reason := rule(body)))
