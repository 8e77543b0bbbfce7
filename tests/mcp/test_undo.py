"""Changes that are undone: the last one of a task, then the one before it, or all that a batch of calls changed."""

import asyncio
from collections.abc import Sequence
from typing import Any

import httpx2
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.examples import same_examples
from tests.mcp.calls import KEY, Tools
from tests.mcp.conftest import NewTools, new_user
from tests.processes import ServiceProcess
from tests.serving import http_client
from tests.support.stored import Stored

DAILY: dict[str, Any] = {"title": "water", "due": "2996-11-28 09:00", "repeat": "FREQ=DAILY"}
FULL: dict[str, Any] = DAILY | {"description": "all", "priority": "high", "labels": ["plants", "home"]}
RUN = {"todo/batch": "run"}
CHANGES: list[tuple[str, dict[str, Any]]] = [
    ("complete_task", {}),
    ("delete_task", {}),
    ("update_task", {"title": "plants"}),
    ("update_task", {"description": "none"}),
    ("update_task", {"due": "+1w"}),
    ("update_task", {"due": "next"}),
    ("update_task", {"due": "none", "repeat": "none", "priority": "none", "labels": ["x"]}),
    ("update_task", {"repeat": "FREQ=WEEKLY;COUNT=3", "add_labels": ["y"]}),
    ("update_task", {"status": "completed", "title": "done"}),
]


def undone(result: dict[str, Any]) -> list[tuple[int, str, str | None]]:
    """Of each task its number, its title, and its status; None for one that is no more."""
    tasks = (result, *result["also"])
    return [(task["id"], task["title"], None if task["deleted"] else task["status"]) for task in tasks]


async def cannot_undo(tools: Tools, task_id: int, *also: int) -> str:
    return await tools.error("update_task", task_id=task_id, also=[*also], undo=True)


async def cannot_undo_batch(tools: Tools, batch: str = "run") -> str:
    return await tools.error("update_task", task_id=1, meta={"todo/undo_batch": batch})


@pytest.mark.parametrize(("tool", "arguments"), CHANGES)
async def test_a_change_is_undone(tools: Tools, new_tools: NewTools, tool: str, arguments: dict[str, Any]) -> None:
    await tools.add(**FULL)
    await new_tools().add(**FULL)
    before = await tools.comparable()
    await tools.call(tool, task_id=1, **arguments)
    assert await tools.comparable() != before
    restored = await tools.undo(1)
    assert undone(restored) == [(1, "water", "pending")]
    assert restored["next"] is None
    assert await tools.comparable() == before


async def test_a_completion_of_a_repeat_is_undone_with_the_next(tools: Tools) -> None:
    await tools.add(**FULL)
    states = []
    for number in (1, 2):
        states.append(await tools.comparable())
        await tools.complete(number)
    for number in (2, 1):
        assert (await tools.undo(number))["status"] == "pending"
        assert await tools.comparable() == states.pop()


@pytest.mark.parametrize(
    ("tool", "arguments"), [("complete_task", {}), ("update_task", {"title": "x"}), ("update_task", {"due": "+1d"})]
)
async def test_not_while_the_next_was_changed_since(tools: Tools, tool: str, arguments: dict[str, Any]) -> None:
    await tools.add(**DAILY)
    await tools.complete(1)
    unchanged = await tools.comparable()
    await tools.call(tool, task_id=2, **arguments)
    before = await tools.state()
    assert "Task 2" in await cannot_undo(tools, 1)
    assert await tools.state() == before
    await tools.undo(2)
    assert await tools.comparable() == unchanged
    await tools.undo(1)
    assert [(task["id"], task["status"]) for task in await tools.tasks()] == [(1, "pending")]


async def test_only_one_of_a_repeat_is_restored(tools: Tools) -> None:
    await tools.add(**DAILY)
    await tools.complete(1)
    await tools.delete(2)
    await tools.undo(1)
    before = await tools.state()
    await cannot_undo(tools, 2)
    assert await tools.state() == before
    await tools.delete(1)
    assert (await tools.undo(2))["status"] == "pending"


@pytest.mark.parametrize("ids", [(1, 2), (2, 1)])
async def test_a_task_and_its_next_together(tools: Tools, ids: tuple[int, int]) -> None:
    await tools.add(**DAILY)
    await tools.complete(1)
    assert sorted(undone(await tools.undo(*ids))) == [(1, "water", "pending"), (2, "water", None)]
    assert await tools.ids() == [1]
    await cannot_undo(tools, 2)


async def test_several_all_or_none(tools: Tools) -> None:
    await tools.add("a", also=["b", "c"])
    await tools.delete(1, 2, 3)
    before = await tools.state()
    assert "Task 9" in await cannot_undo(tools, 1, 2, 9)
    assert await tools.state() == before
    assert undone(await tools.undo(3, 1, 2, 1)) == [(3, "c", "pending"), (1, "a", "pending"), (2, "b", "pending")]
    assert await tools.ids() == [1, 2, 3]
    assert [status for *_, status in undone(await tools.undo(3, 1, 2))] == [None] * 3
    assert (await tools.tasks(), (await tools.add("d"))["id"]) == ([], 4)


