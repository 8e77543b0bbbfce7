"""Tasks that repeat: what completing leaves behind, and what ends it. tests/unit/test_repeats.py has the rules."""

import asyncio
from typing import Any

import pytest

from tests.mcp.calls import KEY, Tools

WEEKLY: dict[str, Any] = {"due": "Mon 2996-11-28 09:00", "repeat": "FREQ=WEEKLY;BYDAY=MO"}
TIMES = ("created_at", "updated_at", "completed_at")
EVERY_DAY_OF_EVERY_WEEK = ",".join(
    f"{nth}{day}" for nth in ("", *range(1, 6), -1) for day in ("MO", "TU", "WE", "TH", "FR", "SA", "SU")
)


def following(completed: dict[str, Any]) -> tuple[int, str] | None:
    """The number of the next task, and when it is due."""
    return (completed["next"]["id"], completed["next"]["due"]) if completed["next"] else None


async def test_completing_leaves_the_next_with_the_same_details(tools: Tools) -> None:
    details = {"title": "water", "description": "all", "priority": "high", "labels": ["plants"]}
    added = await tools.add(**details, **WEEKLY)
    completed = await tools.complete(1)
    assert (completed["status"], following(completed)) == ("completed", (2, "Mon 2996-12-05 09:00"))
    first, second = await tools.tasks()
    assert completed["next"]["task"] == {
        name: value for name, value in second.items() if not name.startswith("deleted")
    }
    expected = added | {"id": 2, "due": "Mon 2996-12-05 09:00"}
    assert all(second[name] == expected[name] for name in second if name not in TIMES)
    assert second["created_at"] == first["completed_at"]
    assert first["series"] == second["series"] == 1


async def test_completing_again_leaves_no_other(tools: Tools) -> None:
    await tools.add("water", **WEEKLY)
    await tools.complete(1)
    again = await tools.complete(1, 2)
    assert (following(again), following(again["also"][0])) == (None, (3, "Mon 2996-12-12 09:00"))


async def test_fifty_completions_at_once_leave_one(tools: Tools) -> None:
    await tools.add("water", **WEEKLY)
    answers = await asyncio.gather(*(tools.complete(1) for _ in range(50)))
    assert [following(answer) for answer in answers if answer["next"]] == [(2, "Mon 2996-12-05 09:00")]
    assert await tools.ids() == [1, 2]


async def test_the_next_is_not_one_of_the_ids_of_the_call(tools: Tools) -> None:
    """A call may name a number that nobody has yet, and the next task gets it."""
    await tools.add("water", **WEEKLY)
    for _ in range(2):
        completed = await tools.complete(1, 2, meta=KEY)
        assert (following(completed)) == (2, "Mon 2996-12-05 09:00")
        assert (completed["also"], completed["not_found"]) == ([], [2])
    assert [task["status"] for task in await tools.tasks()] == ["completed", "pending"]


async def test_completing_by_an_update(tools: Tools) -> None:
    await tools.add("water", **WEEKLY)
    completed = await tools.update(1, title="watered", status="completed")
    assert following(completed) == (2, "Mon 2996-12-05 09:00")
    assert await tools.titles(status="pending") == ["watered"]


async def test_moving_one_keeps_the_rule(tools: Tools) -> None:
    await tools.add("water", **WEEKLY)
    moved = await tools.update(1, due="+2d")
    assert (moved["due"], moved["repeat"]) == ("Wed 2996-11-30 09:00", "FREQ=WEEKLY;BYDAY=MO")
    assert following(await tools.complete(1)) == (2, "Mon 2996-12-05 09:00")


async def test_next_skips_one(tools: Tools) -> None:
    await tools.add("water", due=WEEKLY["due"], repeat="FREQ=WEEKLY;BYDAY=MO;COUNT=3")
    skipped = await tools.update(1, due="next")
    assert (skipped["due"], skipped["repeat"]) == ("Mon 2996-12-05 09:00", "FREQ=WEEKLY;BYDAY=MO;COUNT=2")
    await tools.update(1, due="next")
    assert "repeats no more" in await tools.error("update_task", task_id=1, due="next")
    assert await tools.ids() == [1]


async def test_a_count_runs_out(tools: Tools) -> None:
    await tools.add("water", due=WEEKLY["due"], repeat="FREQ=DAILY;COUNT=3")
    left = [following(await tools.complete(number)) for number in (1, 2, 3)]
    assert left == [(2, "Tue 2996-11-29 09:00"), (3, "Wed 2996-11-30 09:00"), None]
    assert await tools.ids(status="pending") == []


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


@pytest.mark.parametrize(
    "arguments",
    [
        {"due": "none"},
        {"repeat": "FREQ=HOURLY"},
        {"repeat": "=" * 301},
        {"repeat": f"FREQ=MONTHLY;INTERVAL=999;COUNT=999;BYDAY={EVERY_DAY_OF_EVERY_WEEK}"},
    ],
)
async def test_a_repeat_that_cannot_be_read(tools: Tools, arguments: dict[str, Any]) -> None:
    await tools.add("water", **WEEKLY)
    before = await tools.state()
    assert "repeat" in await tools.error("update_task", task_id=1, **arguments)
    assert "repeat" in await tools.error("add_task", title="gym", **WEEKLY | arguments)
    assert await tools.state() == before


async def test_a_repeat_needs_a_date(tools: Tools) -> None:
    assert "due date" in await tools.error("add_task", title="water", repeat="FREQ=DAILY")
    await tools.add("water", due="2996-11-28")
    assert (await tools.update(1, repeat="FREQ=DAILY"))["repeat"] == "FREQ=DAILY"
    ended = await tools.update(1, repeat="none", due="none")
    assert (ended["repeat"], ended["due"]) == (None, None)


@pytest.mark.parametrize(
    ("due", "repeat", "zone", "expected"),
    [
        ("Mon 2026-10-26 09:00", "FREQ=WEEKLY", "Europe/Berlin", "Mon 2026-11-23 09:00"),
        ("2026-08-31", "FREQ=MONTHLY;INTERVAL=3;FROM=DONE", "Europe/Berlin", "Mon 2027-02-22"),
        ("2026-11-20", "FREQ=DAILY", "Pacific/Apia", "Mon 2026-11-23"),
        ("2026-11-20", "FREQ=DAILY", "Pacific/Midway", "Sun 2026-11-22"),
    ],
)
async def test_the_next_date(tools: Tools, due: str, repeat: str, zone: str, expected: str) -> None:
    """However late one is, the next is after the user's today; other rules are in tests/unit/test_repeats.py."""
    here = {"todo/time_zone": zone}
    await tools.add("water", due=due, repeat=repeat, meta=here)
    assert following(await tools.complete(1, meta=here)) == (2, expected)


async def test_the_next_date_of_a_rule_that_comes_with_the_completion(tools: Tools) -> None:
    await tools.add("water", due="2027-02-28")
    completed = await tools.update(1, repeat="FREQ=MONTHLY;BYMONTHDAY=31", status="completed")
    assert following(completed) == (2, "Wed 2027-03-31")
