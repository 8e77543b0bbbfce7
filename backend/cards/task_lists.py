"""The list of tasks below an answer: what was read of the user's list last, and which of that the answer is about."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import islice

from backend.cards.current_tasks import page_of
from backend.cards.task import Task
from backend.conversations.records import Entry, Record, ToolCall
from backend.tools.approval_policy import arguments_of
from backend.tools.table import find_tool
from common.pauses import with_pauses
from common.task_words import describe_due, select_fields

# Lines of a Markdown list, from where a title can begin: after the mark, a box, and a number.
_LISTED = re.compile(r"^[ ]*(?:[-*+]|\d+[.)])[ ]+(?:\[[ xX]\][ ]+)?(?:\*\*#?\d+\*\*[ ]+)?(?:\*\*)?(.+)$", re.MULTILINE)
# Codes of notices about an answer that is complete as far as the provider has sent it.
_WARNINGS = ("answer_over_limit", "answer_filtered", "answer_ended", "answer_repeated", "nothing_changed")

_MAX_LINES = 50
_MAX_LISTED, _MAX_TITLE = 500, 400  # lines of an answer that are compared with titles, and characters of each


@dataclass(slots=True)
class ReadList:
    """The pages that an answer has read of one list, until it changed something, and what it said."""

    call: ToolCall | None = None
    """The one that has read the last page."""
    tasks: list[Task] = field(default_factory=list[Task])
    total: int | None = None
    has_more: bool = False
    now: datetime | None = None
    answer: str = ""

    @property
    def listed_tasks(self) -> Sequence[Task]:
        """The tasks that belong below the answer: those that the answer lists itself, if it does, otherwise all."""
        lines = [line[1][:_MAX_TITLE] for line in islice(_LISTED.finditer(self.answer), _MAX_LISTED)]
        return _find_named_tasks(lines, self.tasks) if lines else self.tasks

    @property
    def shows_more(self) -> bool:
        """Whether the list says that there are more tasks: the answer lists none, and not all pages were read."""
        return self.has_more and _LISTED.search(self.answer) is None

    def add(self, call: ToolCall) -> None:
        """Adds a page; a first page replaces the ones before, and so does any call that changes something."""
        if call.state not in ("done", "failed"):
            return
        if not find_tool(call.tool).reads:
            self.tasks = []
            return
        if (page := page_of(call)) is None:
            return
        is_first = not (arguments_of(call.arguments) or {}).get("cursor")
        if is_first:
            self.tasks = []
        self.total = page.total if is_first or self.tasks else None  # how much of a list is left may not be known
        self.call, self.now = call, page.now
        self.tasks += page.tasks
        self.has_more = page.next_cursor is not None


async def list_below(records: Iterable[Record]) -> ReadList | None:
    """Returns the list that belongs below the answer of a run; None if none was read, or the answer is not complete."""
    read, last = ReadList(), None
    async for record in with_pauses(records):
        if isinstance(record, ToolCall):
            read.add(record)
        elif record.kind == "user_message":
            read = ReadList()
        elif record.kind == "notice" and (record.details or {}).get("code") not in _WARNINGS:
            return None
        elif record.kind == "assistant_message" and record.complete:
            read.answer += f"{record.text}\n"
        else:
            continue
        last = record
    is_answered = isinstance(last, Entry) and last.kind == "assistant_message"
    return read if is_answered and read.tasks else None


async def render_list_text(records: Iterable[Record]) -> str:
    """Renders the list for clients that show no widgets; empty if the answer lists or names the tasks itself."""
    if (read := await list_below(records)) is None or _LISTED.search(read.answer):
        return ""
    said = _fold(read.answer)
    if all(_fold(task.title) in said for task in read.tasks):
        return ""
    lines = [_line(task, read.now) for task in read.tasks[:_MAX_LINES]]
    total = max(read.total or 0, len(read.tasks))
    if total > len(lines):
        lines.append(f"- and {total - len(lines)} more")
    elif read.has_more:
        lines.append("- and more")
    return "\n".join(lines)


def _line(task: Task, now: datetime | None) -> str:
    details = [
        *([describe_due(task.due, now)] if task.due else []),
        *(text for field, value in select_fields(vars(task)) for text in field.describe(value)),
        *(["done"] if task.status == "completed" else []),
    ]
    title = " ".join(task.title.split())
    return f"- {title} ({', '.join(details)})" if details else f"- {title}"


def _find_named_tasks(lines: Iterable[str], tasks: Sequence[Task]) -> list[Task]:
    """Returns the tasks with whose title a line begins, for each line the longest such title."""
    titles = {_fold(task.title) for task in tasks}
    named = {_find_title(_fold(line), titles) for line in lines}
    return [task for task in tasks if _fold(task.title) in named]


def _find_title(line: str, titles: set[str]) -> str | None:
    """Returns the longest title with which a line begins, as whole words; None if none."""
    most = min(len(line), max(map(len, titles), default=0))
    ends = (end for end in range(most, 0, -1) if end == len(line) or not line[end].isalnum())
    return next((line[:end] for end in ends if line[:end] in titles), None)


def _fold(text: str) -> str:
    return " ".join(text.split()).casefold()
