"""Recurrence rules: a subset of RFC 5545's RRULE, with the next due date of a task and the next instant of a schedule.

The next date is the first of the rule after both the due date and today. INTERVAL is counted from the due date. In a
month that is too short for a day, the last day is used, which RFC 5545 would skip. FROM=DONE is our own: it counts from
the day of completion. COUNT is the number of tasks that are left, this one included; `get_next_rule` has one less.
"""

import re
from calendar import monthrange
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, time, timedelta
from zoneinfo import ZoneInfo

from common.tool_server.errors import CallError, to_printable

LAST_DAY = date(2999, 12, 31)
"""The last day that a task can be due."""
_MAX_LENGTH = 300  # characters; longer than BYDAY or BYMONTHDAY with all values
_MAX_STORED_LENGTH = 200  # characters, as in the table
_WEEKDAYS = ("MO", "TU", "WE", "TH", "FR", "SA", "SU")
_DAY = rf"(?:[1-5]|-1)?(?:{'|'.join(_WEEKDAYS)})"
_MONTH_DAY = r"(?:0?[1-9]|[12]\d|3[01]|-1)"
_PARTS = {
    "FREQ": re.compile(r"DAILY|WEEKLY|MONTHLY|YEARLY"),
    "INTERVAL": re.compile(r"[1-9]\d{0,2}", re.ASCII),
    "BYMONTH": re.compile(r"0?[1-9]|1[0-2]"),
    "BYDAY": re.compile(rf"{_DAY}(?:,{_DAY})*"),
    "BYMONTHDAY": re.compile(rf"{_MONTH_DAY}(?:,{_MONTH_DAY})*", re.ASCII),
    "COUNT": re.compile(r"[1-9]\d{0,2}", re.ASCII),
    "UNTIL": re.compile(r"\d{8}|\d{4}-\d\d-\d\d", re.ASCII),
    "WKST": re.compile("|".join(_WEEKDAYS)),
    "FROM": re.compile(r"DONE"),
}
_TIMED_UNTIL = re.compile(r"UNTIL *= *(\d{8}T\d{6}Z?)", re.ASCII)
_ALLOWED_WITH = {"BYDAY": ("DAILY", "WEEKLY", "MONTHLY"), "BYMONTHDAY": ("MONTHLY", "YEARLY"), "BYMONTH": ("YEARLY",)}
_DAYS, _MONTHS = {"DAILY": 1, "WEEKLY": 7}, {"MONTHLY": 1, "YEARLY": 12}
# A date that is in none of so many months of a rule never comes: the rarest, a fifth Monday of February every seventh
# year, misses 119 in a row. All cases were counted, because the calendar repeats after 400 years.
_MAX_MONTHS = 121
_UTC = ZoneInfo("UTC")


class RepeatInvalid(CallError):
    """repeat {problem}. Write FREQ=DAILY, WEEKLY, MONTHLY or YEARLY, and if needed INTERVAL (1 to 999), BYDAY (MO to
    SU; with 1 to 5 or -1 before them for MONTHLY), BYMONTHDAY (1 to 31 or -1), BYMONTH (1 to 12, for YEARLY), COUNT (1
    to 999) or UNTIL (20271231), and FROM=DONE, as in FREQ=WEEKLY;BYDAY=MO,TH."""


@dataclass(frozen=True)
class Occurrence:
    """A day of a rule, and the instant of its time of day."""

    day: date
    at: datetime


@dataclass(frozen=True)
class Rule:
    """A parsed rule; its text is stored."""

    freq: str
    interval: int = 1
    month: int | None = None
    weekdays: tuple[tuple[int, int], ...] = ()
    """Pairs of the number within the month, 0 for every, and the weekday, 0 for Monday."""
    month_days: tuple[int, ...] = ()
    count: int | None = None
    until: date | None = None
    from_done: bool = False

    def __str__(self) -> str:
        parts = {
            "FREQ": self.freq,
            "INTERVAL": self.interval if self.interval > 1 else None,
            "BYMONTH": self.month,
            "BYDAY": ",".join(f"{nth or ''}{_WEEKDAYS[weekday]}" for nth, weekday in self.weekdays),
            "BYMONTHDAY": ",".join(map(str, self.month_days)),
            "COUNT": self.count,
            "UNTIL": self.until and self.until.isoformat().replace("-", ""),
            "FROM": "DONE" if self.from_done else None,
        }
        return ";".join(f"{name}={value}" for name, value in parts.items() if value)


