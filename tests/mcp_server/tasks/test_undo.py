"""Changes taken back: a task's last one, then the one before it."""

import asyncio
from typing import Any

import psycopg
import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.tool_server.refusals import Refusal
from tests.examples import same_examples
from tests.logins import as_admin
from tests.mcp_server.calls import Tools
from tests.mcp_server.clock import Clocked
from tests.mcp_server.conftest import Rows
from tests.mcp_server.tasks.states import but_updated

NOTHING = "There is no change of task 1 within 30 days that could be taken back."
ALONE = "undo takes back the last change and stands alone: leave out everything but task_id and also."
KEY = {"todo/idempotency_key": "key-1"}
DAILY: dict[str, Any] = {"title": "water", "due": "2996-11-28 09:00", "repeat": "FREQ=DAILY"}
FULL: dict[str, Any] = DAILY | {"description": "all", "priority": "high", "labels": ["plants", "home"]}


async def undo(tools: Tools, task_id: int = 1, **arguments: Any) -> dict[str, Any]:
    return await tools.call("update_task", task_id=task_id, undo=True, **arguments)


CHANGES: list[tuple[str, dict[str, Any]]] = [
    ("complete_task", {}),
    ("delete_task", {}),
    ("update_task", {"title": "plants"}),
    ("update_task", {"description": ""}),
    ("update_task", {"due": "+1w"}),
    ("update_task", {"due": "next"}),
    ("update_task", {"due": "none", "repeat": "none", "priority": "none", "labels": ["x"]}),
    ("update_task", {"repeat": "FREQ=WEEKLY;COUNT=3", "add_labels": ["y"]}),
    ("update_task", {"status": "completed", "title": "done"}),
]


@pytest.mark.parametrize(("tool", "arguments"), CHANGES)
async def test_a_change_is_taken_back(tools: Tools, rows: Rows, tool: str, arguments: dict[str, Any]) -> None:
    await tools.call("add_task", **FULL)
    await tools.call("add_task", user_id="bob", **FULL)
    before = but_updated(rows.tasks())
    await tools.call(tool, task_id=1, **arguments)
    assert but_updated(rows.tasks()) != before
    restored = await undo(tools)
    assert (restored["id"], restored["title"], restored["status"]) == (1, "water", "pending")
    assert (restored["next"], restored["deleted"]) == (None, None)
    assert but_updated(rows.tasks()) == before


async def test_again_and_again(tools: Tools, rows: Rows) -> None:
    await tools.call("add_task", title="milk")
    states = [but_updated(rows.tasks())]
    for tool, arguments in [
        ("update_task", {"title": "oat milk"}),
        ("complete_task", {}),
        ("update_task", {"status": "pending"}),
        ("delete_task", {}),
    ]:
        await tools.call(tool, task_id=1, **arguments)
        states.append(but_updated(rows.tasks()))
    while len(states) > 1:
        states.pop()
        await undo(tools)
        assert but_updated(rows.tasks()) == states[-1]
    assert (await undo(tools))["deleted"] is True
    assert rows.tasks() == []
    assert await tools.refusal("update_task", task_id=1, undo=True) == NOTHING


async def test_what_comes_after_an_undo_is_taken_back_first(tools: Tools) -> None:
    await tools.call("add_task", title="a")
    await tools.call("update_task", task_id=1, title="b")
    await undo(tools)
    await tools.call("update_task", task_id=1, title="c")
    assert (await undo(tools))["title"] == "a"
    assert (await undo(tools))["deleted"] is True


async def test_what_changed_nothing_is_passed_over(tools: Tools) -> None:
    await tools.call("add_task", title="a")
    await tools.call("complete_task", task_id=1)
    await tools.call("complete_task", task_id=1)
    assert (await undo(tools))["status"] == "pending"


async def test_an_undo_that_is_sent_again_goes_no_further_back(tools: Tools, rows: Rows) -> None:
    await tools.call("add_task", title="a")
    for title in ("b", "c"):
        await tools.call("update_task", task_id=1, title=title)
    first = await undo(tools, meta=KEY)
    before = rows.tasks(), rows.changes()
    assert await undo(tools, meta=KEY) == first
    assert "belongs to an earlier call" in await tools.refusal("update_task", task_id=1, title="d", meta=KEY)
    assert (rows.tasks(), rows.changes()) == before


async def test_a_completion_of_a_repeat_takes_the_next_with_it(tools: Tools, rows: Rows) -> None:
    await tools.call("add_task", **FULL)
    states = []
    for number in (1, 2):
        states.append(but_updated(rows.tasks()))
        await tools.call("complete_task", task_id=number)
    for number in (2, 1):
        assert (await undo(tools, number))["status"] == "pending"
        assert but_updated(rows.tasks()) == states.pop()


