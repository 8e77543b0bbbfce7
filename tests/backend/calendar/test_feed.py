"""What stands in a calendar, of real tasks over real HTTP."""

from datetime import UTC, date, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from icalendar import Calendar

from backend.calendar.events import DatedTask, Events
from tests.backend.calendar.subscribers import Subscriber
from tests.backend.conftest import Backend, Rows
from tests.chatkit_client import ChatKit

DAY, TIME = "Mon 2027-03-29", "Mon 2027-03-29 02:30"


@pytest.fixture
async def me(chat: ChatKit) -> Subscriber:
    return Subscriber(chat)


@pytest.fixture
async def url(me: Subscriber) -> str:
    return await me.make()


async def test_dated_tasks_that_are_open_are_events(me: Subscriber, url: str, rows: Rows) -> None:
    rows(
        "INSERT INTO profiles (user_id, time_zone) VALUES ('local', 'Europe/Berlin')"
        " ON CONFLICT (user_id) DO UPDATE SET time_zone = 'Europe/Berlin'"
    )
    await me.call("add_task", title="no date")
    await me.call("add_task", title="tax", due=DAY, priority="high", labels=["work", "a, b"], description="one\ntwo")
    await me.call("add_task", title="dentist", due=TIME, priority="low")
    done = await me.call("add_task", title="done", due=DAY)
    await me.call("complete_task", task_id=done["id"])
    events = await me.events(url)
    assert [*events] == ["dentist", "tax"]
    tax, dentist = events["tax"], events["dentist"]
    assert tax["dtstart"].dt == date(2027, 3, 29)
    assert (tax["transp"], tax["priority"], str(tax["description"])) == ("TRANSPARENT", 1, "one\ntwo")
    assert tax.categories == ["a, b", "work"]
    assert tax.walk("VALARM") == []
    assert dentist["dtstart"].dt == datetime(2027, 3, 29, 2, 30, tzinfo=ZoneInfo("Europe/Berlin"))
    assert dentist["dtstart"].dt.utcoffset() == timedelta(hours=2)
    assert (dentist["duration"].dt, dentist["priority"]) == (timedelta(minutes=30), 9)
    [alarm] = dentist.walk("VALARM")
    assert (alarm["action"], alarm["trigger"].dt) == ("DISPLAY", timedelta(0))
    assert [row["updated_at"].replace(microsecond=0) for row in rows("SELECT updated_at FROM tasks WHERE id = 3")] == [
        dentist["dtstamp"].dt
    ]


async def test_a_series_keeps_its_uid_and_people_have_their_own(me: Subscriber, url: str) -> None:
    task = await me.call("add_task", title="water", due=DAY, repeat="FREQ=WEEKLY;BYDAY=MO")
    first = (await me.events(url))["water"]
    await me.call("complete_task", task_id=task["id"])
    following = (await me.events(url))["water"]
    assert following["uid"] == first["uid"]
    assert following["dtstart"].dt == first["dtstart"].dt + timedelta(weeks=1)
    assert str(first["uid"]).startswith("1.")
    assert "local" not in first["uid"]
    written = DatedTask.model_validate({**task, "due": DAY})
    uids = [Events(owner, ZoneInfo("UTC")).of(written)[0]["uid"] for owner in ("alice", "bob")]
    assert uids[0] != uids[1]


@pytest.mark.parametrize("zone", ["Europe/Berlin", "Pacific/Kiritimati", "America/St_Johns", "UTC"])
async def test_times_are_in_the_zone_that_is_set_where_none_is_known(backend: Backend, zone: str) -> None:
    async with backend(time_zone=zone) as chat:
        me = Subscriber(chat)
        url = await me.make()
        await me.call("add_task", title="in summer", due="Thu 2027-07-01 23:30")
        await me.call("add_task", title="in winter", due="Fri 2027-12-31 00:15")
        calendar: Any = Calendar.from_ical((await me.read(url)).content)
    here = ZoneInfo(zone)
    for event, moment in zip(
        calendar.events,
        (datetime(2027, 7, 1, 23, 30, tzinfo=here), datetime(2027, 12, 31, 0, 15, tzinfo=here)),
        strict=True,
    ):
        assert event["dtstart"].dt.astimezone(UTC) == moment.astimezone(UTC)
        assert event["dtstart"].dt.replace(tzinfo=None) == moment.replace(tzinfo=None)
    assert [str(one["tzid"]) for one in calendar.timezones] == ([] if zone == "UTC" else [zone])
    for written in calendar.timezones:
        for moment in (datetime(2027, 1, 1, 12), datetime(2027, 7, 1, 12), datetime(2090, 7, 1, 12)):
            assert moment.replace(tzinfo=written.to_tz(lookup_tzid=False)).utcoffset() == here.utcoffset(moment)
    assert str(calendar["x-wr-calname"]) == "To-do"
    assert calendar["refresh-interval"].dt == timedelta(hours=1)


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
def test_no_text_ends_its_line_or_its_event(text: str) -> None:
    task = {"id": 1, "title": text, "description": text, "labels": [text], "due": TIME, "status": "pending"}
    hostile = DatedTask.model_validate({**task, "updated_at": "2026-11-22T10:00:00Z"})
    [made] = Events("alice", ZoneInfo("UTC")).of(hostile)
    content = b"BEGIN:VCALENDAR\r\n" + made.to_ical() + b"END:VCALENDAR\r\n"
    assert all(len(line) <= 75 for line in content.split(b"\r\n"))
    assert not {*content} & {*range(32)} - {*b"\r\n\t"}
    assert content.count(b"\n") == content.count(b"\r") == content.count(b"\r\n")
    [event] = list[Any](Calendar.from_ical(content).events)
    assert [component.name for component in event.subcomponents] == ["VALARM"]
    assert event["summary"] == event.subcomponents[0]["description"] == HOSTILE[text]


