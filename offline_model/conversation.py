"""Chat messages as turns: a request, the results of its tool calls, and the answer."""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from typing import Annotated, Any

from pydantic import AliasPath, BaseModel, Field, ValidationError

from common.clock import local_time
from offline_model.protocol import ChatMessage, FunctionCall

_NOTE = re.compile(r"Hidden context for the agent.*</HiddenContext>\s*\Z", re.DOTALL)  # of the backend, not the user
_NOW = re.compile(
    r"<HiddenContext>\n\w{3} (2[0-8]\d\d-\d\d-\d\d \d\d:\d\d), ([^\s,]+)(?:, calendar feed on)?"
    r"(?P<notifications>, notifications on)?\n</HiddenContext>",
    re.ASCII,
)
_TASKS = re.compile(r"<HiddenContext>\nIn the next message @ and a number is a task.*", re.DOTALL)
_TAGGED = re.compile(r"^@([1-9][0-9]{0,18}): ", re.MULTILINE)
_TAG = re.compile(r"(?<![\w@])@([1-9][0-9]{0,18})(?!\w)", re.ASCII)
_SELECTED = re.compile(r"\n\n(@[0-9]+(?: @[0-9]+)*)\Z", re.ASCII)
"""The tasks that were selected when the message was written."""
_FILES = re.compile(r"\n\nFiles?: [^\n]+\Z")
"""The attached files; see `said` in web/texts.js."""
_AGENT = "do_with_"  # prefix of tools whose results are answers of agents
_QUOTATION = re.compile(r"\A(?:>.*\n)+\n")  # above what the user wrote


class ResultTask(BaseModel):
    id: int
    title: str
    description: str | None = None
    status: str = "pending"
    due: str | None = None
    priority: str | None = None
    labels: list[str] = []
    repeat: str | None = None
    remind: int | str | None = None
    completed_at: str | None = None
    next_due: Annotated[str | None, Field(validation_alias=AliasPath("next", "due"))] = None


class ResultPage(BaseModel):
    """A page of a list, or the tasks of a call; `nearest` have titles like the query."""

    tasks: list[ResultTask]
    next_cursor: str | None = None
    total: int = 0
    nearest: list[ResultTask] = []
    not_found: list[int] = []


@dataclass(frozen=True)
class ToolResult:
    """The result of a tool call, or the sentence of its error."""

    tool: str
    arguments: dict[str, Any]
    page: ResultPage = field(default_factory=lambda: ResultPage(tasks=[]))
    error: str = ""


@dataclass
class ChatTurn:
    request: str
    answer: str = ""
    now: datetime | None = None
    """The user's clock, from a note."""
    has_notifications: bool = False
    """Whether a note says that the user's notifications are on."""
    selected: tuple[int, ...] = ()
    """The tasks that "these" means."""
    made: list[tuple[Sequence[FunctionCall], dict[str | None, str]]] = field(default_factory=list)
    """Tool calls, and their outputs by id."""

    @cached_property
    def steps(self) -> list[tuple[ToolResult, ...]]:
        return [tuple(_parse_result(call, texts.get(call.id, "")) for call in calls) for calls, texts in self.made]

    @property
    def results(self) -> list[ToolResult]:
        return [result for step in self.steps for result in step]

    @property
    def task_ids(self) -> list[int]:
        return list(dict.fromkeys(task.id for result in self.results for task in result.page.tasks))


def parse_turns(messages: Sequence[ChatMessage]) -> list[ChatTurn]:
    turns = [ChatTurn("")]
    outputs: dict[str | None, str] = {}
    now: datetime | None = None
    has_notifications = False
    tagged: list[str] = []
    for message in messages:
        if message.role == "user" and (about := _parse_tagged(message.content)):
            tagged = about
        elif message.role == "user" and _NOTE.match(message.content):
            if said := _NOW.search(message.content):
                now, has_notifications = _parse_clock(said) or now, said["notifications"] is not None
            if not (turns[-1].made or turns[-1].answer):  # a retry's note comes after the message
                turns[-1].now, turns[-1].has_notifications = now, has_notifications
        elif message.role == "user":
            request, selected = _extract_numbers(_FILES.sub("", _QUOTATION.sub("", message.content, count=1)), tagged)
            turns.append(ChatTurn(request, now=now, has_notifications=has_notifications, selected=selected))
            tagged = []
        elif message.role == "tool":
            outputs[message.tool_call_id] = message.content
        elif message.role == "assistant":
            outputs = {}
            if message.tool_calls:
                turns[-1].made.append((message.tool_calls, outputs))
            else:
                turns[-1].answer = message.content or turns[-1].answer
    return turns


def _parse_tagged(note: str) -> list[str]:
    found = _TASKS.search(note) if _NOTE.match(note) else None
    return _TAGGED.findall(found[0]) if found else []


def _extract_numbers(request: str, tagged: Sequence[str]) -> tuple[str, tuple[int, ...]]:
    """Returns the message with #1 for @1 and without the selected tasks, and these."""
    if not tagged:
        return request, ()
    below = _SELECTED.search(request)
    selected = tuple(int(number) for number in _TAG.findall(below[1])) if below else ()
    text = request[: below.start()] if below else request
    return _TAG.sub(lambda tag: f"#{tag[1]}" if tag[1] in tagged else tag[0], text), selected


def _parse_clock(note: re.Match[str]) -> datetime | None:
    try:
        return local_time(datetime.fromisoformat(note[1]), note[2])
    except ValueError:
        return None


def _parse_result(call: FunctionCall, text: str) -> ToolResult:
    tool, parsed, value = call.function.name, _parse_json(call.function.arguments), _parse_json(text)
    arguments = parsed if isinstance(parsed, dict) else {}
    if isinstance(value, dict) and "id" in value:  # a task, and those that were changed with it
        value = {**value, "tasks": [value, *value.get("also", [])]}
    if value is None or tool.startswith(_AGENT):
        return ToolResult(tool, arguments, error=text.strip() or "The tool gave no answer.")
    try:
        return ToolResult(tool, arguments, ResultPage.model_validate(value))
    except ValidationError:
        return ToolResult(tool, arguments, error="The tool gave an answer that I cannot read.")


def _parse_json(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None
