"""What a turn shows of its tool steps: a line while one runs and when it is done, a card, the list asked for."""

import json
import re
from datetime import datetime
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from backend.conversation.items import Json
from backend.tools.table import shown
from backend.tools.task import Task, TaskPage
from backend.tools.widgets import task_card, task_list

Shape = TypeVar("Shape", bound=BaseModel)

# Lines of a Markdown list, from where a title can begin: after the mark, a box, and a number.
_LISTED = re.compile(r"^[ ]*(?:[-*+]|\d+[.)])[ ]+(?:\[[ xX]\][ ]+)?(?:\*\*#?\d+\*\*[ ]+)?(?:\*\*)?(.+)$", re.MULTILINE)


def running(tool: str, arguments: str) -> str | None:
    """The line while a call runs."""
    return _line(shown(tool).running, arguments)


def done(tool: str, output: str) -> str | None:
    """The line after it; None for a call that failed: its output is a sentence for the model."""
    return _line(shown(tool).done, output) if _parsed(output) is not None else None


def _line(template: str | None, values: str) -> str | None:
    return template and template.format_map(_Values(_parsed(values) or {}))


def _parsed(text: str) -> dict[str, Any] | None:
    try:
        parsed = json.loads(text or "{}")
    except ValueError:
        return None
    return parsed if isinstance(parsed, dict) else None


class _Values(dict[str, str]):
    """Values for a line: what is missing is left open, what is too long is cut."""

    def __init__(self, values: dict[str, Any]) -> None:
        super().__init__({key: str(value)[:60] for key, value in values.items()})

    def __missing__(self, key: str) -> str:
        return "…"


def changed_task(tool: str, output: str) -> Task | None:
    """The task as a call left it, when widgets may show what it was before."""
    return _as(Task, output) if shown(tool).redraws else None


class TaskViews:
    """The widgets of one turn. A list is shown at the turn's end: most are only read to find a task's number.

    `now` is the person's wall clock: without it nothing is shown as overdue.
    """

    def __init__(self, now: datetime | None = None) -> None:
        self._now = now
        self._listed: list[Task] = []
        self._more = False

    def card(self, tool: str, output: str) -> Json | None:
        if (label := shown(tool).card) is None or (task := _as(Task, output)) is None:
            return None
        return task_card(task, label, now=self._now)

    def take_in(self, tool: str, arguments: str, output: str) -> None:
        """Add a page of the list, one with a cursor to the page before; forget what was read before another call."""
        if not shown(tool).reads:
            self._listed = []
            return
        if (page := _as(TaskPage, output)) is None:
            return
        before = self._listed if (_parsed(arguments) or {}).get("cursor") else []
        self._listed = [*before, *page.tasks]
        self._more = page.next_cursor is not None

    def final(self, answer: str) -> Json | None:
        """The list; of one that was searched, what the answer lists of it: tasks, or none of them."""
        if lines := _LISTED.findall(answer):
            found = _named_in(lines, self._listed)
            return task_list(found, more=False, now=self._now) if found else None
        return task_list(self._listed, more=self._more, now=self._now) if self._listed else None


def _named_in(lines: list[str], tasks: list[Task]) -> list[Task]:
    """Those with whose title a line begins, the longest such title of each line."""
    titles = {" ".join(task.title.split()).casefold() for task in tasks}
    named = {_title_of(" ".join(line.split()).casefold(), titles) for line in lines}
    return [task for task in tasks if " ".join(task.title.split()).casefold() in named]


def _title_of(line: str, titles: set[str]) -> str | None:
    most = min(len(line), max(map(len, titles)))
    ends = (end for end in range(most, 0, -1) if end == len(line) or not line[end].isalnum())
    return next((line[:end] for end in ends if line[:end] in titles), None)


def _as(shape: type[Shape], output: str) -> Shape | None:
    try:
        return shape.model_validate_json(output)
    except ValidationError:
        return None
