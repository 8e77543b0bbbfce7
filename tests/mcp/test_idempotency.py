"""Calls that are sent again with their idempotency key, and calls at the same time."""

import asyncio
from typing import Any

import pytest

from tests.mcp.calls import KEY, Tools
from tests.mcp.conftest import NewTools
from tests.support.stored import Stored

DAILY: dict[str, Any] = {"title": "water", "due": "2996-11-28 09:00", "repeat": "FREQ=DAILY"}
CALLS: list[tuple[str, dict[str, Any]]] = [
    ("add_task", {"title": "bread", "description": "rye"}),
    ("add_task", {"title": "a", "also": ["b", "c"]}),
    ("complete_task", {"task_id": 1}),
    ("complete_task", {"task_id": 9, "also": [1, 2, 1]}),
    ("update_task", {"task_id": 1, "title": "oat milk"}),
    ("update_task", {"task_id": 1, "undo": True}),
    ("delete_task", {"task_id": 1}),
]
OTHER: dict[str, Any] = {"title": "other", "also": []}


@pytest.fixture
async def tools(tools: Tools) -> Tools:
    """With a task that repeats and was changed."""
    await tools.add(**DAILY)
    await tools.update(1, priority="high")
    return tools


@pytest.mark.parametrize(("tool", "arguments"), CALLS)
async def test_a_call_sent_again_is_answered_and_not_done_again(
    tools: Tools, tool: str, arguments: dict[str, Any]
) -> None:
    first = await tools.call(tool, **arguments, meta=KEY)
    before = await tools.state()
    for _ in range(3):
        assert await tools.call(tool, **arguments, meta=KEY) == first
    assert await tools.state() == before
    await tools.add("more")
    await tools.delete((await tools.ids())[0])
    before = await tools.state()
    assert await tools.call(tool, **arguments, meta=KEY) == first, "whatever happened since"
    assert await tools.state() == before


@pytest.mark.parametrize(("tool", "arguments"), CALLS)
async def test_a_key_with_other_arguments_is_rejected(tools: Tools, tool: str, arguments: dict[str, Any]) -> None:
    await tools.call("add_task", **OTHER, meta=KEY)
    before = await tools.state()
    assert "key" in await tools.error(tool, **arguments, meta=KEY)
    assert await tools.state() == before


async def test_the_order_of_several_is_part_of_a_call(tools: Tools) -> None:
    await tools.add("a", also=["b", "c"], meta=KEY)
    assert "key" in await tools.error("add_task", title="a", also=["c", "b"], meta=KEY)


@pytest.mark.parametrize(("tool", "arguments"), CALLS)
async def test_a_failed_call_claims_no_key(tools: Tools, tool: str, arguments: dict[str, Any]) -> None:
    wrong = {"title": ""} if tool == "add_task" else {"task_id": 99, "also": []}
    await tools.error(tool, **arguments | wrong, meta=KEY)
    await tools.call(tool, **arguments, meta=KEY)


@pytest.mark.parametrize(("tool", "arguments"), CALLS)
async def test_twenty_at_once_act_once(tools: Tools, stored: Stored, tool: str, arguments: dict[str, Any]) -> None:
    calls = len(stored.task_calls(tools.user))
    answers = await asyncio.gather(*(tools.call(tool, **arguments, meta=KEY) for _ in range(20)))
    assert all(answer == answers[0] for answer in answers)
    assert len(stored.task_calls(tools.user)) == calls + 1


async def test_a_key_belongs_to_its_user(tools: Tools, new_tools: NewTools) -> None:
    other = new_tools()
    assert (await tools.add("hers", meta=KEY))["title"] == "hers"
    assert (await other.add("his", meta=KEY))["title"] == "his"


async def test_a_list_may_have_a_key(tools: Tools) -> None:
    await tools.call("list_tasks", meta=KEY)
    assert len((await tools.call("list_tasks", meta=KEY))["tasks"]) == 1


async def test_changes_of_one_task_at_once_follow_each_other(tools: Tools) -> None:
    await tools.add("0")
    await asyncio.gather(*(tools.update(2, title=f"{n}") for n in range(1, 21)))
    titles = [(await tools.titles())[1], *[(await tools.undo(2))["title"] for _ in range(20)]]
    assert titles[-1] == "0"
    assert sorted(titles, key=int) == [f"{n}" for n in range(21)]


async def test_numbers_of_tasks_added_at_once(tools: Tools, new_tools: NewTools) -> None:
    other = new_tools()
    added = await asyncio.gather(*(one.add("milk") for _ in range(10) for one in (tools, other)))
    assert sorted(task["id"] for task in added) == sorted([*range(2, 12), *range(1, 11)])
    await tools.delete(11)
    assert (await tools.add("milk", meta=KEY))["id"] == 12, "the number of a deleted task is not given again"
    assert (await tools.add("milk", meta=KEY))["id"] == 12
    assert (await tools.add("milk"))["id"] == 13, "a call sent again takes no number"