async def test_nothing_older_than_thirty_days(tools: Tools, stored: Stored) -> None:
    await tools.add("a", also=["b"], meta=RUN)
    await tools.delete(2)
    stored.age_task_changes(tools.user, days=30)
    before = await tools.tasks()
    await cannot_undo(tools, 1)
    await cannot_undo_batch(tools)
    assert (await tools.tasks(), await tools.ids(status="deleted")) == (before, [])
    stored.age_task_changes(tools.user, days=-0.5)
    assert await tools.ids(status="deleted") == [2]
    await tools.undo(2)
    await tools.undo_batch("run")
    assert await tools.tasks() == []


async def test_undone_at_the_same_time(tools: Tools) -> None:
    await tools.add("0")
    for number in range(1, 9):
        await tools.update(1, title=f"{number}")
    await tools.delete(1)
    answers = await asyncio.gather(*(tools.undo(1) for _ in range(8)))
    assert sorted(answer["title"] for answer in answers) == [f"{number}" for number in range(1, 9)]
    assert await tools.titles() == ["1"]


async def test_completed_and_undone_at_the_same_time(tools: Tools) -> None:
    await tools.add(**DAILY)
    for number in range(1, 9):
        made = [tools.result("complete_task", {"task_id": number})]
        made += [tools.result("update_task", {"task_id": number, "undo": True}) for _ in range(number > 1)]
        made += [tools.result("update_task", {"task_id": number, "due": "+1d"}) for _ in range(2)]
        results = str(await asyncio.gather(*made))
        assert "right now" not in results, results
        assert "internal error" not in results, results
        open_ones = await tools.ids(status="pending")
        assert len(open_ones) <= 1
        if open_ones != [number + 1]:
            return


async def test_a_batch(tools: Tools) -> None:
    await tools.add("milk", also=["bread", "eggs"])
    await tools.add(**DAILY)
    before = await tools.comparable()
    await tools.add("tea", meta=RUN)
    await tools.update(5, title="green tea", labels=["drinks"], meta=RUN)
    await tools.complete(1, 4, meta=RUN)
    await tools.update(1, status="pending", priority="high", meta=RUN)
    await tools.delete(2, meta=RUN)
    await tools.add("rice", meta={"todo/batch": "other"})
    assert undone(await tools.undo_batch("run")) == [
        (1, "milk", "pending"),
        (2, "bread", "pending"),
        (4, "water", "pending"),
        (5, "tea", None),
    ]
    assert [task for task in await tools.comparable() if task["title"] != "rice"] == before
    await cannot_undo_batch(tools)


async def test_the_undo_of_a_batch_sent_again(tools: Tools) -> None:
    await tools.add("milk", meta=RUN)
    await tools.update(1, title="oat milk", meta=RUN)
    await tools.add(**DAILY, meta=RUN)
    await tools.complete(2, meta=RUN)
    first = await tools.undo_batch("run", **KEY)
    assert undone(first) == [(1, "milk", None), (2, "water", None), (3, "water", None)]
    before = await tools.state()
    assert await tools.undo_batch("run", **KEY) == first
    assert await tools.state() == before


async def test_a_call_sent_again_belongs_to_the_later_batch(tools: Tools) -> None:
    for batch in ("first answer", "second answer"):
        await tools.add("milk", meta={**KEY, "todo/batch": batch})
    await cannot_undo_batch(tools, "first answer")
    await tools.undo_batch("second answer")
    assert await tools.tasks() == []


async def test_a_batch_that_was_changed_since(tools: Tools) -> None:
    await tools.add("a", also=["b", "c", "d"], meta=RUN)
    await tools.add(**DAILY, meta=RUN)
    await tools.complete(5, meta=RUN)
    await tools.update(2, title="B")
    await tools.complete(6)
    before = await tools.state()
    sentence = await cannot_undo_batch(tools)
    assert "task 2 (B)" in sentence
    assert "task 6 (water)" in sentence
    assert await tools.state() == before
    await tools.undo(2, 6)
    await tools.undo_batch("run")
    assert await tools.tasks() == []


@pytest.mark.parametrize("alone", [1, 2, 3])
async def test_what_was_undone_by_itself_is_passed_over(tools: Tools, alone: int) -> None:
    await tools.add("a", also=["b", "c"], meta=RUN)
    await tools.undo(alone)
    assert [number for number, *_ in undone(await tools.undo_batch("run"))] == [n for n in (1, 2, 3) if n != alone]
    assert await tools.tasks() == []


async def test_an_undo_of_a_batch_stays_undone(tools: Tools) -> None:
    await tools.add("a")
    await tools.update(1, title="b")
    await tools.undo(1, meta=RUN)
    await cannot_undo_batch(tools)
    await tools.update(1, title="c", meta=RUN)
    assert undone(await tools.undo_batch("run")) == [(1, "a", "pending")]