async def test_hostile_titles_over_the_wire(me: Subscriber, url: str) -> None:
    titles = ['a;b,c:d\\n"e"', "\\nBEGIN:VALARM", "END:VEVENT", "ü" * 200]
    for title in titles:
        await me.call("add_task", title=title, due=DAY)
    assert [*await me.events(url)] == titles


async def test_all_pages_are_read_in_the_order_of_their_days(me: Subscriber, url: str, rows: Rows) -> None:
    rows(
        "INSERT INTO tasks (user_id, id, title, due_on, description)"
        " SELECT 'local', n, 'task ' || n, date '2027-01-01' + n, repeat('long ', CASE WHEN n < 90 THEN 800 ELSE 0 END)"
        " FROM generate_series(1, 330) AS n"
    )
    assert [*await me.events(url)] == [f"task {number}" for number in range(1, 331)]


async def test_the_tag_changes_with_the_tasks_only(me: Subscriber, url: str) -> None:
    await me.call("add_task", title="tax", due=DAY)
    first, second = await me.read(url), await me.read(url)
    tag = first.headers["etag"]
    assert (second.content, second.headers["etag"]) == (first.content, tag)
    for known in (tag, f'W/{tag}, "other"', "*"):
        unchanged = await me.read(url, **{"If-None-Match": known})
        assert (unchanged.status_code, unchanged.content, unchanged.headers["etag"]) == (304, b"", tag)
        assert unchanged.headers["cache-control"] == first.headers["cache-control"]
    assert (await me.read(url, **{"If-None-Match": '"other"'})).status_code == 200
    await me.call("update_task", task_id=1, title="taxes")
    changed = await me.read(url, **{"If-None-Match": tag})
    assert (changed.status_code, b"taxes" in changed.content) == (200, True)
    assert changed.headers["etag"] != tag


async def test_the_answer_is_private_and_head_has_no_body(me: Subscriber, url: str) -> None:
    answer = await me.read(url)
    assert answer.headers["content-type"] == "text/calendar; charset=utf-8"
    assert answer.headers["cache-control"].startswith("private")
    assert answer.headers["referrer-policy"] == "no-referrer"
    assert "set-cookie" not in answer.headers
    head = await me.chat.http.head(url)
    assert (head.status_code, head.content) == (200, b"")
    assert {name: head.headers[name] for name in ("etag", "content-length")} == {
        name: answer.headers[name] for name in ("etag", "content-length")
    }


async def test_tasks_that_cannot_be_read_are_no_empty_calendar(backend: Backend, free_port: Any) -> None:
    """A program would delete what it has of them."""
    async with backend(mcp_internal_url=f"http://127.0.0.1:{free_port()}/mcp", mcp_resend_seconds=0.1) as chat:
        me = Subscriber(chat)
        answer = await me.read(await me.make())
    assert answer.status_code == 503
    assert answer.headers["retry-after"] == "300"
    assert answer.json() == {"error": "The calendar cannot be read right now. Try again in a few minutes."}


@pytest.mark.long
async def test_the_first_five_thousand_are_told_while_others_are_served(me: Subscriber, url: str, rows: Rows) -> None:
    rows(
        "INSERT INTO tasks (user_id, id, title, due_on, due_time, repeat, series)"
        " SELECT 'local', n, 'task ' || n, date '2027-01-01' + n, '15:00', 'FREQ=MONTHLY;BYMONTHDAY=31', n"
        " FROM generate_series(1, 5150) AS n"
    )
    content = (await me.read(url)).content
    assert content.count(b"BEGIN:VEVENT") >= 5_000
    assert {f"SUMMARY:task {number}\r\n".encode() in content for number in (1, 2_500, 5_000)} == {True}
    assert b"SUMMARY:task 5001\r\n" not in content
