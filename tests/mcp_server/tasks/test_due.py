"""When a task is due, how much it matters and what it is labelled, as the tools take and show it."""

import json
from datetime import date, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_server.errors import KeyUsedOtherwise, LabelInvalid
from mcp_server.tasks.fields import label_of
from tests.mcp_server.calls import Tools, text
from tests.mcp_server.clock import Clocked
from tests.mcp_server.conftest import Rows

REFUSED: list[tuple[str, str]] = [
    ("Thu 2026-11-27", "2026-11-27 is no Thursday: write Fri 2026-11-27 or Thu 2026-11-26, whichever is meant."),
    ("2026-02-30", "2026-02-30 is no day of the calendar: write one that exists, such as 2026-02-28."),
    ("2026-11-27 24:00", "24:00 is no time of day: write one from 00:00 to 23:59."),
    ("+0d", "+0d moves nothing: write a shift of one or more, such as +1d, or leave due out to keep the date."),
    ("3000-01-01", "3000-01-01 lies outside the years 1970 to 2999: write a day within them."),
    ("next week", 'due "next week" is not understood: write a day (Fri 2026-11-27, '),
    ("next", "does not repeat, so it has no next date: give due as a day."),
    ("x" * 301, "due must be text such as Fri 2026-11-27 15:00, tomorrow, +1w or none."),
    ("\0", "due must be text such as "),
]


@pytest.mark.parametrize(("due", "sentence"), REFUSED)
async def test_a_date_that_is_none_is_refused_and_nothing_is_changed(
    tools: Tools, rows: Rows, due: str, sentence: str
) -> None:
    await tools.call("add_task", title="milk", due="2998-12-31")
    before = rows.tasks(), rows.changes()
    assert sentence in await tools.refusal("update_task", task_id=1, title="bread", due=due)
    assert sentence in (refused := await tools.refusal("add_task", title="bread", due=due))
    assert "0 does not" not in refused, "a task that is not there yet has no number"
    assert (rows.tasks(), rows.changes()) == before


@pytest.mark.parametrize(
    ("given_due", "shown"),
    [
        ("Fri 2026-11-27", "Fri 2026-11-27"),
        ("friday 2026-11-27", "Fri 2026-11-27"),
        ("2026-11-27", "Fri 2026-11-27"),
        ("Fri 2026-11-27 15:00", "Fri 2026-11-27 15:00"),
        ("2026-11-27T15:00:00", "Fri 2026-11-27 15:00"),
        ("2026-11-27 9:05", "Fri 2026-11-27 09:05"),
        ("2026-11-27 00:00", "Fri 2026-11-27 00:00"),
        ("2026-11-27 all day", "Fri 2026-11-27"),
        ("2026-11-27T15:00:00Z", "Fri 2026-11-27 15:00"),
        ("2026-11-27T23:30:00-02:00", "Sat 2026-11-28 01:30"),
        ("none", None),
        ("", None),
        (None, None),
    ],
)
async def test_a_day_and_a_time(tools: Tools, given_due: str | None, shown: str | None) -> None:
    added = await tools.call("add_task", title="milk", due=given_due)
    assert added["due"] == shown
    await tools.call("add_task", title="bread")
    updated = await tools.call("update_task", task_id=2, title="rye bread", due=given_due)
    assert updated["due"] == shown
    listed = (await tools.call("list_tasks"))["tasks"]
    assert [task["due"] for task in listed] == [shown, shown]


