"""What a call's arguments make of a task."""

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from mcp_server.errors import LabelInvalid, NotRepeating, RepeatEnded, RepeatNeedsDue, TooManyLabels
from mcp_server.tasks import dates, repeats
from mcp_server.tasks.dates import Due
from mcp_server.tasks.task import PRIORITIES, Task
from mcp_server.tasks.zones import Now

MOST_LABELS = 10
_LONGEST_LABEL = 40  # characters
_ALL_LABELS = "*"  # to be removed: an empty list of labels is what models send for none given


@dataclass(frozen=True)
class TaskPatch:
    """The fields that a call gives, as it writes them; None leaves a field as it is."""

    title: str | None = None
    description: str | None = None
    due: str | None = None
    priority: Literal["high", "medium", "low", "none"] | None = None
    labels: Sequence[str] | None = None
    add_labels: Sequence[str] | None = None
    remove_labels: Sequence[str] | None = None
    repeat: str | None = None
    status: Literal["pending", "completed"] | None = None

    def values(self) -> dict[str, object]:
        return {name: value for name, value in vars(self).items() if value is not None}


def with_fields(task: Task, wanted: TaskPatch, now: Now) -> Task:
    """The task with all that is wanted but its status."""
    changed: dict[str, object] = {}
    for name in ("title", "description"):
        if (text := getattr(wanted, name)) is not None:
            changed[name] = text
    if wanted.priority is not None:
        changed["priority"] = None if wanted.priority == "none" else PRIORITIES.index(wanted.priority) + 1
    if any(labels is not None for labels in (wanted.labels, wanted.add_labels, wanted.remove_labels)):
        changed["labels"] = _labels(task, wanted)
    return _with_dates(task.model_copy(update=changed), wanted, now)


def _with_dates(task: Task, wanted: TaskPatch, now: Now) -> Task:
    due, rule = task.due, task.repeat
    if wanted.due is not None:
        read = dates.read_due(wanted.due, now=now.local, zone=now.zone, current=due)
        if read == "next":
            due, rule = _skipped(task, now)
        else:
            due = read
    if wanted.repeat is not None:
        rule = _rule(wanted.repeat, due)
    if rule is not None and due is None:
        raise RepeatNeedsDue
    series = (task.series or task.id) if rule else task.series
    day, time = (due.day, due.time) if due else (None, None)
    return task.model_copy(update={"due_on": day, "due_time": time, "repeat": rule, "series": series})


def _rule(text: str, due: Due | None) -> str | None:
    if text.strip().lower() == "none":
        return None
    if due is None:
        raise RepeatNeedsDue
    return str(repeats.read(text, due.day))


def _skipped(task: Task, now: Now) -> tuple[Due, str]:
    """When a task that repeats is due if this time is left out, and its rule from then on."""
    if task.repeat is None or task.due is None:
        raise NotRepeating(task=f"Task {task.id}" if task.id else "A new task")
    rule = repeats.parse(task.repeat)
    day = repeats.following(rule, due=task.due.day, today=now.local.date())
    if day is None:
        raise RepeatEnded(task_id=task.id)
    return Due(day, task.due.time), str(repeats.next_rule(rule))


def following(task: Task, now: Now) -> Task | None:
    """The task that a repeating one leaves behind when it is completed, still without an id of its own."""
    if task.repeat is None or task.due_on is None:
        return None
    rule = repeats.parse(task.repeat)
    day = repeats.following(rule, due=task.due_on, today=now.local.date())
    if day is None:
        return None
    begun = {"created_at": now.instant, "updated_at": now.instant, "completed_at": None, "status": "pending"}
    return task.model_copy(update={"due_on": day, "repeat": str(repeats.next_rule(rule)), **begun})


def _labels(task: Task, wanted: TaskPatch) -> tuple[str, ...]:
    removed = {*map(label_of, wanted.remove_labels or ())}
    kept = set(task.labels if wanted.labels is None else map(label_of, wanted.labels))
    if _ALL_LABELS in removed:
        kept = set[str]()
    kept = kept.union(map(label_of, wanted.add_labels or ())).difference(removed)
    if len(kept) > MOST_LABELS:
        raise TooManyLabels(most=MOST_LABELS)
    return tuple(sorted(kept))


def label_of(text: str) -> str:
    """As it is stored: every spelling of a label is one."""
    folded = unicodedata.normalize("NFC", unicodedata.normalize("NFD", text).casefold())
    label = " ".join(" ".join(folded.split()).lstrip("#@ ").split())
    if not 1 <= len(label) <= _LONGEST_LABEL:
        raise LabelInvalid(longest=_LONGEST_LABEL)
    return label
