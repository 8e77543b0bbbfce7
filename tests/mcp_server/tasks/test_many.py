"""Several tasks in one call: all that are there, in one transaction."""

from typing import Any

import pytest

from tests.mcp_server.calls import Tools
from tests.mcp_server.conftest import Limited, Rows

KEY = {"todo/idempotency_key": "key-1"}
FULL = "There are 3 tasks, which is the most: delete some with delete_task before you add another."
BUSY = "The list was changed 4 times in a day, which is the most, so nothing was changed: go on later."


def told(result: dict[str, Any]) -> list[tuple[int, str]]:
    return [(task["id"], task["title"]) for task in (result, *result["also"])]


async def test_titles_are_numbered_in_their_order(tools: Tools, rows: Rows) -> None:
    await tools.call("add_task", title="before")
    details: dict[str, Any] = {"description": "d", "due": "2026-11-27", "priority": "low", "labels": ["shopping"]}
    added = await tools.call("add_task", title="milk", also=["eggs", "bread", "eggs"], **details)
    assert told(added) == [(2, "milk"), (3, "eggs"), (4, "bread"), (5, "eggs")]
    shared = ("description", "due", "priority", "labels", "created_at")
    assert all(task[name] == added[name] for task in added["also"] for name in shared)
    assert len(rows("SELECT 1 FROM task_calls")) == 2
    assert [change["task_id"] for change in rows.changes()] == [1, 2, 3, 4, 5]


async def test_tasks_of_one_call_repeat_each_for_itself(tools: Tools, rows: Rows) -> None:
    await tools.call("add_task", title="water", also=["feed"], due="2996-11-28", repeat="FREQ=DAILY")
    completed = await tools.call("complete_task", task_id=2, also=[1])
    assert [task["next"]["due"] for task in (completed, *completed["also"])] == ["Tue 2996-11-29"] * 2
    assert {task["title"]: task["series"] for task in rows.tasks()} == {"water": 1, "feed": 2}
    following = {task["next"]["id"]: task["title"] for task in (completed, *completed["also"])}
    assert {task["id"]: task["title"] for task in rows.tasks() if task["status"] == "pending"} == following


CHANGES: list[tuple[str, dict[str, Any]]] = [
    ("complete_task", {}),
    ("update_task", {"priority": "high"}),
    ("delete_task", {}),
]


@pytest.mark.parametrize(("tool", "arguments"), CHANGES)
async def test_what_is_not_there_is_named_and_the_rest_is_done(
    tools: Tools, rows: Rows, tool: str, arguments: dict[str, Any]
) -> None:
    await tools.call("add_task", title="a", also=["b", "c"])
    await tools.call("add_task", user_id="bob", title="his", also=["1", "2", "3"])
    bobs = [task for task in rows.tasks() if task["user_id"] == "bob"]
    changed = await tools.call(tool, task_id=9, also=[3, 1, 4, 3, 9], **arguments, meta=KEY)
    assert told(changed) == [(3, "c"), (1, "a")]
    assert changed["not_found"] == [9, 4]
    assert [task for task in rows.tasks() if task["user_id"] == "bob"] == bobs
    before = rows.tasks(), rows.changes()
    assert await tools.call(tool, task_id=9, also=[3, 1, 4, 3, 9], **arguments, meta=KEY) == changed
    assert "belongs to an earlier call" in await tools.refusal(tool, task_id=9, also=[3, 1], **arguments, meta=KEY)
    assert (rows.tasks(), rows.changes()) == before
    assert [task["title"] for task in rows.tasks() if task["user_id"] == "local" and task["id"] == 2] == ["b"]


@pytest.mark.parametrize(("tool", "arguments"), CHANGES)
async def test_none_of_them_is_there(tools: Tools, rows: Rows, tool: str, arguments: dict[str, Any]) -> None:
    await tools.call("add_task", user_id="bob", title="his", also=["too"])
    before = rows.tasks(), rows.changes()
    assert await tools.refusal(tool, task_id=1, also=[2, 3], **arguments) == (
        "There is no task 1: call list_tasks to see the numbers of your tasks."
    )
    assert (rows.tasks(), rows.changes()) == before


async def test_the_most_of_a_call(tools: Tools, rows: Rows) -> None:
    added = await tools.call("add_task", title="0", also=[f"{n}" for n in range(1, 51)])
    await tools.call("add_task", title="51", also=[f"{n}" for n in range(52, 100)])
    assert told(added) == [(n + 1, f"{n}") for n in range(51)]
    done = await tools.call("complete_task", task_id=1, also=list(range(2, 101)))
    assert [task["id"] for task in done["also"]] == list(range(2, 101))
    assert {task["status"] for task in rows.tasks()} == {"completed"}
    gone = await tools.call("delete_task", task_id=100, also=list(range(1, 100)))
    assert len(gone["also"]) == 99
    assert rows.tasks() == []


TITLES = "also must be a list of at most 50 titles, each of 1 to 200 characters on one line."
IDS = "also must be a list of at most 99 whole numbers of tasks, as list_tasks shows them."


@pytest.mark.parametrize(
    "also",
    [
        ["x"] * 51,
        ["a\nb"],
        ["x" * 201],
        [""],
        [5],
        "milk, eggs",
        {"a": 1},
        [["a"]],
        "[" * 100_000,
        "[1" + "0" * 5000 + "]",
    ],
)
async def test_titles_that_are_none(tools: Tools, rows: Rows, also: Any) -> None:
    assert await tools.refusal("add_task", title="milk", also=also) == TITLES
    assert rows.tasks() == []