@pytest.mark.parametrize(
    ("tool", "arguments"), [("complete_task", {}), ("update_task", {"title": "x"}), ("update_task", {"due": "+1d"})]
)
async def test_but_not_one_that_was_changed_since(
    tools: Tools, rows: Rows, tool: str, arguments: dict[str, Any]
) -> None:
    await tools.call("add_task", **DAILY)
    await tools.call("complete_task", task_id=1)
    unchanged = but_updated(rows.tasks())
    await tools.call(tool, task_id=2, **arguments)
    before = rows.tasks(), rows.changes()
    assert await tools.refusal("update_task", task_id=1, undo=True) == (
        "Task 2, which followed when this one was completed, was changed since: undo that first, or delete it."
    )
    assert (rows.tasks(), rows.changes()) == before
    await undo(tools, 2)
    assert but_updated(rows.tasks()) == unchanged
    await undo(tools, 1)
    assert [(task["id"], task["status"]) for task in rows.tasks()] == [(1, "pending")]


async def test_a_next_that_was_deleted_does_not_come_back_beside_the_first(tools: Tools, rows: Rows) -> None:
    await tools.call("add_task", **DAILY)
    await tools.call("complete_task", task_id=1)
    await tools.call("delete_task", task_id=2)
    await undo(tools, 1)
    before = rows.tasks(), rows.changes()
    refused = await tools.refusal("update_task", task_id=2, undo=True)
    assert refused.startswith("Of the tasks of one repeat only one can be open: ")
    assert (rows.tasks(), rows.changes()) == before
    await tools.call("delete_task", task_id=1)
    assert (await undo(tools, 2))["status"] == "pending"


@pytest.mark.parametrize("ids", [(1, 2), (2, 1)])
async def test_a_task_and_its_next_together(tools: Tools, rows: Rows, ids: tuple[int, int]) -> None:
    await tools.call("add_task", **DAILY)
    await tools.call("complete_task", task_id=1)
    undone = await undo(tools, ids[0], also=[ids[1]])
    both = {task["id"]: task for task in (undone, *undone["also"])}
    assert (both[1]["status"], both[1]["deleted"], both[2]["deleted"]) == ("pending", None, True)
    assert [task["id"] for task in rows.tasks()] == [1]
    taken_back = [change["undoes"] for change in rows.changes() if change["undoes"]]
    assert len(taken_back) == len(set(taken_back)) == 2
    assert await tools.refusal("update_task", task_id=2, undo=True) == NOTHING.replace("1", "2", 1)


async def test_several_all_or_none(tools: Tools, rows: Rows) -> None:
    await tools.call("add_task", title="a", also=["b", "c"])
    await tools.call("delete_task", task_id=1, also=[2, 3])
    before = rows.tasks(), rows.changes()
    assert await tools.refusal("update_task", task_id=1, also=[2, 9], undo=True) == NOTHING.replace("1", "9", 1)
    assert (rows.tasks(), rows.changes()) == before
    undone = await undo(tools, 3, also=[1, 2, 1])
    assert [(task["id"], task["title"]) for task in (undone, *undone["also"])] == [(3, "c"), (1, "a"), (2, "b")]
    assert [task["id"] for task in rows.tasks()] == [1, 2, 3]
    gone = await undo(tools, 3, also=[1, 2])
    assert [task["deleted"] for task in (gone, *gone["also"])] == [True] * 3
    assert (rows.tasks(), (await tools.call("add_task", title="d"))["id"]) == ([], 4)


@pytest.mark.parametrize("other", [{"title": "x"}, {"due": "today"}, {"labels": ["x"]}, {"status": "pending"}])
async def test_it_stands_alone(tools: Tools, rows: Rows, other: dict[str, Any]) -> None:
    await tools.call("add_task", title="a")
    assert await tools.refusal("update_task", task_id=1, undo=True, **other) == ALONE
    assert len(rows.changes()) == 1


@pytest.mark.parametrize("no", [False, None, "", "false", "null"])
async def test_no_undo_is_an_update(tools: Tools, no: Any) -> None:
    await tools.call("add_task", title="a")
    assert (await tools.call("update_task", task_id=1, title="b", undo=no))["title"] == "b"


@pytest.mark.parametrize("yes", [True, "true"])
async def test_spellings_of_yes(tools: Tools, yes: Any) -> None:
    await tools.call("add_task", title="a")
    assert (await tools.call("update_task", task_id=1, undo=yes))["deleted"] is True


@pytest.mark.parametrize("odd", [2, "yes please", [], {}])
async def test_odd_undos(tools: Tools, odd: Any) -> None:
    await tools.call("add_task", title="a")
    assert await tools.refusal("update_task", task_id=1, undo=odd) == "undo must be true, or left out."


