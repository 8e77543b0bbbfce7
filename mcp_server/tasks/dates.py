"""Parses and renders the dates of the tools, in a small fixed grammar and not in natural language.

A due date is a day and perhaps a time in the user's local time, which does not change with the zone. A text with an
offset is an instant, which is converted to local time once. `now` is always local: a datetime without a zone.
Functions that read raise `DateInvalid`.
"""

import re
from calendar import monthrange
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from datetime import time as clock_time
from typing import Literal
from zoneinfo import ZoneInfo

from common.recurrence import LAST_DAY, add_months
from common.tool_server.errors import to_printable
from mcp_server import errors

FIRST_YEAR = 1970
_MAX_LENGTH = 100  # characters; no valid date is as long

_WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_WEEKDAY_OF = {word: i for i, name in enumerate(_WEEKDAYS) for word in (name.lower(), name[:3].lower())}

_CLOCK_PATTERN = r"\d\d?:\d\d(?::[0-5]\d(?:\.\d{1,9})?)?"
_OFFSET_PATTERN = r"z|[+-](?:[01]\d|2[0-3])(?::?[0-5]\d)?"
_CLOCK = re.compile(_CLOCK_PATTERN, re.ASCII)
_SHIFT = re.compile(r"([+-]\d{1,4})([dwm])", re.ASCII)
_DAY = re.compile(r"(?:(?P<weekday>[a-z]+) )?(?P<year>(?!0000)\d{4})-(?P<month>\d\d)-(?P<day>\d\d)", re.ASCII)
_DUE = re.compile(
    rf"(?P<day>(?:[a-z]+ )?[0-9-]{{10}}|[a-z]+)"
    rf"(?:(?P<all_day> all day)|[t ](?P<clock>{_CLOCK_PATTERN}) ?(?P<offset>{_OFFSET_PATTERN})?)?",
    re.ASCII,
)

Next = Literal["next"]


@dataclass(frozen=True)
class Due:
    """A day and a time in whole minutes; without a time the task is due all day."""

    day: date
    time: clock_time | None = None


@dataclass(frozen=True)
class Range:
    """The dates of a list: from `first` to `last`, both included; None leaves an end open."""

    first: date | None = None
    last: date | None = None
    undated: bool = False
    """Only tasks without a date."""
    overdue_at: datetime | None = None
    """Only tasks that are overdue at this time."""


def read_due(
    text: str, *, now: datetime, zone: ZoneInfo | None = None, current: Due | None = None
) -> Due | Next | None:
    """Returns the new due date of a task whose due date is `current`, None for no date, or "next".

    `zone` is the user's, by default UTC.
    """
    words = _normalize(text)
    if words in ("none", "next"):
        return "next" if words == "next" else None
    if shift := _SHIFT.fullmatch(words):
        return _shift(shift, now.date(), current)
    if _CLOCK.fullmatch(words):
        return _read_clock(_read_time(words), now, current)
    match = _DUE.fullmatch(words)
    day = _read_day(match["day"], now.date()) if match else None
    if match is None or day is None or (match["offset"] and match["day"].isalpha()):
        raise errors.DueUnknown(text=to_printable(text))
    if match["clock"] is None:
        return Due(day, current.time if current and not match["all_day"] else None)
    due = Due(day, _read_time(match["clock"]))
    return _convert_to_local(due, match["offset"], zone) if match["offset"] else due


def read_due_range(text: str, *, now: datetime) -> Range:
    match _normalize(text):
        case "any":
            return Range()
        case "none":
            return Range(undated=True)
        case "overdue":
            return Range(overdue_at=now)
    return _read_days(text, now.date(), argument="due", words="overdue, none, any, ")


def read_completion_range(text: str, *, now: datetime) -> Range:
    return _read_days(text, now.date(), argument="done")


def render_due(due: Due | None) -> str:
    """Renders "Fri 2026-11-27 15:00", or "none"; `read_due` accepts both."""
    clock = f" {due.time:%H:%M}" if due and due.time is not None else ""
    return _render_day(due.day) + clock if due else "none"


def _normalize(text: str) -> str:
    return " ".join(text.lower().split()) if len(text) <= _MAX_LENGTH else ""


def _shift(shift: re.Match[str], today: date, current: Due | None) -> Due:
    if (amount := int(shift[1])) == 0:
        raise errors.ShiftByNothing(shift=shift[0])
    start = max(today, current.day) if current else today
    days = timedelta(days=7 * amount if shift[2] == "w" else amount)
    day = add_months(start, amount) if shift[2] == "m" else start + days
    return Due(_check_year(day), current.time if current else None)


def _read_clock(clock: clock_time, now: datetime, current: Due | None) -> Due:
    """Uses the task's day, else the next day with this time; the current minute counts as future."""
    if current:
        return Due(current.day, clock)
    is_past = clock < now.time().replace(second=0, microsecond=0)
    return Due(now.date() + timedelta(days=is_past), clock)


def _convert_to_local(due: Due, offset: str, zone: ZoneInfo | None) -> Due:
    local = datetime.fromisoformat(f"{due.day}T{due.time}{offset.upper()}").astimezone(zone or UTC)
    return Due(_check_year(local.date()), clock_time(local.hour, local.minute))


def _read_days(text: str, today: date, *, argument: str, words: str = "") -> Range:
    start, dots, end = (part.strip() for part in _normalize(text).partition(".."))
    first = _read_day(start, today)
    last = _read_day(end, today) if dots else first
    if not (first or last) or (start and not first) or (end and not last):
        raise errors.RangeUnknown(argument=argument, text=to_printable(text), words=words)
    if first and last and last < first:
        raise errors.RangeInverted(first=_render_day(first), last=_render_day(last))
    return Range(first, last)


def _read_day(words: str, today: date) -> date | None:
    if words in ("today", "tomorrow"):
        return today + timedelta(days=words == "tomorrow")
    if words in _WEEKDAY_OF:
        return today + timedelta(days=(_WEEKDAY_OF[words] - today.weekday() - 1) % 7 + 1)
    match = _DAY.fullmatch(words)
    if match is None or match["weekday"] not in (None, *_WEEKDAY_OF):
        return None
    day = _create_date(int(match["year"]), int(match["month"]), int(match["day"]))
    claimed = _WEEKDAY_OF.get(match["weekday"], day.weekday())
    if claimed != day.weekday():
        nearest = day + timedelta(days=(claimed - day.weekday() + 3) % 7 - 3)
        both = {"this": _render_day(day), "that": _render_day(nearest)}
        raise errors.WeekdayOfOtherDay(day=day, claimed=_WEEKDAYS[claimed], **both)
    return day


def _create_date(year: int, month: int, day: int) -> date:
    real_month = min(max(month, 1), 12)
    real = _check_year(date(year, real_month, min(max(day, 1), monthrange(year, real_month)[1])))
    if (real.month, real.day) != (month, day):
        raise errors.NoSuchDay(day=f"{year:04}-{month:02}-{day:02}", like=real)
    return real


def _read_time(words: str) -> clock_time:
    hour, minute = (int(part) for part in words.split(":")[:2])
    if hour > 23 or minute > 59:
        raise errors.NoSuchTime(time=f"{hour:02}:{minute:02}")
    return clock_time(hour, minute)


def _check_year(day: date) -> date:
    if not FIRST_YEAR <= day.year <= LAST_DAY.year:
        raise errors.DayOutOfRange(day=day, first=FIRST_YEAR, last=LAST_DAY.year)
    return day


def _render_day(day: date) -> str:
    return f"{_WEEKDAYS[day.weekday()][:3]} {day}"
