"""Chat messages as turns: what was asked, what the tools answered, what was said."""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from offline_model.protocol import FunctionCall, Message

TOOLS = frozenset({"add_task", "list_tasks", "complete_task", "update_task", "delete_task"})

# What a conversation's server tells the model in the person's role.
_NOTE = re.compile(
    r"\s*(?:"
    r"<[A-Za-z][\w-]*>.*</[A-Za-z][\w-]*>\s*\Z|\[.*\]\s*\Z|\(note\b.*\)\s*\Z"
    r"|Hidden context for the agent|# User-provided context|The user is referring to this in particular"
    r"|A message was displayed to the user|The following (?:image was generated|graphical UI widget)"
    r"|A structured input request was displayed)",
    re.DOTALL,
)


@dataclass(frozen=True)
class Result:
    """What one tool call returned, or the sentence that says why it failed."""

    tool: str
    value: dict[str, Any] = field(default_factory=dict)
    error: str = ""


@dataclass
class Turn:
    request: str
    steps: list[tuple[Result, ...]] = field(default_factory=list)
    answer: str = ""


def turns_of(messages: Sequence[Message]) -> list[Turn]:
    turns = [Turn("")]
    for index, message in enumerate(messages):
        if message.role == "user" and not _NOTE.match(message.content):
            turns.append(Turn(message.content))
        elif message.role == "assistant" and message.tool_calls:
            turns[-1].steps.append(_results(message.tool_calls, messages[index + 1 :]))
        elif message.role == "assistant":
            turns[-1].answer = message.content or turns[-1].answer
    return turns


def _results(calls: Sequence[FunctionCall], following: Sequence[Message]) -> tuple[Result, ...]:
    outputs: list[Message] = []
    for message in following:
        if message.role == "assistant":
            break
        if message.role == "tool":
            outputs.append(message)
    by_id = {output.tool_call_id: output for output in outputs}
    if len(by_id) == len(calls):
        outputs = [by_id.get(call.id, output) for call, output in zip(calls, outputs, strict=False)]
    texts = [output.content for output in outputs] + [""] * len(calls)
    return tuple(_result(call.function.name, text) for call, text in zip(calls, texts, strict=False))


def _result(tool: str, text: str) -> Result:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return Result(tool, error=text.strip() or "The tool gave no answer.")
    if isinstance(value, dict) and value.get("type") == "text" and isinstance(value.get("text"), str):
        return _result(tool, value["text"])
    if isinstance(value, dict) and isinstance(value.get("error"), str):
        return Result(tool, error=value["error"])
    if isinstance(value, dict) and _has_shape(tool, value):
        return Result(tool, value)
    return Result(
        tool, error=value if isinstance(value, str) and value else "The tool gave an answer that I cannot read."
    )


def _has_shape(tool: str, value: dict[str, Any]) -> bool:
    if tool == "list_tasks":
        tasks = value.get("tasks")
        return isinstance(tasks, list) and all(isinstance(task, dict) and _is_task(task) for task in tasks)
    return _is_task(value) or tool not in TOOLS


def _is_task(value: dict[str, Any]) -> bool:
    return isinstance(value.get("id"), int) and isinstance(value.get("title"), str)
