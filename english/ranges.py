"""Reads ranges of days for a list, in the form of the task tools: "Mon 2026-11-23..Sun 2026-11-29"."""

import re
from collections.abc import Callable
from datetime import date, datetime

from english.atoms import COUNT, MONTH, UNIT, WEEKDAY, DateOrder, parse_count, parse_month, parse_weekday
from english.calendar import (
    add_days,
    add_units,
    find_day_of_year,
    find_end_of_month,
    find_first_of_month,
    find_monday,
    find_weekday,
)
from english.reading import When, read_when
from english.words import split_words

Days = tuple[date | None, date | None]
_Row = tuple[re.Pattern[str], Callable[[date, re.Match[str]], Days]]
_EARLIEST = date(1970, 1, 1)
_SHIFT = re.compile(rf"(?P<count>{COUNT}) (?P<unit>{UNIT})")


def _compile_rows(*rows: tuple[str, Callable[[date, re.Match[str]], Days]]) -> tuple[_Row, ...]:
    return tuple((re.compile(pattern), days) for pattern, days in rows)


def _get_week(today: date, weeks: int) -> Days:
    return find_monday(today, weeks), add_days(find_monday(today, weeks), 6)


def _get_month(today: date, months: int) -> Days:
    return find_first_of_month(today, months), find_end_of_month(today, months)


def _get_weekend(today: date, weeks: int) -> Days:
    saturday = add_days(find_monday(today, weeks), 5)
    return saturday, add_days(saturday, 1)


def _find_month(today: date, name: str) -> Days:
    first = find_day_of_year(find_first_of_month(today), parse_month(name), 1) or today
    return first, find_end_of_month(first)


def _get_single_day(day: date | None) -> Days:
    return day, day


def _find_last_weekday(today: date, word: str) -> date:
    return find_weekday(add_days(today, -8), parse_weekday(word))


def _get_past_days(today: date, match: re.Match[str]) -> Days:
    return max(_EARLIEST, add_units(today, -parse_count(match["count"] or "1"), match["unit"]) or _EARLIEST), today


_COMING = _compile_rows(
    ("(?:the rest of |for )?(?:this|the) week", lambda today, _: (today, _get_week(today, 0)[1])),
    ("(?:on |at |over )?(?:this|the) weekend", lambda today, _: _get_weekend(today, 0)),
    ("next week", lambda today, _: _get_week(today, 1)),
    ("next weekend", lambda today, _: _get_weekend(today, 1)),
    ("(?:the rest of )?(?:this|the) month", lambda today, _: (today, find_end_of_month(today))),
    ("next month", lambda today, _: _get_month(today, 1)),
    (f"in (?P<month>{MONTH})", lambda today, match: _find_month(today, match["month"])),
    (
        rf"(?:in |within |over |for )?(?:the )?(?:next|coming) (?P<count>{COUNT}) (?P<unit>{UNIT})",
        lambda today, match: (today, add_units(today, parse_count(match["count"]), match["unit"])),
    ),
)
_PAST = _compile_rows(
    ("today|this (?:morning|afternoon|evening)", lambda today, _: _get_single_day(today)),
    ("yesterday", lambda today, _: _get_single_day(add_days(today, -1))),
    ("this week", lambda today, _: (find_monday(today), today)),
    ("last week", lambda today, _: _get_week(today, -1)),
    ("last weekend", lambda today, _: _get_weekend(today, -1)),
    ("(?:this|on the|at the) weekend", lambda today, _: _get_weekend(today, -1 if today.weekday() < 5 else 0)),
    ("this month", lambda today, _: (find_first_of_month(today), today)),
    ("last month", lambda today, _: _get_month(today, -1)),
    ("this year", lambda today, _: (date(today.year, 1, 1), today)),
    ("last year", lambda today, _: (date(today.year - 1, 1, 1), date(today.year - 1, 12, 31))),
    (f"in (?P<month>{MONTH})", lambda today, match: _find_month(find_first_of_month(today, -11), match["month"])),
    (
        rf"(?:on |last )(?P<weekday>{WEEKDAY})",
        lambda today, match: _get_single_day(_find_last_weekday(today, match["weekday"])),
    ),
    (rf"since (?P<weekday>{WEEKDAY})", lambda today, match: (_find_last_weekday(today, match["weekday"]), today)),
    ("since yesterday", lambda today, _: (add_days(today, -1), today)),
    (rf"(?:in |over |within )?the (?:last|past) (?:(?P<count>{COUNT}) )?(?P<unit>{UNIT})", _get_past_days),
)


def read_coming_range(text: str, now: datetime, order: DateOrder | None = None) -> str | None:
    """Reads when open tasks are due; "by Friday" includes all days until then."""
    line = re.sub("^(?:due |for )+", "", _normalize(text))
    until = re.match("(?:by|until|before) (?:the )?", line)
    if not until and (days := _match_rows(line, now.date(), _COMING)):
        return days
    when = read_when(re.sub("^(?:due |for )+", "", text.strip().lower()), now, order)
    if when is None or when.time or when.repeat:
        return None
    return f"..{_render_day(when.day)}" if until else _render_day(when.day)


def read_past_range(text: str, now: datetime) -> str | None:
    return _match_rows(_normalize(text), now.date(), _PAST)


def read_shift(text: str) -> str | None:
    """Reads "a week" as "+1w"."""
    match = _SHIFT.fullmatch(_normalize(text))
    if match is None or not (count := parse_count(match["count"])):
        return None
    unit = match["unit"]
    if unit in ("year", "fortnight"):
        return f"+{12 * count}m" if unit == "year" else f"+{2 * count}w"
    return f"+{count}{unit[0]}"


def _normalize(text: str) -> str:
    return split_words(text.strip(" ,:?!.")).line


def _match_rows(line: str, today: date, rows: tuple[_Row, ...]) -> str | None:
    for pattern, days in rows:
        if match := pattern.fullmatch(line):
            first, last = days(today, match)
            if first and last:
                return _render_day(first) if first == last else f"{_render_day(first)}..{_render_day(last)}"
    return None


def _render_day(day: date) -> str:
    return When(day).due