def read_rule(text: str, due_day: date, due_time: time | None = None, zone: ZoneInfo = _UTC) -> Rule:
    """Parses a rule and completes it from the due date of its task; raises `RepeatInvalid`.

    The time that calendars add to UNTIL is converted to the last date in the zone.
    """
    text = _TIMED_UNTIL.sub(lambda until: _convert_until(until, due_time, zone), text.upper())
    rule = _complete_rule(parse_rule(text), due_day)
    if len(str(rule)) > _MAX_STORED_LENGTH:
        raise RepeatInvalid(problem="is too long")
    return rule


def _convert_until(until: re.Match[str], due_time: time | None, zone: ZoneInfo) -> str:
    try:
        end = datetime.fromisoformat(until[1])
        end = end.astimezone(zone) if end.tzinfo else end
        last = end.date() - timedelta(days=due_time is not None and end.time() < due_time)
    except ValueError:
        return until[0]  # rejected with the rule
    except OverflowError:  # the end of the calendar, in a zone east of Greenwich
        return f"UNTIL={until[1][:8]}"
    return f"UNTIL={last.isoformat()}"


def _complete_rule(rule: Rule, due_day: date) -> Rule:
    if rule.until and rule.until < due_day:
        raise RepeatInvalid(problem=f"ends with UNTIL={rule.until}, before the task is due on {due_day}")
    if rule.from_done:
        return rule
    if rule.freq == "DAILY" and rule.weekdays:
        return replace(rule, freq="WEEKLY")
    if rule.freq == "WEEKLY" and not rule.weekdays:
        return replace(rule, weekdays=((0, due_day.weekday()),))
    if rule.freq == "YEARLY":
        rule = replace(rule, month=rule.month or due_day.month)
    if rule.freq in _MONTHS and not (rule.weekdays or rule.month_days):
        return replace(rule, month_days=(due_day.day,))
    return rule


def parse_rule(text: str) -> Rule:
    parts = _split_parts(text)
    if problem := _find_conflict(parts):
        raise RepeatInvalid(problem=problem)
    return Rule(
        freq=parts["FREQ"],
        interval=int(parts.get("INTERVAL", 1)),
        month=int(parts["BYMONTH"]) if "BYMONTH" in parts else None,
        weekdays=tuple(sorted({_parse_weekday(day) for day in re.findall("[^,]+", parts.get("BYDAY", ""))})),
        month_days=tuple(sorted({int(day) for day in re.findall("[^,]+", parts.get("BYMONTHDAY", ""))})),
        count=int(parts["COUNT"]) if "COUNT" in parts else None,
        until=_parse_until(parts["UNTIL"]) if "UNTIL" in parts else None,
        from_done="FROM" in parts,
    )


def find_next_date(rule: Rule, *, due: date, today: date) -> date | None:
    """Returns the due date of the next task if this one is completed today; None after the last."""
    if rule.count == 1:
        return None
    day = _find_date_after_completion(rule, today) if rule.from_done else _find_date_after(rule, due, max(due, today))
    return day if day and day <= (rule.until or LAST_DAY) else None


def find_first_occurrence(rule: Rule, at: time, zone: ZoneInfo, *, after: datetime) -> Occurrence | None:
    """Returns the first occurrence of a rule that begins now; INTERVAL is counted from it. None if there is none."""
    day = after.astimezone(zone).date() - timedelta(days=1)
    every = replace(rule, interval=1, count=None)
    while day := find_next_date(every, due=day, today=day):
        if (instant := to_instant(day, at, zone)) > after:
            return Occurrence(day, instant)
    return None


def find_next_occurrence(rule: Rule, at: time, zone: ZoneInfo, *, last: date, after: datetime) -> Occurrence | None:
    """Returns the first occurrence after the day of the last one and after an instant; None after the last."""
    today = after.astimezone(zone).date() - timedelta(days=1)
    while day := find_next_date(rule, due=last, today=today):
        if (instant := to_instant(day, at, zone)) > after:
            return Occurrence(day, instant)
        today = day
    return None


def to_instant(day: date, at: time, zone: ZoneInfo) -> datetime:
    """Returns the instant of a local time, in UTC, as RFC 5545 defines it (section 3.3.5).

    A time that occurs twice is its first occurrence; one that is skipped has the offset before the gap.
    """
    return datetime.combine(day, at, zone).astimezone(UTC)


def add_months(day: date, months: int) -> date:
    """Returns the same day of a later month, or the last day of a shorter month."""
    year, month = divmod(day.year * 12 + day.month - 1 + months, 12)
    return date(year, month + 1, min(day.day, monthrange(year, month + 1)[1]))