@pytest.mark.parametrize(
    "also",
    [
        list(range(1, 101)),
        [True],
        [1, False],
        [0],
        [-1],
        [1.5],
        ["one"],
        [2**63],
        "[true]",
        "2,3",
        2,
        [None],
        [[1]],
        "[NaN]",
        "[1e400]",
    ],
)
@pytest.mark.parametrize(("tool", "arguments"), CHANGES)
async def test_ids_that_are_none(tools: Tools, rows: Rows, tool: str, arguments: dict[str, Any], also: Any) -> None:
    await tools.call("add_task", title="milk", also=["eggs"])
    before = rows.tasks(), rows.changes()
    assert await tools.refusal(tool, task_id=2, also=also, **arguments) == IDS
    assert (rows.tasks(), rows.changes()) == before


@pytest.mark.parametrize("also", ["[2, 3]", " [2,3]", ["2", "3"], [2.0, 3]])
async def test_ids_as_models_spell_them(tools: Tools, also: Any) -> None:
    await tools.call("add_task", title="a", also='["b", "c"]')
    assert told(await tools.call("complete_task", task_id="1", also=also)) == [(1, "a"), (2, "b"), (3, "c")]


@pytest.mark.parametrize("also", [None, "", "null", [], "[]"])
async def test_no_others(tools: Tools, also: Any) -> None:
    assert told(await tools.call("add_task", title="a", also=also)) == [(1, "a")]
    assert (await tools.call("complete_task", task_id=1, also=also))["also"] == []


async def test_a_title_is_one_task_s_own(tools: Tools, rows: Rows) -> None:
    await tools.call("add_task", title="a", also=["b"])
    assert await tools.refusal("update_task", task_id=1, also=[2], title="c") == (
        "title is one task's own: leave it or also out, and give each task its title in a call of its own."
    )
    assert told(await tools.call("update_task", task_id=1, also=[1], title="c")) == [(1, "c")]


async def test_titles_sent_again_are_answered_from_the_log(tools: Tools, rows: Rows) -> None:
    added = await tools.call("add_task", title="a", also=["b", "c"], meta=KEY)
    await tools.call("delete_task", task_id=2)
    before = rows.tasks(), rows.changes()
    assert await tools.call("add_task", title="a", also=["b", "c"], meta=KEY) == added
    assert "belongs to an earlier call" in await tools.refusal("add_task", title="a", also=["c", "b"], meta=KEY)
    assert (rows.tasks(), rows.changes()) == before


@pytest.mark.parametrize(
    "arguments", [{"due": "none"}, {"due": "next"}, {"add_labels": ["eleventh"]}, {"repeat": "FREQ=DAILY"}]
)
async def test_a_call_that_fails_at_its_last_task_changes_none(
    tools: Tools, rows: Rows, arguments: dict[str, Any]
) -> None:
    plain: dict[str, Any] = {} if "repeat" in arguments else {"due": "2996-11-28"}
    repeating: dict[str, Any] = {"due": "2996-11-28", "repeat": "FREQ=DAILY"}
    first, last = (plain, repeating) if arguments.get("due") == "none" else (repeating, {})
    await tools.call("add_task", title="first", **first)
    await tools.call("add_task", title="last", labels=[f"{n}" for n in range(10)], **last)
    before = rows.tasks(), rows.changes()
    refused = await tools.refusal("update_task", task_id=1, also=[2], **arguments, meta=KEY)
    assert "internal error" not in refused
    assert (rows.tasks(), rows.changes(), rows("SELECT 1 FROM task_calls")) == (*before, [{"?column?": 1}] * 2)


async def test_so_many_tasks_and_no_more(limited: Limited, rows: Rows) -> None:
    async with limited(limit_tasks=3) as tools:
        await tools.call("add_task", title="a", also=["b"])
        assert await tools.refusal("add_task", title="c", also=["d"]) == FULL
        await tools.call("add_task", title="c", due="2996-11-28", repeat="FREQ=DAILY")
        assert len(rows.tasks()) == 3


async def test_nor_by_completing_or_by_undoing(limited: Limited, rows: Rows) -> None:
    async with limited(limit_tasks=3) as tools:
        await tools.call("add_task", title="a", also=["b"])
        await tools.call("add_task", title="water", due="2996-11-28", repeat="FREQ=DAILY")
        assert await tools.refusal("complete_task", task_id=3) == FULL
        await tools.call("delete_task", task_id=1, also=[2])
        await tools.call("complete_task", task_id=3)
        await tools.call("add_task", title="c")
        before = rows.tasks(), rows.changes()
        assert await tools.refusal("update_task", task_id=1, also=[2], undo=True) == FULL
        assert (rows.tasks(), rows.changes()) == before
        await tools.call("delete_task", task_id=5)
        await tools.call("update_task", task_id=1, undo=True)


async def test_so_many_changes_in_a_day_and_no_more(limited: Limited, rows: Rows) -> None:
    async with limited(limit_changes_per_day=4) as tools:
        await tools.call("add_task", title="a", also=["b", "c"])
        before = rows.tasks(), rows.changes()
        assert await tools.refusal("add_task", title="d", also=["e"]) == BUSY
        assert await tools.refusal("complete_task", task_id=1, also=[2]) == BUSY
        assert await tools.refusal("add_task", title="d", also=["x"] * 50) == BUSY
        assert (rows.tasks(), rows.changes()) == before
        await tools.call("complete_task", task_id=1)
        assert await tools.refusal("update_task", task_id=1, undo=True) == BUSY
