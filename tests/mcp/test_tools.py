"""Each tool as its caller sees it; what other users have first."""

import json
from typing import Any

import pytest

from tests.mcp.calls import FULL, Tools
from tests.mcp.conftest import NewTools
from tests.mcp.wire import LEGACY, MODERN, call, send
from tests.mcp.wire import result as result_of
from tests.support.stored import Stored

CHANGES: list[tuple[str, dict[str, Any]]] = [
    ("complete_task", {}),
    ("update_task", {"title": "mine now"}),
    ("update_task", {"undo": True}),
    ("delete_task", {}),
]
EMPTY = {
    **dict.fromkeys([*FULL, "completed_at", "series", "next", "deleted", "deleted_at"]),
    **{name: [] for name in ("labels", "also", "not_found")},
}


@pytest.fixture(params=[MODERN, LEGACY])
def tools(request: pytest.FixtureRequest, new_tools: NewTools) -> Tools:
    """In both protocols; other files show the newer one only."""
    return new_tools(version=request.param)


@pytest.mark.parametrize(("tool", "arguments"), CHANGES)
async def test_a_task_of_another_user_is_missing(
    tools: Tools, new_tools: NewTools, tool: str, arguments: dict[str, Any]
) -> None:
    await tools.add("milk", also=["bread"])
    other = new_tools(version=tools.version)
    await other.add("his")
    before, others = await tools.state(), await other.state()
    rejected = {number: await other.error(tool, task_id=number, **arguments) for number in (2, 3)}
    assert rejected[2].replace("2", "N", 1) == rejected[3].replace("3", "N", 1)
    assert (await tools.state(), await other.state()) == (before, others)


async def test_users_have_lists_of_their_own(tools: Tools, new_tools: NewTools) -> None:
    other = new_tools()
    for one in (tools, other):
        await one.add("milk")
        await one.add(one.user)
    assert await tools.titles() == ["milk", tools.user]
    assert await other.titles() == ["milk", other.user]
    await other.delete(2)
    assert await tools.titles(status="deleted") == []


async def test_an_addition_replaces_no_task(tools: Tools, stored: Stored) -> None:
    """The row that counts the ids is missing, as in a database of which only a part was restored."""
    stored.add_daily_tasks(tools.user, 2)
    assert (await tools.add("milk"))["id"] == 3
    assert await tools.titles() == ["task 1", "task 2", "milk"]


async def test_the_life_of_a_task(tools: Tools) -> None:
    added = await tools.add("call mum", description="about sunday")
    assert added == EMPTY | {
        "user_id": tools.user,
        "id": 1,
        "title": "call mum",
        "description": "about sunday",
        "status": "pending",
        "created_at": added["created_at"],
        "updated_at": added["created_at"],
    }
    renamed = await tools.update(1, title="call mum at six")
    assert renamed == added | {"title": "call mum at six", "updated_at": renamed["updated_at"]}
    completed = await tools.complete(1)
    moment = completed["updated_at"]
    assert completed == renamed | {"status": "completed", "updated_at": moment, "completed_at": moment}
    assert added["updated_at"] < renamed["updated_at"] < moment
    assert (await tools.update(1, title="call dad"))["completed_at"] == moment
    assert (await tools.update(1, title="call mum at six", status="pending"))["completed_at"] is None
    deleted = await tools.delete(1)
    assert (deleted["id"], deleted["title"], deleted["deleted"]) == (1, "call mum at six", True)
    assert deleted["task"]["description"] == "about sunday"
    assert await tools.tasks() == []
    assert (await tools.add("next"))["id"] == 2, "the number of a deleted task is not given again"


async def test_each_task_of_a_result_has_its_user(tools: Tools) -> None:
    """Also the next one of a repeat, and those that are deleted. The text for a model does not have it."""
    await tools.add("water plants", also=["stretch", "read"], due="tomorrow", repeat="FREQ=DAILY")
    results = [
        await tools.complete(1, 2),
        await tools.delete(3, 4),
        await tools.undo(3),
        await tools.update(3, title="write"),
    ]
    results += [await tools.call("list_tasks", status=status) for status in ("all", "deleted")]
    for result in results:
        tasks = find_tasks(result)
        assert tasks
        assert {task["user_id"] for task in tasks} == {tools.user}
    assert tools.user not in json.dumps(await tools.text("list_tasks"))
    without_token = await send(tools.http, call("add_task", {"title": "milk"}, version=tools.version))
    assert result_of(without_token)["user_id"] == "local"


def find_tasks(result: Any) -> list[dict[str, Any]]:
    """Every object within a result that has all fields of a task."""
    if isinstance(result, list):
        return [task for part in result for task in find_tasks(part)]
    if not isinstance(result, dict):
        return []
    within = [task for value in result.values() for task in find_tasks(value)]
    return [*within, result] if "created_at" in result else within


async def test_completing_again_changes_nothing(tools: Tools) -> None:
    await tools.add("milk")
    completed = await tools.complete(1)
    assert await tools.complete(1) == completed


async def test_description(tools: Tools) -> None:
    await tools.add("milk", description="two\tlitres\nor three")
    assert (await tools.update(1, description="", title="oat"))["description"] == "two\tlitres\nor three"
    assert (await tools.update(1, description="none"))["description"] == ""


async def test_list_by_status(tools: Tools) -> None:
    await tools.add("milk", also=["bread", "eggs", "tea"])
    await tools.complete(2)
    await tools.delete(4)
    expected = {"pending": ["milk", "eggs"], "completed": ["bread"], "deleted": ["tea"]}
    expected |= {status: ["milk", "bread", "eggs"] for status in ("all", "")}
    assert {status: await tools.titles(status=status) for status in expected} == expected


async def test_the_text_for_a_model_has_only_what_is_there(tools: Tools) -> None:
    full = {"title": "crème brûlée", "due": "2026-11-27 15:00", "priority": "low", "labels": ["sweet"]}
    task = await tools.text("add_task", **full, repeat="FREQ=WEEKLY")
    assert task == {
        **{"id": 1, "title": "crème brûlée", "status": "pending", "due": "Fri 2026-11-27 15:00"},
        **{"priority": "low", "labels": ["sweet"], "repeat": "FREQ=WEEKLY;BYDAY=FR"},
    }
    listed = await tools.text("list_tasks")
    assert (listed["tasks"], listed["total"], listed["next_cursor"]) == ([task], 1, None)
    assert listed["now"].startswith("Sun 2026-11-22")
    assert FULL.keys() <= (await tools.text("add_task", **FULL)).keys()
    assert await tools.text("delete_task", task_id=1) == {"id": 1, "title": "crème brûlée", "deleted": True}
