"""Tasks as lines of plain text, for clients that show no widgets."""

from collections.abc import Sequence
from datetime import datetime

from backend.cards.task import Task
from backend.cards.task_details import due_in_words
from service import repeats

_MOST_LINES = 50


def task_lines(tasks: Sequence[Task], *, total: int, more: bool, now: datetime | None = None) -> str:
    """A line for each of the first tasks, and how many of the `total` are left; `more` says that there are others."""
    lines = [_line(task, now) for task in tasks[:_MOST_LINES]]
    if total > len(lines):
        lines.append(f"- and {total - len(lines)} more")
    elif more:
        lines.append("- and more")
    return "\n".join(lines)


def _line(task: Task, now: datetime | None) -> str:
    details = [
        *([due_in_words(task.due, now)] if task.due else []),
        *([f"{task.priority} priority"] if task.priority else []),
        *([repeats.in_words(task.repeat)] if task.repeat else []),
        *(f"#{label}" for label in task.labels),
        *(["done"] if task.status == "completed" else []),
    ]
    title = " ".join(task.title.split())
    return f"- {title} ({', '.join(details)})" if details else f"- {title}"
