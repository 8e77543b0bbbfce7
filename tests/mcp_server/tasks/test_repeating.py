"""Tasks that repeat: what completing leaves behind, and what ends a repeat."""

import asyncio
from typing import Any

import pytest

from mcp_server.errors import NextIsOpen, RepeatNeedsDue
from mcp_server.tasks.task import OtherTask
from tests.mcp_server.calls import Tools
from tests.mcp_server.clock import Clocked
from tests.mcp_server.conftest import Rows

WEEKLY: dict[str, Any] = {"due": "Mon 2996-11-28 09:00", "repeat": "FREQ=WEEKLY;BYDAY=MO"}
WEEKDAYS = ("MO", "TU", "WE", "TH", "FR", "SA", "SU")
KEY = {"todo/idempotency_key": "key-1"}
TIMES = ("created_at", "updated_at", "completed_at")


def timeless(task: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in task.items() if name not in TIMES}


def brief(told: dict[str, Any] | None) -> tuple[int, str] | None:
    """What a model reads of the next task."""
    return (told["id"], told["due"]) if told else None


def left_by(completed: OtherTask) -> tuple[int, str] | None:
    """The number of the next task, and when it is due."""
    return completed.next and (completed.next.id, completed.next.due)


async def test_completing_leaves_the_next_with_the_same_details(tools: Tools, rows: Rows) -> None:
    details: dict[str, Any] = {"title": "water", "description": "all", "priority": "high", "labels": ["plants"]}
    added = await tools.call("add_task", **details, **WEEKLY)
    completed = await tools.call("complete_task", task_id=1)
    assert completed["status"] == "completed"
    told = completed["next"]
    assert (told["id"], told["due"]) == (2, "Mon 2996-12-05 09:00")
    assert (completed["also"], completed["not_found"]) == ([], [])
    first, second = (await tools.call("list_tasks"))["tasks"]
    assert told["task"] == {name: value for name, value in second.items() if not name.startswith("deleted")}
    following = added | {"id": 2, "due": "Mon 2996-12-05 09:00"}
    assert timeless(second) == {name: value for name, value in timeless(following).items() if name in second}
    assert second["created_at"] == second["updated_at"] == first["completed_at"]
    assert [(task["id"], task["series"]) for task in rows.tasks()] == [(1, 1), (2, 1)]


async def test_completing_again_leaves_no_other(tools: Tools, rows: Rows) -> None:
    await tools.call("add_task", title="water", **WEEKLY)
    await tools.call("complete_task", task_id=1)
    again = await tools.call("complete_task", task_id=1)
    assert again["next"] is None
    assert len(rows.tasks()) == 2


async def test_one_that_was_completed_already_leaves_nothing(tools: Tools) -> None:
    await tools.call("add_task", title="water", **WEEKLY)
    await tools.call("complete_task", task_id=1)
    again = await tools.call("complete_task", task_id=1, also=[2])
    assert (again["next"], brief(again["also"][0]["next"])) == (None, (3, "Mon 2996-12-12 09:00"))


async def test_fifty_at_once_leave_one(tools: Tools, rows: Rows) -> None:
    await tools.call("add_task", title="water", **WEEKLY)
    answers = await asyncio.gather(*(tools.call("complete_task", task_id=1) for _ in range(50)))
    assert sorted(task["status"] for task in rows.tasks()) == ["completed", "pending"]
    assert [brief(answer["next"]) for answer in answers if answer["next"]] == [(2, "Mon 2996-12-05 09:00")]


async def test_a_completion_sent_again_tells_the_same_next(tools: Tools, rows: Rows) -> None:
    await tools.call("add_task", title="water", **WEEKLY)
    first = await tools.call("complete_task", task_id=1, meta=KEY)
    await tools.call("complete_task", task_id=2)
    before = rows.tasks(), rows.changes()
    assert await tools.call("complete_task", task_id=1, meta=KEY) == first
    assert (rows.tasks(), rows.changes()) == before


async def test_the_next_is_not_taken_for_one_of_the_ids(tools: Tools, rows: Rows) -> None:
    """A call may name a number that nobody has yet, and the next task gets it."""
    await tools.call("add_task", title="water", **WEEKLY)
    for meta in (KEY, KEY):
        completed = await tools.call("complete_task", task_id=1, also=[2], meta=meta)
        assert brief(completed["next"]) == (2, "Mon 2996-12-05 09:00")
        assert (completed["also"], completed["not_found"]) == ([], [2])
    assert [task["status"] for task in rows.tasks()] == ["completed", "pending"]


