"""When tasks remind: the argument `remind` of the tools that add and change tasks."""

from typing import Any

import pytest

from tests.mcp.calls import Tools

TIMED: dict[str, Any] = {"due": "Fri 2996-11-25 15:00"}
NEEDS_TIME = "this task has none. Give a due time"


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        (10, 10),
        ("10", 10),
        (0, 0),
        (40_320, 40_320),
        ("none", "none"),
        *((each, None) for each in ("default", "", None)),
    ],
)
async def test_added_reminder(tools: Tools, given: object, shown: object) -> None:
    assert (await tools.add("dentist", **TIMED, remind=given))["remind"] == shown
    [task] = await tools.tasks()
    assert task["remind"] == shown
    [read] = (await tools.text("list_tasks"))["tasks"]
    assert read.get("remind") == shown


@pytest.mark.parametrize("given", [-1, 40_321, "10 minutes", "never", 1.5, True])
async def test_reminder_that_cannot_be_read(tools: Tools, given: object) -> None:
    sentence = await tools.error("add_task", title="dentist", **TIMED, remind=given)
    assert "remind must be whole minutes from 0 to 40,320, or none or default" in sentence
    assert await tools.tasks() == []


async def test_changed_reminder(tools: Tools) -> None:
    await tools.add("dentist", also=["gym"], **TIMED)
    both = await tools.update(1, 2, remind=30)
    assert [task["remind"] for task in (both, *both["also"])] == [30, 30]
    assert (await tools.update(1, title="tooth"))["remind"] == 30
    assert (await tools.update(1, remind="none"))["remind"] == "none"
    assert (await tools.update(1, remind="default"))["remind"] is None


@pytest.mark.parametrize("fields", [{}, {"due": "Fri 2996-11-25"}])
async def test_reminder_without_a_time(tools: Tools, fields: dict[str, Any]) -> None:
    assert NEEDS_TIME in await tools.error("add_task", title="rent", **fields, remind=10)
    await tools.add("rent", **fields)
    before = await tools.state()
    assert NEEDS_TIME in await tools.error("update_task", task_id=1, remind=0)
    assert await tools.state() == before
    assert (await tools.update(1, remind="none"))["remind"] == "none"
    assert (await tools.update(1, due="Fri 2996-11-25 15:00", remind=10))["remind"] == 10


async def test_reminder_goes_with_the_time(tools: Tools) -> None:
    await tools.add("dentist", also=["gym"], **TIMED, remind=10)
    assert (await tools.update(1, due="+1w"))["remind"] == 10
    assert (await tools.update(1, due="Fri 2996-11-25 all day"))["remind"] is None
    assert (await tools.update(2, due="none"))["remind"] is None
    assert NEEDS_TIME in await tools.error("update_task", task_id=1, due="tomorrow", remind=10)


async def test_overdue_tasks_that_lose_their_time_are_moved(tools: Tools) -> None:
    await tools.add("dentist", due="2026-11-20 09:00", remind=10)
    moved = await tools.call("update_task", task_id=1, meta={"todo/overdue_part": "0", "todo/batch": "moved"})
    assert (moved["due"]["time"], moved["remind"]) == (None, None)


async def test_undo_restores_a_reminder(tools: Tools) -> None:
    await tools.add("dentist", **TIMED, remind=10)
    await tools.update(1, remind="none")
    await tools.update(1, due="none")
    assert (await tools.undo(1))["remind"] == "none"
    assert (await tools.undo(1))["remind"] == 10
    await tools.delete(1)
    assert (await tools.undo(1))["remind"] == 10


async def test_next_of_a_repeat_reminds_as_well(tools: Tools) -> None:
    await tools.add("pills", **TIMED, repeat="FREQ=DAILY", remind=5)
    assert (await tools.complete(1))["next"]["task"]["remind"] == 5