async def test_a_batch_that_deleted_the_next_and_reopened_the_first(tools: Tools) -> None:
    await tools.add(**DAILY)
    await tools.complete(1)
    before = await tools.comparable()
    await tools.delete(2, meta=RUN)
    await tools.update(1, status="pending", meta=RUN)
    await tools.undo_batch("run")
    assert await tools.comparable() == before


async def test_a_batch_of_150_tasks_of_which_the_result_has_100(tools: Tools) -> None:
    for _ in range(3):
        await tools.add("a", also=["a"] * 49, meta=RUN)
    result = await tools.undo_batch("run", **KEY)
    assert [id for id, *_ in undone(result)] == [*range(51, 151)]
    assert await tools.tasks() == []
    assert await tools.undo_batch("run", **KEY) == result


async def test_a_batch_of_30_repeating_tasks(tools: Tools) -> None:
    """The tasks that follow are in other parts of the undo than those that they follow."""
    ids = range(1, 31)
    await tools.add("a", also=["a"] * 29, due="2030-01-01", repeat="FREQ=DAILY")
    before = await tools.comparable()
    await tools.complete(*ids, meta=RUN)
    completed = await tools.comparable()
    assert len(completed) == 60
    result = await tools.undo_batch("run", **{"todo/batch": "undo"})
    assert [id for id, *_ in undone(result)] == [*ids]
    assert await tools.comparable() == before
    await tools.undo_batch("undo")
    assert await tools.comparable() == completed


async def test_a_batch_of_another_user(tools: Tools, new_tools: NewTools) -> None:
    await new_tools().add("his", meta=RUN)
    await cannot_undo_batch(tools)


async def test_a_batch_undone_at_the_same_time(tools: Tools) -> None:
    await tools.add("a", also=["b"], meta=RUN)
    await tools.delete(1, meta=RUN)
    undo = {"task_id": 1}, {"todo/undo_batch": "run"}
    answers = await asyncio.gather(*(tools.result("update_task", *undo) for _ in range(6)))
    assert sorted(answer["isError"] for answer in answers) == [False, *[True] * 5]
    assert await tools.tasks() == []


STEPS: list[tuple[str, dict[str, Any]]] = [
    *CHANGES,
    ("update_task", {"due": "2026-11-29", "repeat": "FREQ=WEEKLY", "add_labels": ["y"]}),
    ("update_task", {"status": "pending"}),
    ("add_task", {"title": "tea", "due": "today", "repeat": "FREQ=DAILY"}),
]
STEP = st.tuples(st.sampled_from(STEPS), st.lists(st.integers(1, 4), min_size=1, max_size=3, unique=True))


@pytest.fixture
def url(server: ServiceProcess) -> str:
    return server.url


@pytest.mark.long
@same_examples(15)
@given(batches=st.lists(st.lists(STEP, min_size=1, max_size=4), min_size=1, max_size=4), alone=st.booleans())
async def test_batches_undone_from_the_last_to_the_first_end_where_they_began(
    url: str, batches: list[list[Any]], alone: bool
) -> None:
    """`alone`: one change of each batch is undone by itself before."""
    async with http_client(url) as http:
        tools = await two_tasks(http)
        states: list[list[dict[str, Any]]] = []
        for number, steps in enumerate(batches):
            states.append(await tools.comparable())
            for (tool, arguments), ids in steps:
                await tools.result(tool, named(ids) | arguments if tool != "add_task" else arguments, batch(number))
        for number, before in reversed([*enumerate(states)]):
            made = await tools.comparable()
            changed = [task["id"] for task in made if task not in before]
            if alone and changed:
                await tools.result("update_task", {"task_id": changed[0], "undo": True})
            await tools.result("update_task", {"task_id": 1}, {"todo/undo_batch": f"run-{number}"})
            assert await tools.comparable() == before


@same_examples(12)
@given(
    steps=st.lists(st.tuples(st.sampled_from([*STEPS[:-1], None]), st.sampled_from([1, 2])), min_size=1, max_size=10)
)
async def test_as_many_undos_as_changes_end_where_they_began(url: str, steps: list[tuple[Any, int]]) -> None:
    async with http_client(url) as http:
        tools = await two_tasks(http)
        done: list[tuple[int, list[dict[str, Any]]]] = []

        async def undo_last() -> None:
            number, before = done.pop()
            await tools.undo(number)
            assert await tools.comparable() == before

        for step, number in steps:
            if step is None:
                if done:
                    await undo_last()
                continue
            before, tasks = await tools.comparable(), await tools.tasks()
            tool, arguments = step
            await tools.result(tool, {"task_id": number, **arguments})
            if await tools.tasks() != tasks:
                done.append((number, before))
        while done:
            await undo_last()


async def two_tasks(http: httpx2.AsyncClient) -> Tools:
    tools = Tools(http, new_user())
    await tools.add("milk", description="2 litres", due="2026-11-27", repeat="FREQ=DAILY")
    await tools.add("bread", priority="low", labels=["shopping"])
    return tools


def named(ids: Sequence[int]) -> dict[str, Any]:
    return {"task_id": ids[0], "also": [*ids[1:]]}


def batch(number: int) -> dict[str, str]:
    return {"todo/batch": f"run-{number}"}