async def test_completing_by_an_update_is_the_same(tools: Tools) -> None:
    await tools.call("add_task", title="water", **WEEKLY)
    completed = await tools.call("update_task", task_id=1, title="watered", status="completed")
    assert brief(completed["next"]) == (2, "Mon 2996-12-05 09:00")
    assert await tools.titles(status="pending") == ["watered"]


async def test_moving_one_keeps_the_rule(tools: Tools) -> None:
    await tools.call("add_task", title="water", **WEEKLY)
    moved = await tools.call("update_task", task_id=1, due="+2d")
    assert (moved["due"], moved["repeat"]) == ("Wed 2996-11-30 09:00", "FREQ=WEEKLY;BYDAY=MO")
    completed = await tools.call("complete_task", task_id=1)
    assert completed["next"]["due"] == "Mon 2996-12-05 09:00"


async def test_next_skips_one(tools: Tools, rows: Rows) -> None:
    await tools.call("add_task", title="water", due=WEEKLY["due"], repeat="FREQ=WEEKLY;BYDAY=MO;COUNT=3")
    skipped = await tools.call("update_task", task_id=1, due="next")
    assert (skipped["due"], skipped["repeat"]) == ("Mon 2996-12-05 09:00", "FREQ=WEEKLY;BYDAY=MO;COUNT=2")
    await tools.call("update_task", task_id=1, due="next")
    assert await tools.refusal("update_task", task_id=1, due="next") == (
        "Task 1 has no date after this one: complete it, or delete it."
    )
    assert len(rows.tasks()) == 1


async def test_a_count_runs_out(tools: Tools) -> None:
    await tools.call("add_task", title="water", due=WEEKLY["due"], repeat="FREQ=DAILY;COUNT=3")
    assert (await tools.call("complete_task", task_id=1))["next"]["id"] == 2
    assert brief((await tools.call("complete_task", task_id=2))["next"]) == (3, "Wed 2996-11-30 09:00")
    assert (await tools.call("complete_task", task_id=3))["next"] is None
    assert await tools.titles(status="pending") == []


@pytest.mark.parametrize(("tool", "arguments"), [("update_task", {"repeat": "none"}), ("delete_task", {})])
async def test_what_ends_a_repeat(tools: Tools, tool: str, arguments: dict[str, Any]) -> None:
    await tools.call("add_task", title="water", **WEEKLY)
    await tools.call("complete_task", task_id=1)
    await tools.call(tool, task_id=2, **arguments)
    if tool == "update_task":
        assert (await tools.call("complete_task", task_id=2))["next"] is None
    assert await tools.titles(status="pending") == []


async def test_reopening_while_the_next_is_open(tools: Tools, rows: Rows) -> None:
    await tools.call("add_task", title="water", **WEEKLY)
    await tools.call("complete_task", task_id=1)
    before = rows.tasks(), rows.changes()
    assert await tools.refusal("update_task", task_id=1, status="pending") == (
        "Task 1 cannot be opened again: the one that followed it, task 2, is open. Undo its completion with undo, "
        "or delete task 2 first."
    )
    assert (rows.tasks(), rows.changes()) == before
    await tools.call("delete_task", task_id=2)
    assert (await tools.call("update_task", task_id=1, status="pending"))["completed_at"] is None


ONE_OPEN = (
    "Of the tasks of one repeat only one can be open: complete or delete the one that is, "
    "and open one at a time; nothing was changed."
)


