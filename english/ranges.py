"""Days that a list is asked for, as the task tools take them: "Mon 2026-11-23..Sun 2026-11-29"."""

import re
from collections.abc import Callable
from datetime import date, datetime

from english.atoms import COUNT, MONTH, UNIT, WEEKDAY, DateOrder, count_of, month_of, weekday_of
from english.calendar import end_of_month, first_of_month, monday, next_day_of_year, next_weekday, plus, plus_days
from english.reading import When, read_when
from english.words import split_words

Days = tuple[date | None, date | None]
_Row = tuple[re.Pattern[str], Callable[[date, re.Match[str]], Days]]
_EARLIEST = date(1970, 1, 1)
_SHIFT = re.compile(rf"(?P<count>{COUNT}) (?P<unit>{UNIT})")


def _rows(*rows: tuple[str, Callable[[date, re.Match[str]], Days]]) -> tuple[_Row, ...]:
    return tuple((re.compile(pattern), days) for pattern, days in rows)


def _week(today: date, weeks: int) -> Days:
    return monday(today, weeks), plus_days(monday(today, weeks), 6)


def _month(today: date, months: int) -> Days:
    return first_of_month(today, months), end_of_month(today, months)


def _weekend(today: date, weeks: int) -> Days:
    saturday = plus_days(monday(today, weeks), 5)
    return saturday, plus_days(saturday, 1)


def _named_month(today: date, name: str) -> Days:
    """Returns this month or the next of that name."""
    first = next_day_of_year(first_of_month(today), month_of(name), 1) or today
    return first, end_of_month(first)


def _one(day: date | None) -> Days:
    return day, day


def _last_weekday(today: date, word: str) -> date:
    return next_weekday(plus_days(today, -8), weekday_of(word))


def _past_days(today: date, match: re.Match[str]) -> Days:
    return max(_EARLIEST, plus(today, -count_of(match["count"] or "1"), match["unit"]) or _EARLIEST), today


_COMING = _rows(
    ("(?:the rest of |for )?(?:this|the) week", lambda today, _: (today, _week(today, 0)[1])),
    ("(?:on |at |over )?(?:this|the) weekend", lambda today, _: _weekend(today, 0)),
    ("next week", lambda today, _: _week(today, 1)),
    ("next weekend", lambda today, _: _weekend(today, 1)),
    ("(?:the rest of )?(?:this|the) month", lambda today, _: (today, end_of_month(today))),
    ("next month", lambda today, _: _month(today, 1)),
    (f"in (?P<month>{MONTH})", lambda today, match: _named_month(today, match["month"])),
    (
        rf"(?:in |within |over |for )?(?:the )?(?:next|coming) (?P<count>{COUNT}) (?P<unit>{UNIT})",
        lambda today, match: (today, plus(today, count_of(match["count"]), match["unit"])),
    ),
)
_PAST = _rows(
    ("today|this (?:morning|afternoon|evening)", lambda today, _: _one(today)),
    ("yesterday", lambda today, _: _one(plus_days(today, -1))),
    ("this week", lambda today, _: (monday(today), today)),
    ("last week", lambda today, _: _week(today, -1)),
    ("last weekend", lambda today, _: _weekend(today, -1)),
    ("(?:this|on the|at the) weekend", lambda today, _: _weekend(today, -1 if today.weekday() < 5 else 0)),
    ("this month", lambda today, _: (first_of_month(today), today)),
    ("last month", lambda today, _: _month(today, -1)),
    ("this year", lambda today, _: (date(today.year, 1, 1), today)),
    ("last year", lambda today, _: (date(today.year - 1, 1, 1), date(today.year - 1, 12, 31))),
    (f"in (?P<month>{MONTH})", lambda today, match: _named_month(first_of_month(today, -11), match["month"])),
    (rf"(?:on |last )(?P<weekday>{WEEKDAY})", lambda today, match: _one(_last_weekday(today, match["weekday"]))),
    (rf"since (?P<weekday>{WEEKDAY})", lambda today, match: (_last_weekday(today, match["weekday"]), today)),
    ("since yesterday", lambda today, _: (plus_days(today, -1), today)),
    (rf"(?:in |over |within )?the (?:last|past) (?:(?P<count>{COUNT}) )?(?P<unit>{UNIT})", _past_days),
)


def read_coming_range(text: str, now: datetime, order: DateOrder | None = None) -> str | None:
    """Reads on which days open tasks are to be due; "by Friday" is every day up to then. None if it is no day."""
    line = re.sub("^(?:due |for )+", "", _line(text))
    until = re.match("(?:by|until|before) (?:the )?", line)
    if not until and (found := _found(line, now.date(), _COMING)):
        return found
    when = read_when(re.sub("^(?:due |for )+", "", text.strip().lower()), now, order)
    if when is None or when.time or when.repeat:
        return None
    return f"..{_shown(when.day)}" if until else _shown(when.day)


def read_past_range(text: str, now: datetime) -> str | None:
    """Reads on which days something was done; None if it is no day."""
    return _found(_line(text), now.date(), _PAST)


def read_shift(text: str) -> str | None:
    """Reads by how much a date is moved: "+1w" of "a week"; None if it is something else."""
    match = _SHIFT.fullmatch(_line(text))
    if match is None or not (count := count_of(match["count"])):
        return None
    unit = match["unit"]
    if unit in ("year", "fortnight"):
        return f"+{12 * count}m" if unit == "year" else f"+{2 * count}w"
    return f"+{count}{unit[0]}"


def _line(text: str) -> str:
    return split_words(text.strip(" ,:?!.")).line


def _found(line: str, today: date, rows: tuple[_Row, ...]) -> str | None:
    for pattern, days in rows:
        if match := pattern.fullmatch(line):
            first, last = days(today, match)
            if first and last:
                return _shown(first) if first == last else f"{_shown(first)}..{_shown(last)}"
    return None


def _shown(day: date) -> str:
    return When(day).due
