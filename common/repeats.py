"""Describes the recurrence rule of a task in words: RFC 5545's RRULE, and FROM=DONE."""

from calendar import day_name, month_name
from datetime import date

from common.text import join_words

_UNKNOWN_RULE = "repeats"
_UNITS = {"DAILY": "day", "WEEKLY": "week", "MONTHLY": "month", "YEARLY": "year"}
_WEEKDAYS: dict[str, str] = dict(zip(("MO", "TU", "WE", "TH", "FR", "SA", "SU"), day_name, strict=True))
_ORDINALS = {"1": "first", "2": "second", "3": "third", "4": "fourth", "5": "fifth", "-1": "last"}
_WORKDAYS = "MO,TU,WE,TH,FR"


def describe_repeat(rule: str) -> str:
    """Describes FREQ=WEEKLY;BYDAY=MO as "every Monday", and also when the rule ends."""
    try:
        parts = dict(part.split("=") for part in rule.split(";"))
        return _describe_frequency(parts) + _describe_end(parts)
    except (KeyError, ValueError):
        return _UNKNOWN_RULE


def _describe_frequency(parts: dict[str, str]) -> str:
    interval, unit = int(parts.get("INTERVAL", "1")), _UNITS[parts["FREQ"]]
    if "FROM" in parts:
        units = f"1 {unit}" if interval == 1 else f"{interval} {unit}s"
        return f"{units} after it is done"
    every = f"every {unit}" if interval == 1 else f"every {interval} {unit}s"
    if "BYDAY" in parts:
        return _describe_weekdays(parts["FREQ"], parts["BYDAY"], every)
    if "BYMONTHDAY" in parts:
        month = month_name[int(parts["BYMONTH"])] if "BYMONTH" in parts else None
        days = [_describe_month_day(int(day), month) for day in parts["BYMONTHDAY"].split(",")]
        return f"{every} on {join_words(days)}"
    return every


def _describe_weekdays(freq: str, days: str, every: str) -> str:
    if freq == "MONTHLY":
        return f"{every} on {join_words([_describe_weekday(day) for day in days.split(',')])}"
    names = "weekdays" if days == _WORKDAYS else join_words([_WEEKDAYS[day] for day in days.split(",")])
    if every != "every week":
        return f"{every} on {names}"
    return "every weekday" if days == _WORKDAYS else f"every {names}"


def _describe_weekday(day: str) -> str:
    which, name = day[:-2], _WEEKDAYS[day[-2:]]
    return f"the {_ORDINALS[which]} {name}" if which else f"each {name}"


def _describe_month_day(day: int, month: str | None) -> str:
    if day < 0:
        return f"the last day of {month}" if month else "the last day"
    return f"{day} {month}" if month else f"the {_render_ordinal(day)}"


def _render_ordinal(number: int) -> str:
    ending = {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{'th' if 11 <= number <= 13 else ending}"


def _describe_end(parts: dict[str, str]) -> str:
    if "COUNT" in parts:
        count = int(parts["COUNT"])
        return ", for the last time" if count == 1 else f", {count} more times"
    if "UNTIL" in parts:
        until = date.fromisoformat(parts["UNTIL"])
        return f", until {until.day} {until:%b %Y}"
    return ""