def get_next_rule(rule: Rule) -> Rule:
    return replace(rule, count=rule.count - 1) if rule.count else rule


def _split_parts(text: str) -> dict[str, str]:
    if len(text) > _MAX_LENGTH:
        raise RepeatInvalid(problem="is too long")
    parts: dict[str, str] = {}
    for part in text.upper().strip().removeprefix("RRULE:").removesuffix(";").split(";"):
        name, _, value = (side.strip() for side in part.partition("="))
        if name not in _PARTS:
            raise RepeatInvalid(problem=f'has the unknown part "{to_printable(name)}"')
        if name in parts:
            raise RepeatInvalid(problem=f"has {name} twice")
        if not _PARTS[name].fullmatch(value):
            raise RepeatInvalid(problem=f'has {name} with the value "{to_printable(value)}", which cannot be read')
        parts[name] = value
    if "FREQ" not in parts:
        raise RepeatInvalid(problem="has no FREQ")
    return parts


def _find_conflict(parts: dict[str, str]) -> str | None:
    """Returns which parts exclude each other, to complete the sentence "repeat …"."""
    freq, by = parts["FREQ"], [name for name in _ALLOWED_WITH if name in parts]
    for name in by:
        if freq not in _ALLOWED_WITH[name]:
            return f"has {name}, which FREQ={freq} does not allow"
    for first, second in (("BYDAY", "BYMONTHDAY"), ("COUNT", "UNTIL"), *((name, "FROM") for name in by)):
        if first in parts and second in parts:
            return f"has {first} and {second}, but only one of them is allowed"
    if parts.get("WKST", "MO") != "MO" and freq == "WEEKLY" and parts.get("INTERVAL", "1") != "1":
        return f"has WKST={parts['WKST']}, but weeks begin on Mondays here"
    if freq != "MONTHLY" and re.search(r"\d", parts.get("BYDAY", "")):
        return "has a number before a weekday, which only FREQ=MONTHLY allows"
    if freq == "DAILY" and "BYDAY" in parts and parts.get("INTERVAL", "1") != "1":
        return "has BYDAY with an INTERVAL, which only FREQ=WEEKLY and MONTHLY allow"
    return None


def _parse_weekday(text: str) -> tuple[int, int]:
    return int(text[:-2] or 0), _WEEKDAYS.index(text[-2:])


def _parse_until(value: str) -> date:
    try:
        return date.fromisoformat(value)
    except ValueError:
        raise RepeatInvalid(problem=f"has UNTIL={value}, which is not in the calendar") from None


def _find_date_after_completion(rule: Rule, today: date) -> date:
    if rule.freq in _DAYS:
        return today + timedelta(days=rule.interval * _DAYS[rule.freq])
    return add_months(today, rule.interval * _MONTHS[rule.freq])


def _find_date_after(rule: Rule, due: date, after: date) -> date | None:
    """Computes the first date of the rule after a day, without iterating over all dates between."""
    if rule.freq == "DAILY":
        return due + timedelta(days=((after - due).days // rule.interval + 1) * rule.interval)
    dates = _iter_weekly if rule.freq == "WEEKLY" else _iter_monthly
    return next((day for day in dates(rule, due, after) if day > after), None)


def _iter_weekly(rule: Rule, due: date, after: date) -> Iterator[date]:
    """Yields the dates in the rule's current week and in its next one; weeks begin on Mondays."""
    monday = due - timedelta(days=due.weekday())
    weeks = (after - monday).days // 7 // rule.interval * rule.interval
    for week in (weeks, weeks + rule.interval):
        for _, weekday in rule.weekdays:
            yield monday + timedelta(weeks=week, days=weekday)


def _iter_monthly(rule: Rule, due: date, after: date) -> Iterator[date]:
    """Yields the dates from the rule's current month on; months are numbered from the year 0."""
    step = rule.interval * _MONTHS[rule.freq]
    origin = due.year * 12 + (rule.month or due.month) - 1
    current = origin + (after.year * 12 + after.month - 1 - origin) // step * step
    end = min(current + _MAX_MONTHS * step, (LAST_DAY.year + 1) * 12)
    for number in range(current, end, step):
        year, month = number // 12, number % 12 + 1
        first, length = monthrange(year, month)
        days = {length if day < 0 else min(day, length) for day in rule.month_days}
        for nth, weekday in rule.weekdays:
            every = range(1 + (weekday - first) % 7, length + 1, 7)
            days.update(every if nth == 0 else every[-1:] if nth < 0 else every[nth - 1 : nth])
        yield from (date(year, month, day) for day in sorted(days))
