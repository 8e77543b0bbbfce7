"""Occurrences of schedules: the first one, those that were missed, the rule's end, and changes of the clock."""

from datetime import UTC, date, datetime, time, timedelta
from zoneinfo import ZoneInfo

import pytest

from common.recurrence import find_first_occurrence, find_next_occurrence, read_rule, to_instant

BERLIN = ZoneInfo("Europe/Berlin")
MONDAY = datetime(2026, 11, 30, 9, 0, tzinfo=UTC)  # 10:00 in Berlin


def first(text: str, at: str, now: datetime = MONDAY, zone: ZoneInfo = BERLIN) -> str | None:
    rule = read_rule(text, now.astimezone(zone).date())
    found = find_first_occurrence(rule, time.fromisoformat(at), zone, after=now)
    return found and f"{found.at.astimezone(zone):%a %Y-%m-%d %H:%M}"


@pytest.mark.parametrize(
    ("text", "at", "expected"),
    [
        ("FREQ=DAILY", "10:01", "Mon 2026-11-30 10:01"),
        ("FREQ=DAILY", "10:00", "Tue 2026-12-01 10:00"),
        ("FREQ=WEEKLY;BYDAY=FR", "16:00", "Fri 2026-12-04 16:00"),
        ("FREQ=WEEKLY", "09:00", "Mon 2026-12-07 09:00"),
        ("FREQ=WEEKLY", "11:00", "Mon 2026-11-30 11:00"),
        ("FREQ=WEEKLY;INTERVAL=2;BYDAY=MO", "09:00", "Mon 2026-12-07 09:00"),
        ("FREQ=MONTHLY;BYMONTHDAY=31", "08:00", "Thu 2026-12-31 08:00"),  # the last day of this month was earlier today
        ("FREQ=MONTHLY;BYDAY=-1FR", "08:00", "Fri 2026-12-25 08:00"),
        ("FREQ=YEARLY;BYMONTH=3;BYMONTHDAY=1", "08:00", "Mon 2027-03-01 08:00"),
        ("FREQ=DAILY;COUNT=1", "11:00", "Mon 2026-11-30 11:00"),
        ("FREQ=DAILY;UNTIL=20261130", "09:00", None),
    ],
)
def test_the_first_occurrence_is_after_now(text: str, at: str, expected: str | None) -> None:
    assert first(text, at) == expected


def test_what_was_missed_is_one_occurrence_and_the_rule_goes_on() -> None:
    rule = read_rule("FREQ=WEEKLY;INTERVAL=2;BYDAY=FR", date(2026, 12, 4))
    now = datetime(2027, 3, 1, 12, 0, tzinfo=UTC)
    found = find_next_occurrence(rule, time(16), BERLIN, last=date(2026, 12, 4), after=now)
    assert found is not None
    assert found.day == date(2027, 3, 12)  # two weeks are counted from 4 December
    assert (found.day - date(2026, 12, 4)).days % 14 == 0


def test_a_rule_with_a_count_and_one_with_an_end_end() -> None:
    last = read_rule("FREQ=DAILY;COUNT=1", date(2026, 12, 4))
    assert find_next_occurrence(last, time(8), BERLIN, last=date(2026, 12, 4), after=MONDAY) is None
    until = read_rule("FREQ=DAILY;UNTIL=20261205", date(2026, 12, 4))
    after = datetime(2026, 12, 5, 8, tzinfo=UTC)
    assert find_next_occurrence(until, time(8), BERLIN, last=date(2026, 12, 4), after=after) is None


@pytest.mark.parametrize(
    ("zone", "at", "start", "changed_on", "expected"),
    [
        ("Europe/Berlin", "02:30", "2026-03-27T12:00", "2026-03-29", "03:30+02:00"),
        ("Europe/Berlin", "02:30", "2026-10-23T12:00", "2026-10-25", "02:30+02:00"),
        ("America/New_York", "02:30", "2026-03-06T12:00", "2026-03-08", "03:30-04:00"),
        ("America/New_York", "01:30", "2026-10-30T12:00", "2026-11-01", "01:30-04:00"),
        ("Australia/Lord_Howe", "02:15", "2026-10-02T12:00", "2026-10-04", "02:45+11:00"),
        ("Pacific/Chatham", "03:00", "2026-09-25T12:00", "2026-09-27", "04:00+13:45"),
        ("Africa/Casablanca", "02:30", "2026-03-20T12:00", "2026-03-22", "03:30+01:00"),
    ],
)
def test_each_day_has_one_occurrence_when_the_clock_changes(
    zone: str, at: str, start: str, changed_on: str, expected: str
) -> None:
    where, at_time, now = ZoneInfo(zone), time.fromisoformat(at), datetime.fromisoformat(f"{start}+00:00")
    rule = read_rule("FREQ=DAILY", now.astimezone(where).date())
    found = find_first_occurrence(rule, at_time, where, after=now)
    seen: dict[date, datetime] = {}
    while found is not None and len(seen) < 7:
        assert found.day not in seen
        assert found.at not in seen.values()
        seen[found.day] = found.at
        found = find_next_occurrence(rule, at_time, where, last=found.day, after=found.at)
    days = sorted(seen)
    assert days == [days[0] + timedelta(days=number) for number in range(7)]
    changed = seen[date.fromisoformat(changed_on)].astimezone(where)
    assert changed.isoformat(timespec="minutes")[11:] == expected
    others = {day: moment.astimezone(where) for day, moment in seen.items() if day != date.fromisoformat(changed_on)}
    assert {f"{moment:%H:%M}" for moment in others.values()} == {at}


def test_a_day_that_a_zone_skips_is_no_second_occurrence() -> None:
    apia = ZoneInfo("Pacific/Apia")
    rule = read_rule("FREQ=DAILY", date(2011, 12, 29))
    found = find_next_occurrence(
        rule, time(16), apia, last=date(2011, 12, 29), after=to_instant(date(2011, 12, 29), time(16), apia)
    )
    assert found is not None
    assert f"{found.at.astimezone(apia):%d %H:%M}" == "31 16:00"
    following = find_next_occurrence(rule, time(16), apia, last=found.day, after=found.at)
    assert following is not None
    assert f"{following.at.astimezone(apia):%m-%d %H:%M}" == "01-01 16:00"
