"""Arithmetic with days."""

from calendar import monthrange
from collections.abc import Iterable
from datetime import date, timedelta

LAST_YEAR = 2999


def add_months(day: date, months: int) -> date | None:
    """Returns the same day of another month, or the last day of a shorter month; None after the last year."""
    year, month = divmod(day.year * 12 + day.month - 1 + months, 12)
    return date(year, month + 1, min(day.day, monthrange(year, month + 1)[1])) if year <= LAST_YEAR else None


def add_units(day: date, count: int, unit: str) -> date | None:
    if unit in ("month", "year"):
        return add_months(day, count * (12 if unit == "year" else 1))
    return add_days(day, count * {"day": 1, "week": 7, "fortnight": 14}[unit])


def add_days(day: date, days: int) -> date:
    return day + timedelta(days=days)


def create_day(year: int, month: int, day: int) -> date | None:
    try:
        return date(year, month, day) if year <= LAST_YEAR else None
    except ValueError:
        return None


def find_weekday(today: date, weekday: int) -> date:
    """Returns the first such weekday (Monday is 0) after today."""
    return add_days(today, (weekday - today.weekday() - 1) % 7 + 1)


def find_day_of_month(today: date, day: int) -> date | None:
    """Returns the next day with this number, which may be today."""
    first = today.replace(day=1)
    months = filter(None, (add_months(first, later) for later in range(9)))
    return _find_first(today, (create_day(month.year, month.month, day) for month in months))


def find_day_of_year(today: date, month: int, day: int) -> date | None:
    """Returns the next such day, which may be today."""
    return _find_first(today, (create_day(year, month, day) for year in range(today.year, today.year + 9)))


def find_nth_weekday(month: tuple[date, date], nth: int, weekday: int) -> date:
    """Returns the first to fourth or, for -1, last such weekday of a month, which is its first and last day."""
    first, last = month
    return find_weekday(add_days(last, -7) if nth < 0 else add_days(first, 7 * nth - 8), weekday)


def find_period(today: date, unit: str, later: int = 0) -> tuple[date, date]:
    """Returns the first and the last day of this week, weekend, month or year, or of a later or earlier one."""
    if unit in ("week", "weekend"):
        monday = add_days(today, 7 * later - today.weekday())
        return add_days(monday, 5 if unit == "weekend" else 0), add_days(monday, 6)
    size = 12 if unit == "year" else 1
    start = 12 * today.year + later * size + (today.month - 1 if unit == "month" else 0)
    first, following = (date(month // 12, month % 12 + 1, 1) for month in (start, start + size))
    return first, add_days(following, -1)


def _find_first(today: date, days: Iterable[date | None]) -> date | None:
    return next((day for day in days if day and day >= today), None)