async def test_two_of_one_repeat_are_not_opened_together(tools: Tools, rows: Rows) -> None:
    await tools.call("add_task", title="water", **WEEKLY)
    for number in (1, 2):
        await tools.call("complete_task", task_id=number)
    await tools.call("delete_task", task_id=3)
    before = rows.tasks(), rows.changes()
    assert await tools.refusal("update_task", task_id=1, also=[2], status="pending") == ONE_OPEN
    assert (rows.tasks(), rows.changes()) == before
    answers = await asyncio.gather(
        *(tools.call("update_task", task_id=number, status="pending") for number in (1, 2)), return_exceptions=True
    )
    assert sum(isinstance(answer, AssertionError) for answer in answers) == 1
    assert not any("internal error" in str(answer) for answer in answers)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"due": "none"}, "A task that repeats needs a date: give due, too, or end the repeat with repeat none."),
        ({"repeat": "FREQ=HOURLY"}, 'repeat has FREQ with "HOURLY", which is not understood: write FREQ='),
        ({"repeat": "FREQ=DAILY;INTERVAL=0"}, 'repeat has INTERVAL with "0", which is not understood: '),
        ({"repeat": "every monday"}, 'repeat has "EVERY MONDAY", which is not known: write FREQ='),
        ({"repeat": "FREQ=DAILY;UNTIL=19990101"}, "repeat ends with UNTIL=1999-01-01, before the task is due"),
        (
            {
                "repeat": "FREQ=MONTHLY;INTERVAL=999;COUNT=999;BYDAY="
                + ",".join(f"{nth}{day}" for nth in ("", *range(1, 6), -1) for day in WEEKDAYS)
            },
            "repeat is too long: write FREQ=",
        ),
        ({"repeat": "=" * 301}, "repeat must be an RRULE such as FREQ=WEEKLY;BYDAY=MO, or none."),
    ],
)
async def test_what_no_repeat_can_be(tools: Tools, rows: Rows, arguments: dict[str, Any], sentence: str) -> None:
    await tools.call("add_task", title="water", **WEEKLY)
    before = rows.tasks(), rows.changes()
    assert (await tools.refusal("update_task", task_id=1, **arguments)).startswith(sentence)
    if "repeat" in arguments:
        assert (await tools.refusal("add_task", title="gym", **WEEKLY | arguments)).startswith(sentence)
    assert (rows.tasks(), rows.changes()) == before


async def test_a_repeat_needs_a_date(tools: Tools) -> None:
    sentence = " ".join((RepeatNeedsDue.__doc__ or "").split())
    assert await tools.refusal("add_task", title="water", repeat="FREQ=DAILY") == sentence
    await tools.call("add_task", title="water", due="2996-11-28")
    assert (await tools.call("update_task", task_id=1, repeat="FREQ=DAILY"))["repeat"] == "FREQ=DAILY"
    gone = await tools.call("update_task", task_id=1, repeat="none", due="none")
    assert (gone["repeat"], gone["due"]) == (None, None)


async def test_the_next_comes_after_today_however_late_one_is(sunday: Clocked) -> None:
    await sunday.add("water", due="Mon 2026-10-26 09:00", repeat="FREQ=WEEKLY")
    assert left_by(await sunday.complete(1)) == (2, "Mon 2026-11-23 09:00")


@pytest.mark.parametrize(
    ("now", "zone", "due"),
    [
        ("2026-11-22T23:50:00+13:00", "Pacific/Apia", "Mon 2026-11-23"),
        ("2026-11-22T23:50:00-10:00", "Pacific/Honolulu", "Mon 2026-11-23"),
        ("2026-11-23T00:01:00+13:00", "Pacific/Apia", "Tue 2026-11-24"),
    ],
)
@pytest.mark.parametrize("by_update", [False, True])
async def test_today_is_the_person_s_own(sunday: Clocked, now: str, zone: str, due: str, by_update: bool) -> None:
    sunday.now, sunday.zone = now, zone
    await sunday.add("water", due="2026-11-20", repeat=None if by_update else "FREQ=DAILY")
    made = sunday.update(1, repeat="FREQ=DAILY", status="completed") if by_update else sunday.complete(1)
    assert left_by(await made) == (2, due)


async def test_from_done_counts_from_the_day_of_completion(sunday: Clocked) -> None:
    await sunday.add("filter", due="2026-08-31", repeat="FREQ=MONTHLY;INTERVAL=3;FROM=DONE")
    assert left_by(await sunday.complete(1)) == (2, "Mon 2027-02-22")


async def test_the_thirty_first_comes_back(sunday: Clocked) -> None:
    sunday.now = "2027-01-31T12:00:00+01:00"
    await sunday.add("rent", due="2027-01-31", repeat="FREQ=MONTHLY")
    assert left_by(await sunday.complete(1)) == (2, "Sun 2027-02-28")
    sunday.now = "2027-02-28T12:00:00+01:00"
    assert left_by(await sunday.complete(2)) == (3, "Wed 2027-03-31")


async def test_the_open_one_is_named(sunday: Clocked) -> None:
    await sunday.add("rent", due="2026-11-30", repeat="FREQ=MONTHLY")
    await sunday.complete(1)
    await sunday.complete(2)
    with pytest.raises(NextIsOpen, match="task 3, is open"):
        await sunday.update(1, status="pending")
