"""Dates as the tools read and write them: a small closed grammar, and nothing else of a user's language.

A date is a day and perhaps a clock time, where the user is: it stays the same on a journey and when clocks change.
What is written with an offset is an instant, and is turned into the user's clock time once, when it is read.
`now` is always that clock: a datetime without a zone.
"""

import re
from calendar import monthrange
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from datetime import time as clock_time
from typing import Literal
from zoneinfo import ZoneInfo

from common.tool_server.errors import to_printable
from mcp_server import errors

FIRST_YEAR, LAST_DAY = 1970, date(2999, 12, 31)
_LONGEST = 100  # characters; nothing that can be read is as long

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
    """The day, and the clock time in whole minutes; without one it is due all day."""

    day: date
    time: clock_time | None = None


@dataclass(frozen=True)
class Range:
    """Which dates a list shows: those from `first` to `last`, both included; None leaves an end open."""

    first: date | None = None
    last: date | None = None
    undated: bool = False
    """Only what has no date."""
    overdue_at: datetime | None = None
    """Only what is overdue at this time."""


def read_due(
    text: str, *, now: datetime, zone: ZoneInfo | None = None, current: Due | None = None
) -> Due | Next | None:
    """The date that is meant for a task which has `current`; None takes the date away, "next" skips an occurrence.

    `zone` is the user's, UTC if none is known. What cannot be read raises DateInvalid.
    """
    words = _words(text)
    if words in ("none", "next"):
        return "next" if words == "next" else None
    if shift := _SHIFT.fullmatch(words):
        return _shifted(shift, now.date(), current)
    if _CLOCK.fullmatch(words):
        return _at(_time(words), now, current)
    found = _DUE.fullmatch(words)
    day = _day(found["day"], now.date()) if found else None
    if found is None or day is None or (found["offset"] and found["day"].isalpha()):
        raise errors.DueUnknown(text=to_printable(text))
    if found["clock"] is None:
        return Due(day, current.time if current and not found["all_day"] else None)
    due = Due(day, _time(found["clock"]))
    return _local(due, found["offset"], zone) if found["offset"] else due


def read_range(text: str, *, now: datetime) -> Range:
    """Which due dates are meant; "any" is every date. What cannot be read raises DateInvalid."""
    match _words(text):
        case "any":
            return Range()
        case "none":
            return Range(undated=True)
        case "overdue":
            return Range(overdue_at=now)
    return _days(text, now.date(), argument="due", words="overdue, none, any, ")


def read_done(text: str, *, now: datetime) -> Range:
    """On which days: a day or a range of days. What cannot be read raises DateInvalid."""
    return _days(text, now.date(), argument="done")


def shown(due: Due | None) -> str:
    """As the tools show it: "Fri 2026-11-27 15:00", and "none" for no date. `read_due` reads it again."""
    clock = f" {due.time:%H:%M}" if due and due.time is not None else ""
    return _with_weekday(due.day) + clock if due else "none"


def plus_months(day: date, months: int) -> date:
    """The same day of another month, or that month's last if it is shorter."""
    year, month = divmod(day.year * 12 + day.month - 1 + months, 12)
    return date(year, month + 1, min(day.day, monthrange(year, month + 1)[1]))


def _words(text: str) -> str:
    return " ".join(text.lower().split()) if len(text) <= _LONGEST else ""


def _shifted(shift: re.Match[str], today: date, current: Due | None) -> Due:
    if (amount := int(shift[1])) == 0:
        raise errors.ShiftByNothing(shift=shift[0])
    start = max(today, current.day) if current else today
    days = timedelta(days=7 * amount if shift[2] == "w" else amount)
    day = plus_months(start, amount) if shift[2] == "m" else start + days
    return Due(_within_years(day), current.time if current else None)


def _at(clock: clock_time, now: datetime, current: Due | None) -> Due:
    """On the task's own day, else the next time that the clock shows it: the current minute has not passed."""
    if current:
        return Due(current.day, clock)
    passed = clock < now.time().replace(second=0, microsecond=0)
    return Due(now.date() + timedelta(days=passed), clock)


def _local(due: Due, offset: str, zone: ZoneInfo | None) -> Due:
    local = datetime.fromisoformat(f"{due.day}T{due.time}{offset.upper()}").astimezone(zone or UTC)
    return Due(_within_years(local.date()), clock_time(local.hour, local.minute))


def _days(text: str, today: date, *, argument: str, words: str = "") -> Range:
    start, dots, end = (part.strip() for part in _words(text).partition(".."))
    first = _day(start, today)
    last = _day(end, today) if dots else first
    if not (first or last) or (start and not first) or (end and not last):
        raise errors.RangeUnknown(argument=argument, text=to_printable(text), words=words)
    if first and last and last < first:
        raise errors.RangeInverted(first=_with_weekday(first), last=_with_weekday(last))
    return Range(first, last)


def _day(words: str, today: date) -> date | None:
    if words in ("today", "tomorrow"):
        return today + timedelta(days=words == "tomorrow")
    if words in _WEEKDAY_OF:
        return today + timedelta(days=(_WEEKDAY_OF[words] - today.weekday() - 1) % 7 + 1)
    found = _DAY.fullmatch(words)
    if found is None or found["weekday"] not in (None, *_WEEKDAY_OF):
        return None
    day = _calendar_day(int(found["year"]), int(found["month"]), int(found["day"]))
    claimed = _WEEKDAY_OF.get(found["weekday"], day.weekday())
    if claimed != day.weekday():
        nearest = day + timedelta(days=(claimed - day.weekday() + 3) % 7 - 3)
        both = {"this": _with_weekday(day), "that": _with_weekday(nearest)}
        raise errors.WeekdayOfOtherDay(day=day, claimed=_WEEKDAYS[claimed], **both)
    return day


def _calendar_day(year: int, month: int, day: int) -> date:
    real_month = min(max(month, 1), 12)
    real = _within_years(date(year, real_month, min(max(day, 1), monthrange(year, real_month)[1])))
    if (real.month, real.day) != (month, day):
        raise errors.NoSuchDay(day=f"{year:04}-{month:02}-{day:02}", like=real)
    return real


def _time(words: str) -> clock_time:
    hour, minute = (int(part) for part in words.split(":")[:2])
    if hour > 23 or minute > 59:
        raise errors.NoSuchTime(time=f"{hour:02}:{minute:02}")
    return clock_time(hour, minute)


def _within_years(day: date) -> date:
    if not FIRST_YEAR <= day.year <= LAST_DAY.year:
        raise errors.DayOutOfRange(day=day, first=FIRST_YEAR, last=LAST_DAY.year)
    return day


def _with_weekday(day: date) -> str:
    return f"{_WEEKDAYS[day.weekday()][:3]} {day}"
