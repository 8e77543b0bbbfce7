"""Events of the calendar: what a program expands of a task's repeat are the dates that the tasks will have."""

import random
from collections.abc import Iterator
from datetime import UTC, date, datetime, time, timedelta
from itertools import islice
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from dateutil.rrule import rrulestr
from icalendar import Calendar

from backend.calendar.events import DatedTask, Events
from common import recurrence
from common.recurrence import RepeatInvalid

BERLIN = ZoneInfo("Europe/Berlin")
DAYS = ["MO", "TU", "WE", "TH", "FR", "SA", "SU"]
CASES = [
    ("FREQ=DAILY", date(2026, 11, 22)),
    ("FREQ=DAILY;INTERVAL=3;COUNT=5", date(2026, 11, 22)),
    ("FREQ=WEEKLY;BYDAY=MO,WE", date(2026, 11, 23)),
    ("FREQ=WEEKLY;INTERVAL=2;BYDAY=MO", date(2026, 11, 24)),
    ("FREQ=MONTHLY;BYMONTHDAY=28", date(2026, 11, 28)),
    ("FREQ=MONTHLY;BYMONTHDAY=29", date(2026, 11, 29)),
    ("FREQ=MONTHLY;BYMONTHDAY=30", date(2026, 11, 30)),
    ("FREQ=MONTHLY;BYMONTHDAY=31", date(2027, 1, 31)),
    ("FREQ=MONTHLY;BYMONTHDAY=-1;UNTIL=20270401", date(2026, 11, 30)),
    ("FREQ=MONTHLY;BYMONTHDAY=1,30", date(2026, 12, 1)),
    ("FREQ=MONTHLY;BYMONTHDAY=29,30,31", date(2026, 12, 29)),
    ("FREQ=MONTHLY;BYDAY=1MO,-1FR", date(2026, 12, 7)),
    ("FREQ=MONTHLY;BYDAY=SU,4MO", date(2026, 11, 23)),
    ("FREQ=MONTHLY;BYDAY=5MO;UNTIL=20280101", date(2026, 11, 30)),
    ("FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=29", date(2028, 2, 29)),
    ("FREQ=YEARLY;BYMONTH=4;BYMONTHDAY=31", date(2027, 4, 30)),
    ("FREQ=YEARLY;INTERVAL=2;BYMONTH=12;BYMONTHDAY=24", date(2026, 12, 24)),
    ("FREQ=WEEKLY;BYDAY=MO;COUNT=3", date(2026, 11, 25)),
    ("FREQ=WEEKLY;BYDAY=MO;COUNT=1", date(2026, 11, 25)),
    ("FREQ=WEEKLY;BYDAY=MO;UNTIL=20261126", date(2026, 11, 25)),
]


def made_up(chance: random.Random) -> str:
    freq = chance.choice(["DAILY", "WEEKLY", "MONTHLY", "MONTHLY", "YEARLY"])
    parts = [f"FREQ={freq}"]
    if chance.random() < 0.4:
        parts.append(f"INTERVAL={chance.randint(1, 13)}")
    if freq == "YEARLY" and chance.random() < 0.6:
        parts.append(f"BYMONTH={chance.randint(1, 12)}")
    numbers = [""] if freq == "WEEKLY" else ["", "1", "4", "5", "-1"]
    if freq in ("WEEKLY", "MONTHLY") and chance.random() < 0.5:
        days = chance.sample(DAYS, chance.randint(1, 3))
        parts.append("BYDAY=" + ",".join(f"{chance.choice(numbers)}{day}" for day in days))
    elif freq in ("MONTHLY", "YEARLY"):
        days = chance.sample([1, 15, 27, 28, 29, 30, 31, -1], chance.randint(1, 3))
        if not ({29, 30} <= {*days} and not {28, 31, -1} & {*days}):  # which no rule of RFC 5545 says exactly
            parts.append("BYMONTHDAY=" + ",".join(map(str, days)))
    parts += chance.choice([[], ["COUNT=7"], ["UNTIL=20300630"]])
    return ";".join(parts)


def many() -> Iterator[tuple[str, date]]:
    chance = random.Random(11)
    while True:
        due = date(2026, 1, 1) + timedelta(days=chance.randint(0, 1_200))
        try:
            yield str(recurrence.read_rule(made_up(chance), due)), due
        except RepeatInvalid:
            continue


def by_the_tools(text: str, due: date) -> list[date]:
    """The task's day and the next, each completed on its day."""
    rule, days = recurrence.parse_rule(text), [due]
    while len(days) < 13 and (following := recurrence.find_next_date(rule, due=days[-1], today=days[-1])):
        rule = recurrence.get_next_rule(rule)
        days.append(following)
    return days


def task(due: date, text: str | None, at: str = "") -> DatedTask:
    return DatedTask.model_validate(
        {"id": 5, "series": 2, "title": "water", "due": {"date": str(due), "time": at or None}, "repeat": text}
        | {"status": "pending", "updated_at": "2026-11-22T10:00:00Z"}
    )


def of_alice(task: DatedTask, zone: ZoneInfo = BERLIN) -> list[Any]:
    return [*Events("alice", zone).create_events(task)]


def parsed(events: list[Any]) -> list[Any]:
    calendar = Calendar()
    for event in events:
        calendar.add_component(event)
    return Calendar.from_ical(calendar.to_ical()).events


def expanded(event: Any) -> list[Any]:
    start = event["dtstart"].dt
    begun = start if isinstance(start, datetime) else datetime.combine(start, time())
    rule = event.get("rrule")
    return [begun] if rule is None else list(islice(rrulestr(rule.to_ical().decode(), dtstart=begun), 13))