@pytest.mark.parametrize(
    ("before", "wanted", "shown"),
    [
        (None, "today", "Sun 2026-11-22"),
        (None, "tomorrow", "Mon 2026-11-23"),
        (None, "tomorrow 15:00", "Mon 2026-11-23 15:00"),
        (None, "Sunday", "Sun 2026-11-29"),
        (None, "mon", "Mon 2026-11-23"),
        (None, "15:00", "Sun 2026-11-22 15:00"),
        (None, "09:00", "Mon 2026-11-23 09:00"),
        (None, "10:54", "Sun 2026-11-22 10:54"),
        (None, "+1w", "Sun 2026-11-29"),
        (None, "2026-11-22T23:30Z", "Mon 2026-11-23 00:30"),
        ("2026-11-27 15:00", "2026-11-30", "Mon 2026-11-30 15:00"),
        ("2026-11-27 15:00", "tomorrow", "Mon 2026-11-23 15:00"),
        ("2026-11-27 15:00", "2026-11-30 all day", "Mon 2026-11-30"),
        ("2026-11-27 15:00", "14:30", "Fri 2026-11-27 14:30"),
        ("2026-11-27 15:00", "+3d", "Mon 2026-11-30 15:00"),
        ("2026-11-27 15:00", "-1d", "Thu 2026-11-26 15:00"),
        ("2026-11-27", "+2w", "Fri 2026-12-11"),
        ("2027-01-31", "+1m", "Sun 2027-02-28"),
        ("2026-11-10 08:00", "+1w", "Sun 2026-11-29 08:00"),
        ("2026-11-27 15:00", "none", None),
    ],
)
async def test_what_is_meant_on_a_sunday_in_berlin(
    sunday: Clocked, before: str | None, wanted: str, shown: str | None
) -> None:
    await sunday.add("milk", due=before)
    assert (await sunday.update(1, due=wanted)).due == shown


async def test_the_zone_that_a_call_names_is_kept_for_those_that_name_none(tools: Tools, rows: Rows) -> None:
    kiritimati, instant = {"todo/time_zone": "Pacific/Kiritimati"}, "2026-11-27T12:00:00Z"
    first = await tools.call("add_task", title="milk", due=instant)
    assert (first["due"], (await tools.call("list_tasks"))["time_zone"]) == ("Fri 2026-11-27 12:00", "UTC")
    there = await tools.call("add_task", title="bread", due=instant, meta=kiritimati)
    assert there["due"] == "Sat 2026-11-28 02:00"
    for unknown in ({}, {"todo/time_zone": "Mars/Olympus"}, {"todo/time_zone": "../../etc/passwd"}):
        assert (await tools.call("list_tasks", meta=unknown))["time_zone"] == "Pacific/Kiritimati"
        assert (await tools.call("add_task", title="eggs", due=instant, meta=unknown))["due"] == there["due"]
    assert (await tools.call("list_tasks", user_id="bob"))["time_zone"] == "UTC"
    assert rows("SELECT user_id, time_zone FROM people") == [{"user_id": "local", "time_zone": "Pacific/Kiritimati"}]


@pytest.mark.parametrize("zone", ["Pacific/Apia", "Pacific/Honolulu"])
async def test_today_is_the_person_s_own(tools: Tools, zone: str) -> None:
    page = await tools.call("list_tasks", meta={"todo/time_zone": zone})
    today = page["now"].split()[1]
    task = await tools.call("add_task", title="milk", due="today")
    tomorrow = await tools.call("add_task", title="bread", due="tomorrow")
    assert task["due"].split()[1] in (today, str(date.fromisoformat(today) + timedelta(days=1)))
    assert date.fromisoformat(tomorrow["due"].split()[1]) > date.fromisoformat(today)


async def test_a_priority(tools: Tools) -> None:
    assert (await tools.call("add_task", title="milk", priority="high"))["priority"] == "high"
    for wanted, shown in (("low", "low"), (None, "low"), ("", "low"), ("none", None), ("medium", "medium")):
        assert (await tools.call("update_task", task_id=1, title="milk", priority=wanted))["priority"] == shown
    for odd in ("urgent", 1, ["high"]):
        sentence = await tools.refusal("update_task", task_id=1, priority=odd)
        assert sentence == "priority must be high, medium, low or none."


