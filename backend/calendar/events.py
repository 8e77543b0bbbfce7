"""A task as events of a calendar (RFC 5545).

They are written here: icalendar 7.3 takes 0.4 ms of processor time for an event, so two seconds for a large calendar.
"""

from dataclasses import dataclass
from datetime import UTC, date, datetime
from hashlib import sha256
from zoneinfo import ZoneInfo

from backend.calendar import recurrence
from backend.cards.task import Due, Task
from service.database.text import without_unseen

_LENGTH = "PT30M"  # of what has a time: the tools know only when it is due
_LAST = date(9999, 12, 30)  # the last day that every zone has
_LINE = 75  # octets
_PRIORITIES = {"high": 1, "medium": 5, "low": 9}  # RFC 5545, section 3.8.1.9


class DatedTask(Task):
    """A task that is due on a day, or at a time of one."""

    due: Due  # pyright: ignore[reportIncompatibleVariableOverride, reportGeneralTypeIssues]
    series: int | None = None
    updated_at: datetime


@dataclass(frozen=True)
class Events:
    """Makes the events of one person's tasks, in the person's zone."""

    owner: str
    zone: ZoneInfo

    def of(self, task: DatedTask) -> bytes:
        """One event; two for a task that was moved away from its repeat's rule: itself, and what follows the rule."""
        day = task.due.date() if isinstance(task.due, datetime) else task.due
        series = recurrence.parse_rule(task.repeat, day)
        if series is None:
            return self._event(task, task.due)
        if series.first == day:
            return self._event(task, task.due, self._rule(series, task.due, series.count))
        left = None if series.count is None else series.count - 1
        if left == 0 or (series.until is not None and series.first > series.until):
            return self._event(task, task.due)
        following = task.due.replace(series.first.year, series.first.month, series.first.day)
        moved = self._event(task, task.due, moved=True)
        return moved + self._event(task, following, self._rule(series, following, left))

    def _event(self, task: DatedTask, due: date, rule: str | None = None, *, moved: bool = False) -> bytes:
        changed = f"{_basic(task.updated_at.astimezone(UTC))}Z"
        title = _escape(_join_lines(task.title))
        lines = [
            "BEGIN:VEVENT",
            f"UID:{self._uid(task, moved=moved)}",
            f"DTSTAMP:{changed}",
            f"LAST-MODIFIED:{changed}",
        ]
        lines.append(f"SUMMARY:{title}")
        if description := "\n".join(without_unseen(task.description).splitlines()):
            lines.append(f"DESCRIPTION:{_escape(description)}")
        if task.priority:
            lines.append(f"PRIORITY:{_PRIORITIES[task.priority]}")
        if task.labels:
            lines.append(f"CATEGORIES:{','.join(_escape(_join_lines(label)) for label in task.labels)}")
        if rule is not None:
            lines.append(f"RRULE:{rule}")
        if isinstance(due, datetime):
            moment = f":{_basic(due)}Z" if self.zone.key == "UTC" else f";TZID={self.zone.key}:{_basic(due)}"
            # No time before is PT0M and not P0D, which fewer programs read.
            alarm = ["BEGIN:VALARM", "ACTION:DISPLAY", f"DESCRIPTION:{title}", "TRIGGER:PT0M", "END:VALARM"]
            lines += [f"DTSTART{moment}", f"DURATION:{_LENGTH}", *alarm]
        else:
            lines += [f"DTSTART;VALUE=DATE:{_basic(due)}", "TRANSP:TRANSPARENT"]
        return b"".join(map(_fold, [*lines, "END:VEVENT"]))

    def _rule(self, series: recurrence.Recurrence, start: date, count: int | None) -> str:
        """With its end, which has the kind of value that the beginning has, and is in UTC where that has a zone."""
        if count is not None:
            return f"{series.rule};COUNT={count}"
        if series.until is None:
            return series.rule
        if not isinstance(start, datetime):
            return f"{series.rule};UNTIL={_basic(series.until)}"
        last = datetime.combine(min(series.until, _LAST), start.time(), self.zone).astimezone(UTC)
        return f"{series.rule};UNTIL={_basic(last)}Z"

    def _uid(self, task: DatedTask, *, moved: bool) -> str:
        """The same for each task of a series, and for no two people."""
        number = f"{task.series or task.id}{'-moved' if moved else ''}"
        return f"{number}.{sha256(self.owner.encode()).hexdigest()[:16]}@todo"


def _basic(moment: date) -> str:
    """A day, or a day and a time, in the basic format of ISO 8601."""
    extended = moment.isoformat(timespec="seconds") if isinstance(moment, datetime) else moment.isoformat()
    return extended.partition("+")[0].replace("-", "").replace(":", "")


def _escape(text: str) -> str:
    """A value of the type TEXT (section 3.3.11)."""
    return text.replace("\\", "\\\\").replace(";", "\\;").replace(",", "\\,").replace("\n", "\\n")


def _join_lines(text: str) -> str:
    return " ".join(without_unseen(text).split())


def _fold(line: str) -> bytes:
    """A content line in pieces of at most 75 octets (section 3.1), none of which ends within a character or escape."""
    rest, pieces = line.encode(), list[bytes]()
    while len(rest) > _LINE:
        end = _LINE
        while rest[end] & 0xC0 == 0x80:
            end -= 1
        if rest[end - 1 : end] == b"\\":
            end -= 1
        pieces.append(rest[:end])
        rest = b" " + rest[end:]
    return b"\r\n".join([*pieces, rest, b""])
