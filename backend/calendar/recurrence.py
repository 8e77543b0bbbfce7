"""How a task repeats, as a recurrence rule of RFC 5545: the tools' rules, but for FROM=DONE, which no calendar knows.

A month too short for a day has it on its last day for the tools, where RFC 5545 leaves it out: BYSETPOS says so there.
"""

import re
from calendar import monthrange
from collections.abc import Collection
from dataclasses import dataclass
from datetime import date, datetime, time

from dateutil.rrule import rrulestr

_WEEKDAYS = ("MO", "TU", "WE", "TH", "FR", "SA", "SU")
_DAY = rf"(?:[1-5]|-1)?(?:{'|'.join(_WEEKDAYS)})"
_MONTH_DAY = r"(?:[1-9]|[12]\d|3[01]|-1)"
# As the tools write a rule; what looks otherwise is none that is known here.
_RULE = re.compile(
    r"FREQ=(?P<freq>DAILY|WEEKLY|MONTHLY|YEARLY)(?:;INTERVAL=(?P<interval>[1-9]\d{0,2}))?"
    rf"(?:;BYMONTH=(?P<month>[1-9]|1[0-2]))?(?:;BYDAY=(?P<weekdays>{_DAY}(?:,{_DAY})*))?"
    rf"(?:;BYMONTHDAY=(?P<days>{_MONTH_DAY}(?:,{_MONTH_DAY})*))?"
    r"(?:;COUNT=(?P<count>[1-9]\d{0,2}))?(?:;UNTIL=(?P<until>\d{8}))?",
    re.ASCII,
)


@dataclass(frozen=True)
class Recurrence:
    """The rule of a series from one of its tasks on: its first and last day, and how many tasks are left, with that."""

    rule: str
    first: date
    count: int | None
    until: date | None


def parse_rule(rule: str | None, due: date) -> Recurrence | None:
    """Converts a task's rule; None for a task that does not repeat, or of which only the next date is known."""
    if rule is None or (found := _RULE.fullmatch(rule)) is None:
        return None
    freq, interval, month = found["freq"], int(found["interval"] or 1), int(found["month"] or 0)
    weekdays = found["weekdays"].split(",") if found["weekdays"] else []
    days = {int(day) for day in found["days"].split(",")} if found["days"] else set[int]()
    parts = [f"FREQ={freq}", *([f"INTERVAL={interval}"] if interval > 1 else [])]
    parts += [f"BYMONTH={month}"] if month else []
    parts += [f"BYDAY={','.join(_add_numbers(weekdays))}"] if weekdays else []
    parts += [_render_month_days(days, shortest=monthrange(2026, month or 2)[1])] if days else []
    try:
        until = date.fromisoformat(found["until"]) if found["until"] else None
        first = rrulestr(";".join(parts), dtstart=datetime.combine(due, time()))[0].date()
    except (ValueError, IndexError):  # no such day, or none before the year 10000
        return None
    return Recurrence(";".join(parts), first, int(found["count"]) if found["count"] else None, until)


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
