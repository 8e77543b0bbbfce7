"""A task as events of a calendar (RFC 5545)."""

from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta, tzinfo
from hashlib import sha256

from icalendar import Alarm, Event, vRecur, vText

from backend.calendar import recurrence
from backend.cards.task import Due, Task
from common.text import remove_invisible

_LENGTH = timedelta(minutes=30)  # of what has a time: the tools know only when it is due
_LAST = date(9999, 12, 30)  # the last day that every zone has
_PRIORITIES = {"high": 1, "medium": 5, "low": 9}  # RFC 5545, section 3.8.1.9


class DatedTask(Task):
    due: Due  # pyright: ignore[reportIncompatibleVariableOverride, reportGeneralTypeIssues]
    series: int | None = None
    updated_at: datetime


@dataclass(frozen=True)
class Events:
    """Makes the events of one person's tasks, in the person's zone."""

    owner: str
    zone: tzinfo

    def create_events(self, task: DatedTask) -> list[Event]:
        """Creates the event of a task, or two if it was moved away from its rule: it, and what follows by the rule."""
        day = task.due.date() if isinstance(task.due, datetime) else task.due
        series = recurrence.parse_rule(task.repeat, day)
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
        """Creates one event: with a time it has an alarm, and a whole day does not count as busy."""
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
            event.add("duration", _LENGTH)
            event.add_component(_alarm(title))
        else:
            event.add("dtstart", due)
            event.add("transp", "TRANSPARENT")
        return event

    def _render_rule(self, series: recurrence.Recurrence, start: date, count: int | None) -> str:
        """Adds its end to a rule, as a date or a time like the beginning; a time is in UTC."""
        if count is not None:
            return f"{series.rule};COUNT={count}"
        if series.until is None:
            return series.rule
        if not isinstance(start, datetime):
            return f"{series.rule};UNTIL={series.until:%Y%m%d}"
        last = datetime.combine(min(series.until, _LAST), start.time(), self.zone).astimezone(UTC)
        return f"{series.rule};UNTIL={last:%Y%m%dT%H%M%SZ}"

    def _create_uid(self, task: DatedTask, *, moved: bool) -> str:
        """Returns the same id for each task of a series, another for each user."""
        number = f"{task.series or task.id}{'-moved' if moved else ''}"
        return f"{number}.{sha256(self.owner.encode()).hexdigest()[:16]}@todo"


def _alarm(title: str) -> Alarm:
    alarm = Alarm()
    alarm.add("action", "DISPLAY")
    alarm.add("description", title)
    alarm["trigger"] = vText("PT0M")  # the library writes no time as P0D, which fewer programs read
    return alarm
