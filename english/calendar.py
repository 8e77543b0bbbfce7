"""Arithmetic with days."""

from calendar import monthrange
from collections.abc import Iterable
from datetime import date, timedelta

LAST_YEAR = 2999


def plus_months(day: date, months: int) -> date | None:
    """Returns the same day of another month, or that month's last day if it is shorter; None after the last year."""
    year, month = divmod(day.year * 12 + day.month - 1 + months, 12)
    return date(year, month + 1, min(day.day, monthrange(year, month + 1)[1])) if year <= LAST_YEAR else None


def plus(day: date, count: int, unit: str) -> date | None:
    """Adds days, weeks, fortnights, months or years."""
    if unit in ("month", "year"):
        return plus_months(day, count * (12 if unit == "year" else 1))
    return plus_days(day, count * {"day": 1, "week": 7, "fortnight": 14}[unit])


def plus_days(day: date, days: int) -> date:
    return day + timedelta(days=days)


def make_day(year: int, month: int, day: int) -> date | None:
    """Returns the day, or None if the calendar does not have it."""
    try:
        return date(year, month, day) if year <= LAST_YEAR else None
    except ValueError:
        return None


def next_weekday(today: date, weekday: int) -> date:
    """Returns the first such weekday after today; Monday is 0."""
    return plus_days(today, (weekday - today.weekday() - 1) % 7 + 1)


def next_day_of_month(today: date, day: int) -> date | None:
    """Returns the next day with this number; today counts."""
    first = today.replace(day=1)
    months = filter(None, (plus_months(first, later) for later in range(9)))
    return _first_from(today, (make_day(month.year, month.month, day) for month in months))


def next_day_of_year(today: date, month: int, day: int) -> date | None:
    """Returns the next such day; today counts."""
    return _first_from(today, (make_day(year, month, day) for year in range(today.year, today.year + 9)))


def nth_weekday(month: date, nth: int, weekday: int) -> date | None:
    """Returns the first, second, … or, for -1, last such weekday of the month that begins on `month`."""
    if nth < 0:
        last = end_of_month(month)
        return plus_days(last, -((last.weekday() - weekday) % 7))
    found = plus_days(month, (weekday - month.weekday()) % 7 + 7 * (nth - 1))
    return found if found.month == month.month else None


def monday(today: date, weeks: int = 0) -> date:
    """Returns the Monday of this week, or of one so many weeks later."""
    return plus_days(today, 7 * weeks - today.weekday())


def first_of_month(today: date, months: int = 0) -> date:
    return plus_months(today.replace(day=1), months) or today


def end_of_month(today: date, months: int = 0) -> date:
    return plus_days(first_of_month(today, months + 1), -1)


def _first_from(today: date, days: Iterable[date | None]) -> date | None:
    return next((day for day in days if day and day >= today), None)
