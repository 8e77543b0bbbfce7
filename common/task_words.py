"""The words for the fields of a task: in cards, in the text of clients without cards, and in the terminal."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any

from common.repeats import describe_repeat

MAX_REMIND = 40_320
"""The most minutes before its due time at which a task reminds: 28 days."""
REMIND_NEVER = -1
"""Stored for a task, or a user, without reminders."""
_UNITS = ((1440, "day", "days"), (60, "hour", "hours"), (1, "min", "min"))


@dataclass(frozen=True)
class FieldWords:
    """How a field's value is written. `noun` follows in texts; cards and the terminal leave it out."""

    name: str
    write: Callable[[Any], Sequence[str]] = lambda value: [str(value)]
    noun: str = ""
    is_of_pending: bool = False
    """Whether only pending tasks show it."""

    def describe(self, value: Any) -> list[str]:
        return [f"{text} {self.noun}".rstrip() for text in self.write(value)]


def describe_reminder(remind: int | str) -> str:
    """Describes minutes before the due time, or the word none."""
    if isinstance(remind, str):
        return "no reminder"
    if remind == 0:
        return "reminder when due"
    size, unit, units = next(row for row in _UNITS if remind % row[0] == 0)
    return f"reminder {remind // size} {unit if remind == size else units} before"


FIELDS: Sequence[FieldWords] = (
    FieldWords("priority", noun="priority"),
    FieldWords("repeat", lambda rule: [describe_repeat(rule)]),
    FieldWords("remind", lambda remind: [describe_reminder(remind)], is_of_pending=True),
    FieldWords("labels", lambda labels: [f"#{label}" for label in labels]),
)
"""The fields that are shown beside the title and the due date, in order."""


def select_fields(task: Mapping[str, Any]) -> Iterator[tuple[FieldWords, Any]]:
    """Yields the fields that a task has, with their values."""
    fields = (field for field in FIELDS if not field.is_of_pending or task.get("status") == "pending")
    return ((field, value) for field in fields if (value := task.get(field.name)) not in (None, "", []))


def read_due(day: str, time: str | None) -> date:
    """Combines the parts of a due date, 2026-11-27 and 15:00; without a time it is a day."""
    return datetime.fromisoformat(f"{day}T{time}") if time else date.fromisoformat(day)


def describe_due(due: date, today: date | None) -> str:
    """Writes a due date as Mon 23 Nov 15:00; with the year, if it is not the current one."""
    year = f" {due.year}" if today and due.year != today.year else ""
    time = f" {due:%H:%M}" if isinstance(due, datetime) else ""
    return f"{due:%a} {due.day} {due:%b}{year}{time}"