async def test_labels_are_the_same_however_they_are_spelled(tools: Tools) -> None:
    spelled = ["#Work", "@work", " WORK ", "wo\u200brk", "# work", "cafe\u0301", "deep   work"]
    task = await tools.call("add_task", title="milk", labels=spelled)
    assert task["labels"] == ["café", "deep work", "work"]
    task = await tools.call("update_task", task_id=1, add_labels=["Home", "work"], remove_labels=["CAFÉ", "no such"])
    assert task["labels"] == ["deep work", "home", "work"]
    assert (await tools.call("update_task", task_id=1, labels=["x"], add_labels=["y"]))["labels"] == ["x", "y"]
    assert (await tools.call("update_task", task_id=1, labels='["z"]'))["labels"] == ["z"]
    assert (await tools.call("update_task", task_id=1, remove_labels=["z"]))["labels"] == []
    assert (await tools.call("update_task", task_id=1, add_labels=["a", "b"]))["labels"] == ["a", "b"]
    assert (await tools.call("update_task", task_id=1, labels=[], title="x"))["labels"] == ["a", "b"], "not given"
    assert (await tools.call("update_task", task_id=1, remove_labels=["*"], add_labels=["c"]))["labels"] == ["c"]
    assert (await tools.call("update_task", task_id=1, remove_labels=["*"]))["labels"] == []


@given(st.text(max_size=45))
def test_a_stored_label_is_its_own_spelling(spelled: str) -> None:
    try:
        label = label_of(spelled)
    except LabelInvalid:
        return
    assert label_of(label) == label
    assert label == label.strip()
    assert 1 <= len(label) <= 40


TOO_LONG = "A label must have 1 to 40 characters, not counting a # or @ before it."
TOO_MANY = "A task can have 10 labels at most: remove some with remove_labels."


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"labels": ["x" * 41]}, TOO_LONG),
        ({"add_labels": ["#" + "x" * 41]}, TOO_LONG),
        ({"labels": ["#"]}, TOO_LONG),
        ({"labels": ["\u200b"]}, "labels must be a list of at most 10 texts."),
        ({"add_labels": ["eleventh"]}, TOO_MANY),
        ({"labels": [f"{n}" for n in range(11)]}, "labels must be a list of at most 10 texts."),
        ({"labels": [5]}, "labels must be a list of at most 10 texts."),
        ({"labels": ["\0"]}, "labels must be a list of at most 10 texts."),
        ({"labels": "[" * 5000}, "labels must be a list of at most 10 texts."),
        ({"labels": {"a": "b"}}, "labels must be a list of at most 10 texts."),
    ],
)
async def test_labels_that_are_none(tools: Tools, rows: Rows, arguments: dict[str, Any], sentence: str) -> None:
    await tools.call("add_task", title="milk", labels=[f"{n}" for n in range(10)])
    before = rows.tasks(), rows.changes()
    assert await tools.refusal("update_task", task_id=1, **arguments) == sentence
    assert (rows.tasks(), rows.changes()) == before


async def test_the_longest_label(tools: Tools) -> None:
    assert (await tools.call("add_task", title="milk", labels=["#" + "x" * 40]))["labels"] == ["x" * 40]


async def test_the_text_names_what_is_there(tools: Tools) -> None:
    arguments = {"title": "water", "due": "2026-11-27 15:00", "priority": "low", "repeat": "FREQ=WEEKLY"}
    said = json.loads(text(await tools.client.call_tool_mcp("add_task", arguments)))
    assert said == {
        "id": 1,
        "title": "water",
        "status": "pending",
        "due": "Fri 2026-11-27 15:00",
        "priority": "low",
        "repeat": "FREQ=WEEKLY;BYDAY=FR",
    }


async def test_an_addition_that_comes_again_is_told_again_though_it_could_not_be_made_now(sunday: Clocked) -> None:
    sunday.key = "key-1"
    made = await sunday.add("milk", due="tomorrow", repeat="FREQ=DAILY;UNTIL=20261124")
    sunday.now = "2026-11-25T10:54:00+01:00"
    assert await sunday.add("milk", due="tomorrow", repeat="FREQ=DAILY;UNTIL=20261124") == made
    with pytest.raises(KeyUsedOtherwise):
        await sunday.add("milk", due="some time")


async def test_an_addition_that_comes_again_moves_nobody(sunday: Clocked, rows: Rows) -> None:
    sunday.key = "key-1"
    await sunday.add("milk", due="tomorrow")
    sunday.key, sunday.zone = None, "Asia/Tokyo"
    await sunday.add("bread", due="tomorrow")
    sunday.key, sunday.zone = "key-1", "Europe/Berlin"
    await sunday.add("milk", due="tomorrow")
    assert rows("SELECT time_zone FROM people") == [{"time_zone": "Asia/Tokyo"}]
