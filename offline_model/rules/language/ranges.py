"""Ranges of days that a list is asked for, as people say them: rows of what is said, and the first and last day."""

import re
from collections.abc import Callable
from datetime import date, timedelta

from offline_model.rules.language import days
from offline_model.rules.language.days import COUNT, MONTH, UNIT, WEEKDAY

Span = tuple[date, date]
Row = tuple[re.Pattern[str], Callable[..., Span | None]]


def _month_of(today: date, name: str) -> Span:
    """This one, or the next of that name."""
    last_month = days.last_of_month(today, -1)
    first = days.day_of_year(last_month + timedelta(days=1), "1", name) or today
    return first, days.last_of_month(first)


def _last_month_of(today: date, name: str) -> Span:
    first, _ = _month_of(days.month(today, -11), name)
    return first, days.last_of_month(first)


def _week(today: date, later: int) -> Span:
    first = days.week(today, later)
    return first, first + timedelta(days=6)


def _month(today: date, later: int) -> Span:
    return days.month(today, later), days.last_of_month(today, later)


def _weekend(today: date, later: int) -> Span:
    first = days.weekend(today, later)
    return first, first + timedelta(days=1)


def _next_days(today: date, count: str, unit: str) -> Span | None:
    is_far = unit == "year" and days.count_of(count) > days.MOST_YEARS
    return None if is_far else (today, days.plus(today, days.count_of(count), unit))


def _last_days(today: date, count: str | None, unit: str) -> Span:
    return max(date(1970, 1, 1), days.plus(today, -days.count_of(count or "one"), unit)), today


def _one(day: date) -> Span:
    return day, day


def _last(today: date, word: str) -> date:
    """The last such weekday before today."""
    return days.next_weekday(today - timedelta(days=8), word)


def _rows(*rows: tuple[str, Callable[..., Span | None]]) -> tuple[Row, ...]:
    return tuple((re.compile(source), function) for source, function in rows)


_COMING = _rows(
    ("(?:the rest of )?(?:this|the) week", lambda today: (today, _week(today, 0)[1])),
    ("(?:on |at )?(?:this|the) weekend", lambda today: _weekend(today, 0)),
    ("next week", lambda today: _week(today, 1)),
    ("next weekend", lambda today: _weekend(today, 1)),
    ("(?:the rest of )?(?:this|the) month", lambda today: (today, days.last_of_month(today))),
    ("next month", lambda today: _month(today, 1)),
    (f"in ({MONTH})", _month_of),
    (rf"(?:in |within |over |for )?(?:the )?(?:next|coming) ({COUNT}) {UNIT}", _next_days),
)
_PAST = _rows(
    ("today", _one),
    ("yesterday", lambda today: _one(today - timedelta(days=1))),
    ("this week", lambda today: (days.week(today), today)),
    ("last week", lambda today: _week(today, -1)),
    ("last weekend", lambda today: _weekend(today, -1)),
    ("(?:this|on the|at the) weekend", lambda today: _weekend(today, -1 if today.weekday() < 5 else 0)),
    ("this month", lambda today: (days.month(today), today)),
    ("last month", lambda today: _month(today, -1)),
    ("this year", lambda today: (date(today.year, 1, 1), today)),
    ("last year", lambda today: (date(today.year - 1, 1, 1), date(today.year - 1, 12, 31))),
    (f"in ({MONTH})", _last_month_of),
    (f"(?:on |last )({WEEKDAY})", lambda today, word: _one(_last(today, word))),
    (f"since ({WEEKDAY})", lambda today, word: (_last(today, word), today)),
    ("since yesterday", lambda today: (today - timedelta(days=1), today)),
    (rf"(?:in |over |within )?the (?:last|past) (?:({COUNT}) )?{UNIT}", _last_days),
)


def coming(said: str, today: date | None) -> str | None:
    """Which days an open task is to be due on: of "by Friday" all up to that day."""
    said = said.removeprefix("due ").removeprefix("for ")
    head = re.match(r"(?:by|until|till|before) (?:the )?", said)
    if not head and (found := _found(said, today, _COMING)):
        return found
    day = days.day_of(said, today) or days.day_of(f"on {said}", today)
    if isinstance(day, str) and day[0] == "+":
        day = days.as_date(day, today) if today else None
    word = days.shown(day) if isinstance(day, date) else day
    return f"..{word}" if head and word else word


def past(said: str, today: date | None) -> str | None:
    """On which days something was done."""
    return _found(said, today, _PAST)


def _found(said: str, today: date | None, rows: tuple[Row, ...]) -> str | None:
    for pattern, function in rows if today else ():
        if (found := pattern.fullmatch(said)) and (span := function(today, *found.groups())):
            first, last = map(days.shown, span)
            return first if first == last else f"{first}..{last}"
    return None
