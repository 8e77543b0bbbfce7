"""What a turn shows of its tool steps: a line while one runs and when it is done, a card, the list asked for."""

import json
import re
from collections.abc import Iterable, Sequence
from datetime import datetime
from functools import partial
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from backend.cards.task import Changed, Task, TaskPage
from backend.cards.task_lines import task_lines
from backend.conversation.items import Json
from backend.tools.table import READING, Words, shown, words_for
from backend.tools.task_rows import undo_button
from backend.tools.widgets import changed_list, task_card, task_list

Shape = TypeVar("Shape", bound=BaseModel)

_CARDS = 3  # at most, of one call

# Lines of a Markdown list, from where a title can begin: after the mark, a box, and a number.
_LISTED = re.compile(r"^[ ]*(?:[-*+]|\d+[.)])[ ]+(?:\[[ xX]\][ ]+)?(?:\*\*#?\d+\*\*[ ]+)?(?:\*\*)?(.+)$", re.MULTILINE)


def running(tool: str, arguments: str) -> str | None:
    """The line while a call runs."""
    given = _parsed(arguments) or {}
    words, count = words_for(tool, given), _count(given)
    return words and _line(words.running_several if count > 1 else words.running, given, count)


def done(tool: str, arguments: str, output: str) -> str | None:
    """The line after it; None for a call that failed: its output is a sentence for the model."""
    words, result = words_for(tool, _parsed(arguments) or {}), _parsed(output)
    if words is None or result is None:
        return None
    count = _count(result)
    return _line(words.done_several if count > 1 else words.done, result, count)


def _count(values: dict[str, Any]) -> int:
    """How many tasks the arguments or the result of a call name."""
    also = values.get("also")
    return 1 + len(also) if isinstance(also, list) else 1


def _line(template: str, values: dict[str, Any], count: int) -> str:
    return template.format_map(_Values(values | {"count": count}))


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


def changed_tasks(tool: str, output: str) -> list[Task]:
    """The tasks as a call left them, when widgets may show what they were before."""
    changed = _as(Changed, output) if shown(tool).redraws else None
    return changed.tasks if changed else []


class TaskViews:
    """The widgets of one turn. A list is shown at the turn's end: most are only read to find a task's number.

    `now` is the person's wall clock: without it nothing is shown as overdue. `batch` is what the buttons beside changes
    take back: all that the turn changed, by calls that `begin` counts.
    """

    def __init__(self, now: datetime | None = None, *, batch: str | None = None) -> None:
        self._now = now
        self._batch = batch
        self._changes = 0
        self._listed: list[Task] = []
        self._more = False
        self._total: int | None = None
        self._read_at: datetime | None = None

    def begin(self, tools: Iterable[str]) -> bool:
        """Count the calls of a step that change something; returns whether buttons that are shown name too little."""
        before, self._changes = self._changes, self._changes + sum(tool not in READING for tool in tools)
        return before == 1 < self._changes

    def cards(self, tool: str, arguments: str, output: str) -> list[Json]:
        """What became of the tasks of a call: a card for each, or one list of many."""
        changed = _as(Changed, output)
        words = words_for(tool, _parsed(arguments) or {})
        if not words or not words.label or changed is None:
            return []
        tasks = changed.tasks
        if len(tasks) > _CARDS:
            heading = _line(words.heading, {}, len(tasks))
            return [changed_list(tasks, heading, now=self._now, undo=self._undo(words, tasks))]
        undo = partial(self._undo, words, with_others=len(tasks) > 1)
        return [task_card(task, words.label, now=self._now, undo=undo([task])) for task in tasks]

    def _undo(self, words: Words, tasks: Sequence[Task], *, with_others: bool = False) -> Json | None:
        if self._batch is None or words.final:
            return None
        return undo_button(self._batch, tasks, with_others=with_others or self._changes > 1)

    def take_in(self, tool: str, arguments: str, output: str) -> None:
        """Add a page of the list, one with a cursor to the page before; forget what was read before another call."""
        if not shown(tool).reads:
            self._listed = []
            return
        if (page := _as(TaskPage, output)) is None:
            return
        is_first = not (_parsed(arguments) or {}).get("cursor")
        before = [] if is_first else self._listed
        self._total = page.total if is_first or before else None  # of the rest of a list, how much is left is not known
        self._listed = [*before, *page.tasks]
        self._more = page.next_cursor is not None
        self._read_at = page.now

    def final(self, answer: str) -> Json | None:
        """The list; of one that was searched, what the answer lists of it: tasks, or none of them."""
        if lines := _LISTED.findall(answer):
            found = _named_in(lines, self._listed)
            return task_list(found, more=False, now=self._now) if found else None
        return task_list(self._listed, more=self._more, now=self._now) if self._listed else None

    def text(self, answer: str) -> str:
        """The list for a client that shows no widgets; empty if the answer lists or names the tasks itself."""
        if _LISTED.search(answer):
            return ""
        said = " ".join(answer.split()).casefold()
        if all(" ".join(task.title.split()).casefold() in said for task in self._listed):
            return ""
        total = len(self._listed) if self._total is None else max(self._total, len(self._listed))
        return task_lines(self._listed, total=total, more=self._more, now=self._now or self._read_at)


def _named_in(lines: list[str], tasks: list[Task]) -> list[Task]:
    """Those with whose title a line begins, the longest such title of each line."""
    titles = {" ".join(task.title.split()).casefold() for task in tasks}
    named = {_title_of(" ".join(line.split()).casefold(), titles) for line in lines}
    return [task for task in tasks if " ".join(task.title.split()).casefold() in named]


def _title_of(line: str, titles: set[str]) -> str | None:
    most = min(len(line), max(map(len, titles), default=0))
    ends = (end for end in range(most, 0, -1) if end == len(line) or not line[end].isalnum())
    return next((line[:end] for end in ends if line[:end] in titles), None)


def _as(shape: type[Shape], output: str) -> Shape | None:
    try:
        return shape.model_validate_json(output)
    except ValidationError:
        return None
