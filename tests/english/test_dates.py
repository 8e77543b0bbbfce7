"""Texts that are a date and nothing else, ranges of days, and by how much a date is moved."""

from datetime import datetime
from zoneinfo import ZoneInfo

import pytest

from english import read_coming_range, read_past_range, read_shift, read_when

NOW = datetime(2026, 11, 23, 10, 40)  # a Monday


@pytest.mark.parametrize(
    ("text", "due", "repeat"),
    [
        ("Friday", "Fri 2026-11-27", None),
        ("friday at 10", "Fri 2026-11-27 10:00", None),
        ("5pm tomorrow", "Tue 2026-11-24 17:00", None),
        ("the 3rd", "Thu 2026-12-03", None),
        ("3rd", "Thu 2026-12-03", None),
        ("14:30", "Mon 2026-11-23 14:30", None),
        ("7", "Tue 2026-11-24 07:00", None),
        ("in 2 hours", "Mon 2026-11-23 12:40", None),
        ("next week", "Mon 2026-11-30", None),
        ("every monday at 9", "Mon 2026-11-30 09:00", "FREQ=WEEKLY;BYDAY=MO"),
        ("every 3 months", "Mon 2026-11-23", "FREQ=MONTHLY;INTERVAL=3"),
        ("every day starting tomorrow", "Tue 2026-11-24", "FREQ=DAILY"),
        ("every weekday", "Mon 2026-11-23", "FREQ=WEEKLY;BYDAY=MO,TU,WE,TH,FR"),
        ("10 days after completion", "Mon 2026-11-23", "FREQ=DAILY;INTERVAL=10;FROM=DONE"),
    ],
)
def test_date(text: str, due: str, repeat: str | None) -> None:
    when = read_when(text, NOW)
    assert when is not None
    assert (when.due, when.repeat) == (due, repeat)


@pytest.mark.parametrize(
    ("now", "text", "due"),
    [
        ("2027-03-28T01:30", "in 1 hour", "Sun 2027-03-28 03:30"),
        ("2027-03-28T01:30", "in 90 minutes", "Sun 2027-03-28 04:00"),
        ("2027-03-27T23:00", "in 4 hours", "Sun 2027-03-28 04:00"),
        ("2026-10-25T02:30", "in 1 hour", "Sun 2026-10-25 02:30"),
        ("2026-10-25T01:30", "in 3 hours", "Sun 2026-10-25 03:30"),
        ("2027-03-27T01:30", "in 1 day and 1 hour", "Sun 2027-03-28 03:30"),
        ("2027-03-27T10:00", "in 1 day", "Sun 2027-03-28"),
    ],
)
def test_hours_are_added_to_the_instant(now: str, text: str, due: str) -> None:
    when = read_when(text, datetime.fromisoformat(now).replace(tzinfo=ZoneInfo("Europe/Berlin")))
    assert when is not None
    assert when.due == due


@pytest.mark.parametrize(
    "text", ["", "gym", "12/05", "friday or saturday", "friday 5", "gym friday", "at 25:00", "soon"]
)
def test_no_date(text: str) -> None:
    assert read_when(text, NOW) is None


@pytest.mark.parametrize(
    ("text", "days"),
    [
        ("today", "Mon 2026-11-23"),
        ("this week", "Mon 2026-11-23..Sun 2026-11-29"),
        ("this weekend", "Sat 2026-11-28..Sun 2026-11-29"),
        ("next week", "Mon 2026-11-30..Sun 2026-12-06"),
        ("next month", "Tue 2026-12-01..Thu 2026-12-31"),
        ("in december", "Tue 2026-12-01..Thu 2026-12-31"),
        ("the next 3 days", "Mon 2026-11-23..Thu 2026-11-26"),
        ("the next 999 years", None),
        ("by friday", "..Fri 2026-11-27"),
        ("due by the end of the month", "..Mon 2026-11-30"),
        ("on the 3rd", "Thu 2026-12-03"),
        ("friday at 5", None),
        ("gym", None),
    ],
)
def test_coming_days(text: str, days: str | None) -> None:
    assert read_coming_range(text, NOW) == days


@pytest.mark.parametrize(
    ("text", "days"),
    [
        ("yesterday", "Sun 2026-11-22"),
        ("last week", "Mon 2026-11-16..Sun 2026-11-22"),
        ("in October", "Thu 2026-10-01..Sat 2026-10-31"),
        ("since monday", "Mon 2026-11-16..Mon 2026-11-23"),
        ("since last monday", "Mon 2026-11-16..Mon 2026-11-23"),
        ("in the last 3 days", "Sat 2026-11-21..Mon 2026-11-23"),
        ("the last 7 days", "Tue 2026-11-17..Mon 2026-11-23"),
        ("the past week", "Tue 2026-11-17..Mon 2026-11-23"),
        ("the past month", "Sat 2026-10-24..Mon 2026-11-23"),
        ("the last day", "Mon 2026-11-23"),
        ("gym", None),
    ],
)
def test_past_days(text: str, days: str | None) -> None:
    assert read_past_range(text, NOW) == days


@pytest.mark.parametrize(
    ("text", "shift"),
    [
        ("a week", "+1w"),
        ("3 days", "+3d"),
        ("two weeks", "+2w"),
        ("a fortnight", "+2w"),
        ("a year", "+12m"),
        ("7", None),
    ],
)
def test_shift(text: str, shift: str | None) -> None:
    assert read_shift(text) == shift
