"""Renders what a widget shows of a task below its title: when it is due, its priority, how it repeats, its labels."""

from datetime import date, datetime

from backend.cards.task import Task
from backend.cards.widget import Json, badge, caption, row
from common import repeats

_PRIORITIES = {"high": ("High", "danger"), "medium": ("Medium", "warning"), "low": ("Low", "secondary")}
_QUIET = "secondary"

# Keys begin with it: of the badge that says when a task is due, and of the words that say when the one after it is.
# The date follows, as our page writes it in its reader's language (web/chat/widgets.js).
_DUE, _NEXT = "due", "next"


def render_details(task: Task, now: datetime | None) -> list[Json]:
    """Renders one line of badges and words, or none.

    `now` is the user's wall clock, without which nothing is overdue.
    """
    if task.status == "deleted":
        return []
    parts = [
        *([_due(task, task.due, now)] if task.due else []),
        *([_priority(task, task.priority)] if task.priority else []),
        *([_repeat(task.repeat)] if task.repeat else []),
        *([caption(" ".join(f"#{label}" for label in task.labels))] if task.labels else []),
        *([_next(task.next.due, now)] if task.status == "completed" and task.next is not None else []),
    ]
    return [row(*parts)] if parts else []


def _due(task: Task, due: date, now: datetime | None) -> Json:
    """Renders the badge of the due date, in the colour of its urgency."""
    color = _QUIET if task.status == "completed" or now is None else _urgency(due, now)
    return badge(due_in_words(due, now), color, "outline") | {"key": _key(_DUE, due)}


def _urgency(due: date, now: datetime) -> str:
    """Returns the colour of a due date. A day is overdue when it is over, a time when it has come."""
    day = due.date() if isinstance(due, datetime) else due
    if day < now.date() or (isinstance(due, datetime) and due <= now):
        return "danger"
    return "warning" if day == now.date() else _QUIET


def due_in_words(due: date, now: datetime | None) -> str:
    """Writes a due date as Mon 23 Nov 15:00; with the year, if it is not the current one."""
    year = f" {due.year}" if now and due.year != now.year else ""
    time = f" {due:%H:%M}" if isinstance(due, datetime) else ""
    return f"{due:%a} {due.day} {due:%b}{year}{time}"


def _priority(task: Task, priority: str) -> Json:
    label, color = _PRIORITIES[priority]
    return badge(label, _QUIET if task.status == "completed" else color)


def _repeat(rule: str) -> Json:
    """Renders in words how a task repeats."""
    icon = {"type": "Icon", "name": "reload", "size": "sm", "color": _QUIET}
    children = [icon, caption(repeats.describe_repeat(rule))]
    return {"type": "Row", "gap": 1, "align": "center", "children": children}


def _next(due: date, now: datetime | None) -> Json:
    """Renders when the task is due that takes the place of a completed one that repeats."""
    return caption(f"next on {due_in_words(due, now)}", key=_key(_NEXT, due))


def _key(kind: str, due: date) -> str:
    """Returns the key of a component, which ends with the date for our page."""
    return f"{kind}-{due.isoformat()[: len('2026-11-23T15:00')]}"
