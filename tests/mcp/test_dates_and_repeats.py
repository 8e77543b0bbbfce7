"""Due dates, priorities, labels and repeats as the tools take them; tests/unit has all texts of dates and repeats."""

import asyncio
from typing import Any

import pytest

from tests.mcp.calls import KEY, Tools, due
from tests.mcp.conftest import NewTools
from tests.support.stored import Stored

WEEKLY: dict[str, Any] = {"due": "Mon 2996-11-28 09:00", "repeat": "FREQ=WEEKLY;BYDAY=MO"}
TIMES = ("created_at", "updated_at", "completed_at")


def following(completed: dict[str, Any]) -> tuple[int, dict[str, str | None]] | None:
    """The number of the next task, and when it is due."""
    return (completed["next"]["id"], completed["next"]["due"]) if completed["next"] else None


async def test_completing_leaves_the_next_with_the_same_details(tools: Tools) -> None:
    details = {"title": "water", "description": "all", "priority": "high", "labels": ["plants"]}
    added = await tools.add(**details, **WEEKLY)
    completed = await tools.complete(1)
    assert (completed["status"], following(completed)) == ("completed", (2, due("2996-12-05 09:00")))
    first, second = await tools.tasks()
    assert completed["next"]["task"] == {
        name: value for name, value in second.items() if not name.startswith("deleted")
    }
    expected = added | {"id": 2, "due": due("2996-12-05 09:00")}
    assert all(second[name] == expected[name] for name in second if name not in TIMES)
    assert second["created_at"] == first["completed_at"]
    assert first["series"] == second["series"] == 1


async def test_completing_again_leaves_no_other(tools: Tools) -> None:
    await tools.add("water", **WEEKLY)
    await tools.complete(1)
    again = await tools.complete(1, 2)
    assert (following(again), following(again["also"][0])) == (None, (3, due("2996-12-12 09:00")))


async def test_fifty_completions_at_once_leave_one(tools: Tools) -> None:
    await tools.add("water", **WEEKLY)
    answers = await asyncio.gather(*(tools.complete(1) for _ in range(50)))
    assert [following(answer) for answer in answers if answer["next"]] == [(2, due("2996-12-05 09:00"))]
    assert await tools.ids() == [1, 2]


async def test_the_next_is_not_one_of_the_ids_of_the_call(tools: Tools) -> None:
    """A call may name a number that nobody has yet, and the next task gets it."""
    await tools.add("water", **WEEKLY)
    for _ in range(2):
        completed = await tools.complete(1, 2, meta=KEY)
        assert (following(completed)) == (2, due("2996-12-05 09:00"))
        assert (completed["also"], completed["not_found"]) == ([], [2])
    assert [task["status"] for task in await tools.tasks()] == ["completed", "pending"]


async def test_completing_by_an_update(tools: Tools) -> None:
    """With a rule that comes with the completion."""
    await tools.add("water", due="2027-02-28")
    completed = await tools.update(1, title="watered", repeat="FREQ=MONTHLY;BYMONTHDAY=31", status="completed")
    assert following(completed) == (2, due("2027-03-31"))
    assert await tools.titles(status="pending") == ["watered"]


async def test_moving_one_keeps_the_rule(tools: Tools) -> None:
    await tools.add("water", **WEEKLY)
    moved = await tools.update(1, due="+2d")
    assert (moved["due"], moved["repeat"]) == (due("2996-11-30 09:00"), "FREQ=WEEKLY;BYDAY=MO")
    assert following(await tools.complete(1)) == (2, due("2996-12-05 09:00"))


async def test_next_skips_one_and_a_count_runs_out(tools: Tools) -> None:
    await tools.add("water", due=WEEKLY["due"], repeat="FREQ=WEEKLY;BYDAY=MO;COUNT=3")
    skipped = await tools.update(1, due="next")
    assert (skipped["due"], skipped["repeat"]) == (due("2996-12-05 09:00"), "FREQ=WEEKLY;BYDAY=MO;COUNT=2")
    assert following(await tools.complete(1)) == (2, due("2996-12-12 09:00"))
    assert "repeats no more" in await tools.error("update_task", task_id=2, due="next")
    assert following(await tools.complete(2)) is None


@pytest.mark.parametrize(("tool", "arguments"), [("update_task", {"repeat": "none"}), ("delete_task", {})])
async def test_what_ends_a_repeat(tools: Tools, tool: str, arguments: dict[str, Any]) -> None:
    await tools.add("water", **WEEKLY)
    await tools.complete(1)
    await tools.call(tool, task_id=2, **arguments)
    if tool == "update_task":
        assert following(await tools.complete(2)) is None
    assert await tools.ids(status="pending") == []


async def test_reopening_while_the_next_is_open(tools: Tools) -> None:
    await tools.add("water", **WEEKLY)
    for number in (1, 2):
        await tools.complete(number)
    before = await tools.state()
    assert "task 3" in await tools.error("update_task", task_id=1, status="pending")
    assert await tools.state() == before
    await tools.delete(3)
    assert (await tools.update(1, status="pending"))["completed_at"] is None


async def test_only_one_of_a_repeat_is_opened(tools: Tools) -> None:
    await tools.add("water", **WEEKLY)
    for number in (1, 2):
        await tools.complete(number)
    await tools.delete(3)
    before = await tools.state()
    await tools.error("update_task", task_id=1, also=[2], status="pending")
    assert await tools.state() == before
    opened = (tools.result("update_task", {"task_id": number, "status": "pending"}) for number in (1, 2))
    assert sorted(result["isError"] for result in await asyncio.gather(*opened)) == [False, True]


