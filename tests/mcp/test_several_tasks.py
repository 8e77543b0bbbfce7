"""Several tasks in one call: all that are there, in one transaction."""

from typing import Any

import pytest

from tests.mcp.calls import KEY, Tools, due, ids_and_titles
from tests.mcp.conftest import NewTools

CHANGES: list[tuple[str, dict[str, Any]]] = [
    ("complete_task", {}),
    ("update_task", {"priority": "high"}),
    ("delete_task", {}),
]


async def test_titles_are_numbered_in_their_order(tools: Tools) -> None:
    await tools.add("before")
    details: dict[str, Any] = {"description": "d", "due": "2026-11-27", "priority": "low", "labels": ["shopping"]}
    added = await tools.add("milk", also=["eggs", "bread", "eggs"], **details)
    assert ids_and_titles(added) == [(2, "milk"), (3, "eggs"), (4, "bread"), (5, "eggs")]
    shared = ("description", "due", "priority", "labels", "created_at")
    assert all(task[name] == added[name] for task in added["also"] for name in shared)


async def test_each_repeats_by_itself(tools: Tools) -> None:
    await tools.add("water", also=["feed"], due="2996-11-28", repeat="FREQ=DAILY")
    completed = await tools.complete(2, 1)
    assert [task["next"]["due"] for task in (completed, *completed["also"])] == [due("2996-11-29")] * 2
    following = [(task["next"]["id"], task["title"]) for task in (completed, *completed["also"])]
    pending = await tools.tasks(status="pending")
    assert sorted(following) == [(task["id"], task["title"]) for task in pending]
    assert {task["title"]: task["series"] for task in await tools.tasks()} == {"water": 1, "feed": 2}


@pytest.mark.parametrize(("tool", "arguments"), CHANGES)
async def test_missing_ones_are_named_and_the_others_changed(
    tools: Tools, new_tools: NewTools, tool: str, arguments: dict[str, Any]
) -> None:
    await tools.add("a", also=["b", "c"])
    other = new_tools()
    await other.add("his", also=["1", "2", "3"])
    others = await other.state()
    changed = await tools.call(tool, task_id=9, also=[3, 1, 4, 3, 9], **arguments)
    assert ids_and_titles(changed) == [(3, "c"), (1, "a")]
    assert changed["not_found"] == [9, 4]
    before = await tools.state()
    assert "no task 7" in await tools.error(tool, task_id=7, also=[8, 9], **arguments)
    assert (await tools.state(), await other.state()) == (before, others)


async def test_the_most_of_a_call(tools: Tools) -> None:
    added = await tools.add("0", also=[f"{n}" for n in range(1, 51)])
    await tools.add("51", also=[f"{n}" for n in range(52, 100)])
    assert ids_and_titles(added) == [(n + 1, f"{n}") for n in range(51)]
    done = await tools.complete(1, *range(2, 101))
    assert [task["id"] for task in done["also"]] == [*range(2, 101)]
    assert len(await tools.tasks(status="completed")) == 100
    gone = await tools.delete(100, *range(1, 100))
    assert len(gone["also"]) == 99
    assert await tools.tasks() == []


@pytest.mark.parametrize(
    "arguments", [{"due": "none"}, {"due": "next"}, {"add_labels": ["eleventh"]}, {"repeat": "FREQ=DAILY"}]
)
async def test_a_call_that_fails_at_its_last_task_changes_none(tools: Tools, arguments: dict[str, Any]) -> None:
    plain: dict[str, Any] = {} if "repeat" in arguments else {"due": "2996-11-28"}
    repeating: dict[str, Any] = {"due": "2996-11-28", "repeat": "FREQ=DAILY"}
    first, last = (plain, repeating) if arguments.get("due") == "none" else (repeating, {})
    await tools.add("first", **first)
    await tools.add("last", labels=[f"{n}" for n in range(10)], **last)
    before = await tools.state()
    await tools.error("update_task", task_id=1, also=[2], **arguments, meta=KEY)
    assert await tools.state() == before


async def test_a_title_for_the_same_task_twice(tools: Tools) -> None:
    await tools.add("a")
    assert ids_and_titles(await tools.update(1, 1, title="c")) == [(1, "c")]