@pytest.mark.parametrize("at", ["", "02:30"])
@pytest.mark.parametrize(("text", "due"), CASES)
def test_the_dates_are_those_of_the_tools(text: str, due: date, at: str) -> None:
    check_dates(text, due, at)


def test_the_dates_of_many_rules_are_those_of_the_tools() -> None:
    for number, (text, due) in enumerate(islice(many(), 500)):
        check_dates(text, due, "02:30" if number % 2 else "")


def check_dates(text: str, due: date, at: str) -> None:
    events = parsed(of_alice(task(due, text, at)))
    dates = sorted(moment for event in events for moment in expanded(event))
    days = [moment.date() for moment in dates]
    expected = by_the_tools(text, due)
    assert days[: len(expected)] == expected, text
    if len(expected) < 13:
        assert len(days) == len(expected)
    if at:
        assert {moment.time() for moment in dates} == {time(2, 30)}
        assert all(event["dtstart"].params["TZID"] == "Europe/Berlin" for event in events)
    else:
        assert all(type(event["dtstart"].dt) is date for event in events)


@pytest.mark.parametrize(
    "text",
    ["FREQ=MONTHLY;INTERVAL=3;FROM=DONE", "FREQ=HOURLY", "FREQ=DAILY;INTERVAL=0", "FREQ=DAILY;UNTIL=20269999", ""],
)
def test_of_what_is_counted_from_its_end_or_not_known_only_the_next_date_is_told(text: str) -> None:
    [event] = of_alice(task(date(2026, 11, 23), text))
    assert "rrule" not in event
    assert event["dtstart"].dt == date(2026, 11, 23)


def test_last_days_of_the_calendar() -> None:
    [event] = of_alice(task(date(9999, 12, 28), "FREQ=WEEKLY;BYDAY=MO"))
    assert event["dtstart"].dt == date(9999, 12, 28)


def test_the_end_of_a_repeat_has_the_kind_of_its_beginning() -> None:
    text, due = "FREQ=DAILY;UNTIL=20270330", date(2027, 3, 1)
    [all_day] = of_alice(task(due, text))
    [timed] = of_alice(task(due, text, "23:30"))
    assert all_day["rrule"]["until"] == [date(2027, 3, 30)]
    assert timed["rrule"]["until"] == [datetime(2027, 3, 30, 21, 30, tzinfo=UTC)]
    assert b"UNTIL=20270330T213000Z" in timed.to_ical()
    [endless] = of_alice(task(due, "FREQ=DAILY;UNTIL=99991231", "23:30"), ZoneInfo("Pacific/Honolulu"))
    assert endless["rrule"]["until"][0].year == 9999


def test_a_task_that_was_moved_stands_beside_its_series() -> None:
    moved, rest = of_alice(task(date(2026, 11, 25), "FREQ=WEEKLY;BYDAY=MO", "09:00"))
    assert ("rrule" in moved, "rrule" in rest) == (False, True)
    assert rest["dtstart"].dt == datetime(2026, 11, 30, 9, tzinfo=BERLIN)
    [back] = of_alice(task(date(2026, 11, 30), "FREQ=WEEKLY;BYDAY=MO", "09:00"))
    assert back["uid"] == rest["uid"] != moved["uid"]


TASK = {
    "id": 1,
    "due": {"date": "2027-03-29", "time": "02:30"},
    "status": "pending",
    "updated_at": "2026-11-22T10:00:00Z",
}
HOSTILE = {
    "call\r\nEND:VEVENT\r\nBEGIN:VEVENT": "call END:VEVENT BEGIN:VEVENT",
    'a;b,c:d\\n"e"': 'a;b,c:d\\n"e"',
    "\\nBEGIN:VALARM": "\\nBEGIN:VALARM",
    "ü" * 200: "ü" * 200,
    "👩\u200d👩\u200d👧 " * 20: ("👩\u200d👩\u200d👧 " * 20).strip(),
    "שלום": "שלום",
    "x\u2028y\u2029z\x85w\rv\nu": "x y zw v u",
    "x\x00\x07\x1b[31m\x7fy": "x[31my",
    "X-WR-CALNAME:evil": "X-WR-CALNAME:evil",
}


@pytest.mark.parametrize("text", HOSTILE)
def test_text_of_others(text: str) -> None:
    task = DatedTask.model_validate({**TASK, "title": text, "description": text, "labels": [text]})
    [made] = Events("alice", ZoneInfo("UTC")).create_events(task)
    content = b"BEGIN:VCALENDAR\r\n" + made.to_ical() + b"END:VCALENDAR\r\n"
    assert all(len(line) <= 75 for line in content.split(b"\r\n"))
    assert not {*content} & {*range(32)} - {*b"\r\n\t"}
    assert content.count(b"\n") == content.count(b"\r") == content.count(b"\r\n")
    [event] = list[Any](Calendar.from_ical(content).events)
    assert [component.name for component in event.subcomponents] == ["VALARM"]
    assert event["summary"] == event.subcomponents[0]["description"] == HOSTILE[text]


def test_users_have_uids_of_their_own() -> None:
    task = DatedTask.model_validate({**TASK, "title": "tax", "description": ""})
    alice, bob = (str(Events(owner, ZoneInfo("UTC")).create_events(task)[0]["uid"]) for owner in ("alice", "bob"))
    assert alice != bob
    assert alice.startswith("1.")
    assert "alice" not in alice
