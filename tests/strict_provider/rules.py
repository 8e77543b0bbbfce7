"""What each provider refuses, as its documentation and public reports of refused requests have it.

`sources.md` names the pages.
"""

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


def only(*more: str) -> Rule:
    return lambda body: next((f"unknown property {key}" for key in body if key not in COMMON | {*more}), None)


def exactly(*known: str) -> Rule:
    return lambda body: next((f"extra_forbidden: {key}" for key in body if key not in known), None)


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


def calls_of(body: Body) -> Iterator[Body]:
    return (call for message in body["messages"] for call in message.get("tool_calls") or ())


def ids_have_nine_characters(body: Body) -> str | None:
    odd = (call["id"] for call in calls_of(body) if not re.fullmatch("[a-zA-Z0-9]{9}", call["id"]))
    return next((f"Tool call id was {id} but must be a-z, A-Z, 0-9, with a length of 9." for id in odd), None)


def arguments_are_objects(body: Body) -> str | None:
    try:
        objects = all(isinstance(json.loads(call["function"]["arguments"]), dict) for call in calls_of(body))
    except ValueError:
        objects = False
    return None if objects else "Failed to parse tool call arguments as JSON"


def first_calls_are_signed(body: Body) -> str | None:
    """The first call of each message since the user's last one: parallel calls share its signature."""
    users = [index for index, message in enumerate(body["messages"]) if message["role"] == "user"]
    turn = body["messages"][max(users, default=0) :]
    first = (message["tool_calls"][0] for message in turn if message.get("tool_calls"))
    signed = (call.get("extra_content", {}).get("google", {}).get("thought_signature") for call in first)
    return None if all(signed) else "Function call is missing a thought_signature in functionCall parts."


def follows(*, tool: tuple[str, ...], user: tuple[str, ...], assistant: tuple[str, ...]) -> Rule:
    """The roles that may come after each one; the first message may be of the system, no other one."""
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


takes_turns = follows(tool=("tool", "assistant"), user=("assistant",), assistant=("user",))


def assistant_says_something(body: Body) -> str | None:
    empty = (
        message
        for message in body["messages"]
        if message["role"] == "assistant" and not message.get("content") and not message.get("tool_calls")
    )
    return next(("Assistant message must have either content or tool_calls" for _ in empty), None)


LOCAL: tuple[Rule, ...] = (  # unknown fields are ignored; the rest are the chat templates of Mistral and Gemma
    takes_turns,
    assistant_says_something,
    ids_have_nine_characters,
    arguments_are_objects,
    ids_are_paired,
)
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
    "gemini": (
        only("max_tokens", "max_completion_tokens", "reasoning_effort"),
        messages_have_only(),
        temperature_up_to(2),
        effort_is("minimal", "low", "medium", "high"),
        first_calls_are_signed,
        arguments_are_objects,
        ids_are_paired,
    ),
    "mistral": (
        exactly(
            *("model", "messages", "stream", "tools", "tool_choice", "parallel_tool_calls", "temperature", "top_p"),
            *("max_tokens", "stop", "random_seed", "response_format", "frequency_penalty", "presence_penalty", "n"),
        ),
        messages_have_only(),
        temperature_up_to(1.5),
        follows(tool=("tool", "assistant"), user=("user", "assistant"), assistant=("user", "assistant")),
        assistant_says_something,
        ids_have_nine_characters,
        arguments_are_objects,
        ids_are_paired,
    ),
    "vllm": LOCAL,
    "lmstudio": LOCAL,
    "llamacpp": LOCAL,
    "custom": (only("max_tokens"), no_strict, content_is_text, messages_have_only(), *LOCAL),
}


def refusals(provider: str, body: Body) -> Iterator[str]:
    return (reason for rule in RULES[provider] if (reason := rule(body)))
