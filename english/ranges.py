"""Reads ranges of days for a list, in the form of the task tools: "Mon 2026-11-23..Sun 2026-11-29"."""

import re
from collections.abc import Callable
from datetime import date, datetime

from english.atoms import COUNT, MONTH, UNIT, WEEKDAY, DateOrder, parse_count, parse_month, parse_weekday
from english.calendar import add_days, add_units, find_period, find_weekday
from english.reading import When, read_when
from english.words import split_words

Days = tuple[date | None, date | None]
_Rows = tuple[tuple[str, Callable[[date, re.Match[str]], Days]], ...]
_EARLIEST = date(1970, 1, 1)


def _get_past_day(today: date, match: re.Match[str]) -> Days:
    is_weekday = match["day"] != "yesterday"
    day = find_weekday(add_days(today, -8), parse_weekday(match["day"])) if is_weekday else add_days(today, -1)
    return day, today if match["since"] else day


def _get_past_days(today: date, match: re.Match[str]) -> Days:
    """Today is the last one of the days that are named."""
    before = add_units(today, -parse_count(match["count"] or "1"), match["unit"]) or _EARLIEST
    return min(today, add_days(max(_EARLIEST, before), 1)), today


_COMING: _Rows = (
    (
        "(?:the rest of )?(?:this|the) (?P<unit>week|month)",
        lambda today, match: (today, find_period(today, match["unit"])[1]),
    ),
    ("(?:on |at |over )?(?:this|the) weekend", lambda today, _: find_period(today, "weekend")),
    ("next (?P<unit>week|weekend|month)", lambda today, match: find_period(today, match["unit"], 1)),
    (
        f"in (?P<month>{MONTH})",
        lambda today, match: find_period(today, "month", (parse_month(match["month"]) - today.month) % 12),
    ),
    (
        rf"(?:in |within |over |for )?(?:the )?(?:next|coming) (?P<count>{COUNT}) (?P<unit>{UNIT})",
        lambda today, match: (today, add_units(today, parse_count(match["count"]), match["unit"])),
    ),
)
_PAST: _Rows = (
    ("today|this (?:morning|afternoon|evening)", lambda today, _: (today, today)),
    ("(?P<since>since )?(?P<day>yesterday)", _get_past_day),
    (rf"(?:(?P<since>since (?:last )?)|on |last )(?P<day>{WEEKDAY})", _get_past_day),
    ("this (?P<unit>week|month|year)", lambda today, match: (find_period(today, match["unit"])[0], today)),
    ("last (?P<unit>week|weekend|month|year)", lambda today, match: find_period(today, match["unit"], -1)),
    (
        "(?:this|on the|at the) weekend",
        lambda today, _: find_period(today, "weekend", -1 if today.weekday() < 5 else 0),
    ),
    (
        f"in (?P<month>{MONTH})",
        lambda today, match: find_period(today, "month", -((today.month - parse_month(match["month"])) % 12)),
    ),
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
    day = When(when.day).due
    return f"..{day}" if until else day


def read_past_range(text: str, now: datetime) -> str | None:
    return _match_rows(_normalize(text), now.date(), _PAST)


def read_shift(text: str) -> str | None:
    """Reads "a week" as "+1w"."""
    match = re.fullmatch(rf"(?P<count>{COUNT}) (?P<unit>{UNIT})", _normalize(text))
    if match is None or not (count := parse_count(match["count"])):
        return None
    unit = match["unit"]
    if unit in ("year", "fortnight"):
        return f"+{12 * count}m" if unit == "year" else f"+{2 * count}w"
    return f"+{count}{unit[0]}"


def _normalize(text: str) -> str:
    return split_words(text.strip(" ,:?!.")).line


def _match_rows(line: str, today: date, rows: _Rows) -> str | None:
    for pattern, find_days in rows:
        if match := re.fullmatch(pattern, line):
            first, last = find_days(today, match)
            if first and last:
                return When(first).due if first == last else f"{When(first).due}..{When(last).due}"
    return None
