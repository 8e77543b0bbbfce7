"""What a widget tells of a task below its title: when it is due, its priority, how it repeats, its labels."""

from collections.abc import Sequence
from datetime import date, datetime

from backend.cards.task import Task
from backend.cards.widget import Json
from service import repeats

_PRIORITIES = {"high": ("High", "danger"), "medium": ("Medium", "warning"), "low": ("Low", "secondary")}
_QUIET = "secondary"

# Keys begin with it: of the badge that says when a task is due, and of the words that say when the one after it is.
# The date follows, as our page writes it in its reader's language (web/chat/widgets.js).
DUE, NEXT = "due", "next"


def details(task: Task, now: datetime | None, kept: Sequence[Json] = ()) -> list[Json]:
    """One line of badges and words, or none; `now` is the person's wall clock, without which nothing is overdue.

    What comes next after a repeating task is known only when it is completed: `kept` is what a widget says of it.
    """
    if task.status == "deleted":
        return []
    parts = [
        *([_due(task, task.due, now)] if task.due else []),
        *([_priority(task, task.priority)] if task.priority else []),
        *([_repeat(task.repeat)] if task.repeat else []),
        *([_labels(task.labels)] if task.labels else []),
        *_next(task, now, kept),
    ]
    return [{"type": "Row", "gap": 2, "wrap": "wrap", "align": "center", "children": parts}] if parts else []


def _due(task: Task, due: date, now: datetime | None) -> Json:
    color = _QUIET if task.status == "completed" or now is None else _urgency(due, now)
    return _badge(due_in_words(due, now), color, "outline") | {"key": _key(DUE, due)}


def _urgency(due: date, now: datetime) -> str:
    """A day is overdue when it is over, a time when it has come."""
    day = due.date() if isinstance(due, datetime) else due
    if day < now.date() or (isinstance(due, datetime) and due <= now):
        return "danger"
    return "warning" if day == now.date() else _QUIET


def due_in_words(due: date, now: datetime | None) -> str:
    """Mon 23 Nov 15:00; with the year, if it is not the current one."""
    year = f" {due.year}" if now and due.year != now.year else ""
    time = f" {due:%H:%M}" if isinstance(due, datetime) else ""
    return f"{due:%a} {due.day} {due:%b}{year}{time}"


def _priority(task: Task, priority: str) -> Json:
    label, color = _PRIORITIES[priority]
    return _badge(label, _QUIET if task.status == "completed" else color, "soft")


def _repeat(rule: str) -> Json:
    icon = {"type": "Icon", "name": "reload", "size": "sm", "color": _QUIET}
    words = {"type": "Caption", "value": repeats.in_words(rule)}
    return {"type": "Row", "gap": 1, "align": "center", "children": [icon, words]}


def _labels(labels: Sequence[str]) -> Json:
    return {"type": "Caption", "value": " ".join(f"#{label}" for label in labels)}


def _next(task: Task, now: datetime | None, kept: Sequence[Json]) -> Sequence[Json]:
    if task.status != "completed":
        return []
    if task.next is None:
        return kept
    return [
        {"type": "Caption", "key": _key(NEXT, task.next.due), "value": f"next on {due_in_words(task.next.due, now)}"}
    ]


def tells(component: Json, kind: str) -> bool:
    """Whether it says such a date; those of before its key told the date do, too."""
    return str(component.get("key")).split("-")[0] == kind


def _key(kind: str, due: date) -> str:
    return f"{kind}-{due.isoformat()[: len('2026-11-23T15:00')]}"


def _badge(label: str, color: str, variant: str) -> Json:
    return {"type": "Badge", "label": label, "color": color, "variant": variant}
