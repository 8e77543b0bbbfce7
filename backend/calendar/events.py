"""A task as events of a calendar (RFC 5545).

A month too short for a day has it on its last day for the tools, where RFC 5545 leaves it out: BYSETPOS says so there.
"""

from calendar import monthrange
from collections.abc import Collection
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from hashlib import sha256

from dateutil.rrule import rrulestr
from icalendar import Alarm, Event, vRecur, vText

from backend.cards.task import Due, Task
from common.text import remove_invisible

_EVENT_LENGTH = timedelta(minutes=30)  # of a task with a time, which has no length
_LAST_DAY = date(9999, 12, 30)  # that every zone has
_PRIORITIES = {"high": 1, "medium": 5, "low": 9}  # RFC 5545, section 3.8.1.9

# Of a rule of the tools, but for FROM=DONE, which no calendar knows.
_PARTS = {"FREQ", "INTERVAL", "BYMONTH", "BYDAY", "BYMONTHDAY", "COUNT", "UNTIL"}
_FREQUENCIES = ("DAILY", "WEEKLY", "MONTHLY", "YEARLY")


class DatedTask(Task):
    due: Due  # pyright: ignore[reportIncompatibleVariableOverride, reportGeneralTypeIssues]
    series: int | None = None
    updated_at: datetime


@dataclass(frozen=True)
class Recurrence:
    """The rule of a series from one of its tasks on: its first and last day, and how many tasks are left, with that."""

    rule: str
    first: date
    count: int | None
    until: date | None


@dataclass(frozen=True)
class Events:
    """Creates the events of a user's tasks, in the user's time zone."""

    owner: str
    zone: tzinfo

    def create_events(self, task: DatedTask) -> list[Event]:
        """Creates the event of a task, or two if it was moved away from its rule: it, and what follows by the rule."""
        day = task.due.date() if isinstance(task.due, datetime) else task.due
        series = parse_rule(task.repeat, day)
        if series is None:
            return [self._create_event(task, task.due)]
        if series.first == day:
            return [self._create_event(task, task.due, self._render_rule(series, task.due, series.count))]
        left = None if series.count is None else series.count - 1
        if left == 0 or (series.until is not None and series.first > series.until):
            return [self._create_event(task, task.due)]
        following = task.due.replace(series.first.year, series.first.month, series.first.day)
        moved = self._create_event(task, task.due, moved=True)
        return [moved, self._create_event(task, following, self._render_rule(series, following, left))]

    def _create_event(self, task: DatedTask, due: date, rule: str | None = None, *, moved: bool = False) -> Event:
        """Creates one event. One with a time may have an alarm, and a whole day does not count as busy."""
        event = Event()
        event.add("uid", self._create_uid(task, moved=moved))
        event.add("dtstamp", task.updated_at)
        event.add("last-modified", task.updated_at)
        title = " ".join(remove_invisible(task.title).split())
        event.add("summary", title)
        if description := "\n".join(remove_invisible(task.description).splitlines()):
            event.add("description", description)
        if task.priority:
            event.add("priority", _PRIORITIES[task.priority])
        if task.labels:
            event.add("categories", [remove_invisible(label) for label in task.labels])
        if rule is not None:
            event.add("rrule", vRecur.from_ical(rule))
        if isinstance(due, datetime):
            event.add("dtstart", due.replace(tzinfo=self.zone))
            event.add("duration", _EVENT_LENGTH)
            if task.remind != "none":
                event.add_component(_alarm(title, task.remind or 0))
        else:
            event.add("dtstart", due)
            event.add("transp", "TRANSPARENT")
        return event

    def _render_rule(self, series: Recurrence, start: date, count: int | None) -> str:
        """Adds its end to a rule, as a date or a time like the beginning; a time is in UTC."""
        if count is not None:
            return f"{series.rule};COUNT={count}"
        if series.until is None:
            return series.rule
        if not isinstance(start, datetime):
            return f"{series.rule};UNTIL={series.until:%Y%m%d}"
        last = datetime.combine(min(series.until, _LAST_DAY), start.time(), self.zone).astimezone(UTC)
        return f"{series.rule};UNTIL={last:%Y%m%dT%H%M%SZ}"

    def _create_uid(self, task: DatedTask, *, moved: bool) -> str:
        """Returns the same id for each task of a series, another for each user."""
        number = f"{task.series or task.id}{'-moved' if moved else ''}"
        return f"{number}.{sha256(self.owner.encode()).hexdigest()[:16]}@todo"


def _alarm(title: str, minutes: int) -> Alarm:
    alarm = Alarm()
    alarm.add("action", "DISPLAY")
    alarm.add("description", title)
    # The library writes no time as P0D, which fewer programs read.
    alarm["trigger"] = vText(f"-PT{minutes}M" if minutes else "PT0M")
    return alarm


def parse_rule(rule: str | None, due: date) -> Recurrence | None:
    """Converts a task's rule; None for a task that does not repeat, or of which only the next date is known."""
    try:
        given = dict(part.split("=") for part in (rule or "").split(";"))
        if not given.keys() <= _PARTS or given["FREQ"] not in _FREQUENCIES or int(given.get("INTERVAL", 1)) < 1:
            return None
        parts = [f"{name}={given[name]}" for name in ("FREQ", "INTERVAL", "BYMONTH") if name in given]
        if "BYDAY" in given:
            parts.append(f"BYDAY={','.join(_add_numbers(given['BYDAY'].split(',')))}")
        if "BYMONTHDAY" in given:
            shortest = monthrange(2026, int(given.get("BYMONTH", 2)))[1]
            parts.append(_render_month_days(set(map(int, given["BYMONTHDAY"].split(","))), shortest=shortest))
        count = int(given["COUNT"]) if "COUNT" in given else None
        until = date.fromisoformat(given["UNTIL"]) if "UNTIL" in given else None
        first = rrulestr(";".join(parts), dtstart=datetime.combine(due, time()))[0].date()
    except (KeyError, ValueError, IndexError):  # no rule of the tools, no such day, or none before the year 10000
        return None
    return Recurrence(";".join(parts), first, count, until)


def _add_numbers(weekdays: Collection[str]) -> list[str]:
    """Gives each weekday numbers if some have one: programs read a mixture in different ways."""
    if all(len(day) == 2 for day in weekdays):
        return [*weekdays]
    each = [[f"{nth}{day}" for nth in range(1, 6)] if len(day) == 2 else [day] for day in weekdays]
    return list(dict.fromkeys(day for days in each for day in days))


def _render_month_days(days: Collection[int], *, shortest: int) -> str:
    """Writes the days of a month; those that it may be too short for are on its last.

    One case has no rule of this kind: with the 29th and the 30th, but neither the 28th nor the last day, a February of
    29 days shows the 28th, too.
    """
    late = {day for day in days if day > shortest}
    if 31 in late and len(late) > 1:
        days, late = {*days, -1} - {31}, set[int]()
    early = {*days} - late
    if not late or -1 in early or (shortest in early and len(late) > 1):
        return "BYMONTHDAY=" + ",".join(map(str, sorted(days, key=lambda day: (day < 0, day))))
    listed = sorted({*early, *range(shortest, max(late) + 1)})
    positions = [*range(1, len(early) + 1), *range(-len(late), 0)]
    return f"BYMONTHDAY={','.join(map(str, listed))};BYSETPOS={','.join(map(str, positions))}"