REJECTED: list[tuple[dict[str, Any], str]] = [
    # what is sent with an addition, or a change of a task that repeats, and what the sentence names
    ({"due": "Thu 2026-11-27"}, "not a Thursday"),
    ({"due": "x" * 301}, "due"),
    ({"due": "\0"}, "due"),
    ({"due": "none"}, "repeat"),
    ({"repeat": "FREQ=HOURLY"}, "repeat"),
    ({"repeat": "=" * 301}, "repeat"),
]


async def test_rejected_dates_and_repeats_change_nothing(tools: Tools) -> None:
    await tools.add("water", **WEEKLY)
    before = await tools.state()
    for arguments, named in REJECTED:
        assert named in await tools.error("update_task", task_id=1, title="bread", **arguments), arguments
        assert named in await tools.error("add_task", title="bread", **WEEKLY | arguments), arguments
    assert await tools.state() == before


async def test_a_repeat_needs_a_date(tools: Tools) -> None:
    assert "due date" in await tools.error("add_task", title="water", repeat="FREQ=DAILY")
    assert "repeat" in await tools.error("add_task", title="water", due="next")
    await tools.add("water", due="2996-11-28")
    assert (await tools.update(1, repeat="FREQ=DAILY"))["repeat"] == "FREQ=DAILY"
    ended = await tools.update(1, repeat="none", due="none")
    assert (ended["repeat"], ended["due"]) == (None, None)


async def test_a_day_alone_keeps_the_time_of_the_task(tools: Tools) -> None:
    await tools.add("milk", due="2026-11-27 15:00")
    assert (await tools.update(1, due="2026-11-30"))["due"] == due("2026-11-30 15:00")


async def test_zone_of_a_call_else_of_the_profile(tools: Tools, new_tools: NewTools, stored: Stored) -> None:
    """The zone of a call is not stored."""
    kiritimati, instant = {"todo/time_zone": "Pacific/Kiritimati"}, "2026-11-27T12:00:00Z"
    assert (await tools.add("milk", due=instant))["due"] == due("2026-11-27 13:00")
    assert (await tools.add("bread", due=instant, meta=kiritimati))["due"] == due("2026-11-28 02:00")
    unknown = [{}, {"todo/time_zone": "Mars/Olympus"}, {"todo/time_zone": "../../etc/passwd"}]
    for zone, when in (("Europe/Berlin", "2026-11-27 13:00"), ("Asia/Tokyo", "2026-11-27 21:00")):
        for meta in unknown:
            assert (await tools.call("list_tasks", meta=meta))["time_zone"] == zone
            assert (await tools.add("eggs", due=instant, meta=meta))["due"] == due(when)
        stored.set_time_zone(tools.user, "Asia/Tokyo")
    assert (await new_tools().call("list_tasks"))["time_zone"] == "Europe/Berlin"


async def test_today_is_the_users_own(tools: Tools) -> None:
    """It is still Saturday in Midway; a task that is two days late there is due next after that day."""
    midway = {"todo/time_zone": "Pacific/Midway"}
    assert "2026-11-21" in (await tools.call("list_tasks", meta=midway))["now"]
    assert (await tools.add("milk", due="today", meta=midway))["due"] == due("2026-11-21")
    await tools.add("water", due="2026-11-19", repeat="FREQ=DAILY")
    assert following(await tools.complete(2, meta=midway)) == (3, due("2026-11-22"))
    await tools.add("change the filter", due="2026-08-31", repeat="FREQ=MONTHLY;INTERVAL=3;FROM=DONE")
    assert following(await tools.complete(4, meta=midway)) == (5, due("2027-02-21"))


async def test_priority(tools: Tools) -> None:
    assert (await tools.add("milk", priority="high"))["priority"] == "high"
    for wanted, shown in (("low", "low"), (None, "low"), ("", "low"), ("none", None), ("medium", "medium")):
        assert (await tools.update(1, title="milk", priority=wanted))["priority"] == shown


LABELS: list[tuple[dict[str, Any], list[str]]] = [
    # one after the other
    ({"add_labels": ["Home", "work"], "remove_labels": ["CAFÉ", "no such"]}, ["deep work", "home", "work"]),
    ({"labels": ["x"], "add_labels": ["y"]}, ["x", "y"]),
    ({"labels": '["z"]'}, ["z"]),
    ({"remove_labels": ["z"]}, []),
    ({"add_labels": ["a", "b"]}, ["a", "b"]),
    ({"labels": [], "title": "x"}, ["a", "b"]),
    ({"remove_labels": ["*"], "add_labels": ["c"]}, ["c"]),
    ({"remove_labels": ["*"]}, []),
    ({"labels": ["#" + "x" * 40]}, ["x" * 40]),
]


async def test_labels(tools: Tools) -> None:
    spelled = ["#Work", "@work", " WORK ", "wo\u200brk", "# work", "cafe\u0301", "deep   work"]
    assert (await tools.add("milk", labels=spelled))["labels"] == ["café", "deep work", "work"]
    for change, labels in LABELS:
        assert (await tools.update(1, **change))["labels"] == labels
