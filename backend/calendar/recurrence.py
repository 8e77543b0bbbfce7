"""How a task repeats, as a recurrence rule of RFC 5545: the tools' rules, but for FROM=DONE, which no calendar knows.

A month too short for a day has it on its last day for the tools, where RFC 5545 leaves it out: BYSETPOS says so there.
"""

from calendar import monthrange
from collections.abc import Collection
from dataclasses import dataclass
from datetime import date, datetime, time

from dateutil.rrule import rrulestr

_PARTS = {"FREQ", "INTERVAL", "BYMONTH", "BYDAY", "BYMONTHDAY", "COUNT", "UNTIL"}
_FREQUENCIES = ("DAILY", "WEEKLY", "MONTHLY", "YEARLY")


@dataclass(frozen=True)
class Recurrence:
    """The rule of a series from one of its tasks on: its first and last day, and how many tasks are left, with that."""

    rule: str
    first: date
    count: int | None
    until: date | None


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