async def test_nothing_older_than_thirty_days(tools: Tools, rows: Rows) -> None:
    await tools.call("add_task", title="a")
    await tools.call("update_task", task_id=1, title="b")
    rows("UPDATE task_changes SET created_at = now() - interval '30 days 1 minute' RETURNING id")
    assert await tools.refusal("update_task", task_id=1, undo=True) == NOTHING
    rows("UPDATE task_changes SET created_at = now() - interval '29 days 23 hours' RETURNING id")
    assert (await undo(tools))["title"] == "a"


async def test_changes_logged_before_tasks_had_dates(tools: Tools, rows: Rows) -> None:
    first = await tools.call("add_task", title="a", meta=KEY)
    await tools.call("complete_task", task_id=1)
    newer = "'{due_on,due_time,priority,labels,repeat,series}'::text[]"
    rows(f"UPDATE task_changes SET before = before - {newer}, after = after - {newer} RETURNING id")
    assert await tools.call("add_task", title="a", meta=KEY) == first
    undone = await undo(tools)
    assert (undone["status"], undone["due"], undone["labels"]) == ("pending", None, [])
    assert (await undo(tools))["deleted"] is True


async def test_nobody_else_s(tools: Tools, rows: Rows) -> None:
    await tools.call("add_task", user_id="alice", title="hers")
    await tools.call("update_task", user_id="alice", task_id=1, title="still hers")
    before = rows.tasks(), rows.changes()
    assert await tools.refusal("update_task", user_id="bob", task_id=1, undo=True) == NOTHING
    assert (rows.tasks(), rows.changes()) == before


async def test_two_at_the_same_time_take_back_two_changes(tools: Tools, rows: Rows) -> None:
    await tools.call("add_task", title="0")
    for number in range(1, 9):
        await tools.call("update_task", task_id=1, title=f"{number}")
    await tools.call("delete_task", task_id=1)
    answers = await asyncio.gather(*(undo(tools) for _ in range(8)))
    assert sorted(answer["title"] for answer in answers) == [f"{number}" for number in range(1, 9)]
    taken_back = [change["undoes"] for change in rows.changes() if change["undoes"]]
    assert len(set(taken_back)) == len(taken_back) == 8
    assert rows.tasks()[0]["title"] == "1"


async def test_completing_and_undoing_at_the_same_time_wait_for_each_other(tools: Tools, rows: Rows) -> None:
    await tools.call("add_task", **DAILY)
    for number in range(1, 9):
        made = [tools.call("complete_task", task_id=number)]
        made += [undo(tools, number) for _ in range(number > 1)]
        made += [tools.call("update_task", task_id=number, due="+1d") for _ in range(2)]
        answers = await asyncio.gather(*made, return_exceptions=True)
        assert not any("right now" in str(answer) or "internal error" in str(answer) for answer in answers), answers
        standing = [task["id"] for task in rows.tasks() if task["status"] == "pending"]
        assert len(standing) <= 1
        if standing != [number + 1]:
            return


TASK, DETAILS = st.sampled_from([1, 2]), st.sampled_from(CHANGES[2:])
STEPS = st.lists(
    st.tuples(st.just("complete"), TASK, st.just({}))
    | st.tuples(st.just("delete"), TASK, st.just({}))
    | st.tuples(st.just("undo"), TASK, st.just({}))
    | st.tuples(st.just("update"), TASK, DETAILS.map(lambda detail: detail[1]))
    | st.tuples(st.just("update"), TASK, st.just({"status": "pending"})),
    min_size=1,
    max_size=10,
)


@same_examples(40)
@given(steps=STEPS)
async def test_as_many_undos_as_changes_end_where_they_began(
    sunday: Clocked, rows: Rows, database_url: str, steps: list[tuple[str, int, dict[str, Any]]]
) -> None:
    with psycopg.connect(as_admin(database_url), autocommit=True) as connection:
        connection.execute("TRUNCATE people, tasks, task_calls, task_changes")
    await sunday.add("milk", description="2 litres", due="2026-11-27", repeat="FREQ=DAILY")
    await sunday.add("bread", priority="low", labels=["shopping"])
    done: list[tuple[int, list[dict[str, Any]]]] = []

    async def take_back() -> None:
        number, before = done.pop()
        await sunday.undo(number)
        assert but_updated(rows.tasks()) == before

    for kind, number, arguments in steps:
        if kind == "undo":
            if done:
                await take_back()
            continue
        before, changes = but_updated(rows.tasks()), len(rows.changes())
        try:
            await getattr(sunday, kind)(number, **arguments)
        except Refusal:
            assert len(rows.changes()) == changes
            continue
        made = rows.changes()[changes:]
        if any(change["before"] != change["after"] for change in made):
            done.append((number, before))
    while done:
        await take_back()
