"""Chat messages as turns: what was asked, what the tools answered, what was said."""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from typing import Any

from pydantic import BaseModel, ValidationError

from offline_model.protocol import Message, Tool

_NOTE = re.compile(r"Hidden context for the agent.*</HiddenContext>\s*\Z", re.DOTALL)  # of the backend, not the person
_NOW = re.compile(
    r"<HiddenContext>\n\w{3} (2[0-8]\d\d-\d\d-\d\d \d\d:\d\d), [^\s,]+(, calendar feed on)?\n</HiddenContext>", re.ASCII
)
_QUOTATION = re.compile(r"\A(?:>.*\n)+\n")  # above what the person wrote


class Named(BaseModel):
    id: int
    title: str


class Following(BaseModel):
    due: str


class Task(Named):
    description: str | None = None
    status: str = "pending"
    due: str | None = None
    priority: str | None = None
    labels: list[str] = []
    repeat: str | None = None
    completed_at: str | None = None
    next: Following | None = None


class Page(BaseModel):
    """A page of a list, or the tasks of a call; `nearest` have titles like what was looked for."""

    tasks: list[Task]
    next_cursor: str | None = None
    total: int = 0
    now: str = ""
    nearest: list[Named] = []
    not_found: list[int] = []


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
    now: datetime | None = None
    """What the clock showed the person, as a note says."""
    calendar: bool = False
    """Whether a calendar program may read the person's tasks, as the note says."""
    made: list[tuple[Sequence[Tool], dict[str | None, str]]] = field(default_factory=list)  # calls, answers by id

    @cached_property
    def steps(self) -> list[tuple[Result, ...]]:
        """Read when asked for: of most turns nobody does."""
        return [tuple(_result(call, texts.get(call.id, "")) for call in calls) for calls, texts in self.made]


def turns_of(messages: Sequence[Message]) -> list[Turn]:
    turns = [Turn("")]
    outputs: dict[str | None, str] = {}
    now, calendar = None, False
    for message in messages:
        if message.role == "user" and _NOTE.match(message.content):
            now, calendar = _noted(message.content) or (now, calendar)
            if not (turns[-1].made or turns[-1].answer):  # a retry's note comes after the message
                turns[-1].now, turns[-1].calendar = now, calendar
        elif message.role == "user":
            turns.append(Turn(_QUOTATION.sub("", message.content, count=1), now=now, calendar=calendar))
        elif message.role == "tool":
            outputs[message.tool_call_id] = message.content
        elif message.role == "assistant":
            outputs = {}
            if message.tool_calls:
                turns[-1].made.append((message.tool_calls, outputs))
            else:
                turns[-1].answer = message.content or turns[-1].answer
    return turns


def _noted(note: str) -> tuple[datetime, bool] | None:
    """What the clock showed, and whether there is a calendar; None of a note of something else."""
    found = _NOW.search(note)
    try:
        return (datetime.fromisoformat(found[1]), found[2] is not None) if found else None
    except ValueError:
        return None


def _result(call: Tool, text: str) -> Result:
    tool, given, value = call.function.name, _parsed(call.function.arguments), _parsed(text)
    arguments = given if isinstance(given, dict) else {}
    if isinstance(value, dict) and isinstance(value.get("text"), str):  # as MCP wraps it
        text = value["text"]
        value = _parsed(text)
    if value is None:
        return Result(tool, arguments, error=text.strip() or "The tool gave no answer.")
    try:
        return Result(tool, arguments, Page.model_validate(value if tool == "list_tasks" else _changed(value)))
    except ValidationError:
        unreadable = "The tool gave an answer that I cannot read."
        return Result(tool, arguments, error=value if isinstance(value, str) and value else unreadable)


def _changed(value: Any) -> dict[str, Any]:
    """The task of a result, and those of a call for several beside it, as a page."""
    more = value if isinstance(value, dict) else {}
    also = more.get("also")
    return {"tasks": [value, *(also if isinstance(also, list) else [])], "not_found": more.get("not_found", [])}


def _parsed(text: str) -> Any:
    if not text:  # of a call without an answer, and there may be thousands
        return None
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None
