"""Chat messages as turns: what was asked, what the tools answered, what was said."""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from pydantic import BaseModel, ValidationError

from offline_model.protocol import Message, Tool

_NOTE = re.compile(r"Hidden context for the agent.*</HiddenContext>\s*\Z", re.DOTALL)  # of the backend, not the person
_NOW = re.compile(r"^\w{3} \d{4}-\d\d-\d\d \d\d:\d\d, [^\s,]+(?P<calendar>, calendar feed on)?$", re.MULTILINE)
_QUOTATION = re.compile(r"\A(?:>.*\n)+\n")  # above what the person wrote


class Task(BaseModel):
    id: int
    title: str
    description: str | None = None
    status: str = "pending"
    due: str | None = None
    repeat: str | None = None


class Page(BaseModel):
    tasks: list[Task]
    next_cursor: str | None = None


@dataclass(frozen=True)
class Result:
    """What one tool call returned, or the sentence that says why it failed."""

    tool: str
    arguments: dict[str, Any]
    page: Page = field(default_factory=lambda: Page(tasks=[]))
    error: str = ""


@dataclass
class Turn:
    request: str
    answer: str = ""
    made: list[tuple[Sequence[Tool], dict[str | None, str]]] = field(default_factory=list)  # calls, answers by id

    @cached_property
    def steps(self) -> list[tuple[Result, ...]]:
        """Read when asked for: of most turns nobody does."""
        return [tuple(_result(call, texts.get(call.id, "")) for call in calls) for calls, texts in self.made]


def has_calendar(messages: Sequence[Message]) -> bool:
    """Whether the newest note of what time it is says that a calendar program may read the person's tasks."""
    notes = [message.content for message in messages if message.role == "user" and _NOTE.match(message.content)]
    times = [found for note in notes if (found := _NOW.search(note))]
    return bool(times) and times[-1]["calendar"] is not None


def turns_of(messages: Sequence[Message]) -> list[Turn]:
    turns = [Turn("")]
    outputs: dict[str | None, str] = {}
    for message in messages:
        if message.role == "user" and not _NOTE.match(message.content):
            turns.append(Turn(_QUOTATION.sub("", message.content, count=1)))
        elif message.role == "tool":
            outputs[message.tool_call_id] = message.content
        elif message.role == "assistant":
            outputs = {}
            if message.tool_calls:
                turns[-1].made.append((message.tool_calls, outputs))
            else:
                turns[-1].answer = message.content or turns[-1].answer
    return turns


def _result(call: Tool, text: str) -> Result:
    tool, given, value = call.function.name, _parsed(call.function.arguments), _parsed(text)
    arguments = given if isinstance(given, dict) else {}
    if isinstance(value, dict) and isinstance(value.get("text"), str):  # as MCP wraps it
        text = value["text"]
        value = _parsed(text)
    if value is None:
        return Result(tool, arguments, error=text.strip() or "The tool gave no answer.")
    try:
        return Result(tool, arguments, Page.model_validate(value if tool == "list_tasks" else {"tasks": _each(value)}))
    except ValidationError:
        unreadable = "The tool gave an answer that I cannot read."
        return Result(tool, arguments, error=value if isinstance(value, str) and value else unreadable)


def _each(value: Any) -> list[Any]:
    """The task of a result, and those of a call for several beside it."""
    also = value.get("also") if isinstance(value, dict) else None
    return [value, *(also if isinstance(also, list) else [])]


def _parsed(text: str) -> Any:
    if not text:  # of a call without an answer, and there may be thousands
        return None
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None
