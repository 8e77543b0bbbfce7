"""All that a batch of calls has changed, taken back together."""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime
from typing import Any

import psycopg
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_server.errors import NothingInBatch
from mcp_server.tasks import quota
from mcp_server.tasks.task import ChangedTask
from service.database import create_engine
from service.tool_server.refusals import Refusal
from tests.examples import same_examples
from tests.logins import as_admin
from tests.mcp_server.clock import Clocked
from tests.mcp_server.conftest import Rows
from tests.mcp_server.tasks.states import but_updated

NOTHING = "There is nothing to take back: it was taken back already, or is older than 30 days."
SINCE = "Nothing was taken back, because it was changed since: {}. Take that back first, or change each task by itself."
WATER: dict[str, Any] = {"due": "2026-11-22 09:00", "repeat": "FREQ=DAILY"}


def told(result: ChangedTask) -> list[tuple[int, str, str | None]]:
    """Of each task its number, its title, and its status; None for one that went."""
    return [(task.id, task.title, None if task.deleted else task.status) for task in (result, *result.also)]


async def refusal(sunday: Clocked, batch: str) -> str:
    with pytest.raises(Refusal) as refused:
        await sunday.undo_batch(batch)
    return str(refused.value)


async def test_everything_of_a_batch_is_as_it_was(sunday: Clocked, rows: Rows) -> None:
    await sunday.add("milk", also=["bread", "eggs"])
    await sunday.add("water", **WATER)
    before = but_updated(rows.tasks())
    sunday.batch = "run"
    await sunday.add("tea")
    await sunday.update(5, title="green tea", labels=["drinks"])
    await sunday.complete(1, 4)
    await sunday.update(1, status="pending", priority="high")
    await sunday.delete(2)
    sunday.batch = "other"
    await sunday.add("rice")
    sunday.batch = "click"
    undone = await sunday.undo_batch("run")
    assert told(undone) == [
        (1, "milk", "pending"),
        (2, "bread", "pending"),
        (4, "water", "pending"),
        (5, "tea", None),
    ]
    assert [task for task in but_updated(rows.tasks()) if task["title"] != "rice"] == before
    made = [change for change in rows.changes() if change["undoes"]]
    assert {(change["operation"], change["batch"]) for change in made} == {("undo", "click")}
    assert len({change["undoes"] for change in made}) == len(made) == 7
    assert await refusal(sunday, "run") == NOTHING


async def test_sent_again_it_is_told_again(sunday: Clocked, rows: Rows) -> None:
    sunday.batch = "run"
    await sunday.add("milk")
    await sunday.update(1, title="oat milk")
    await sunday.add("water", **WATER)
    await sunday.complete(2)
    sunday.key = "key-1"
    undone = await sunday.undo_batch("run")
    before = rows.tasks(), rows.changes()
    assert await sunday.undo_batch("run") == undone
    assert told(undone) == [(1, "milk", None), (2, "water", None), (3, "water", None)]
    assert (rows.tasks(), rows.changes()) == before == ([], before[1])


async def test_a_call_that_is_repeated_belongs_to_the_answer_that_repeats_it(sunday: Clocked, rows: Rows) -> None:
    sunday.batch, sunday.key = "first answer", "key-1"
    await sunday.add("milk")
    sunday.batch = "second answer"
    await sunday.add("milk")
    sunday.batch = sunday.key = None
    assert await refusal(sunday, "first answer") == NOTHING
    await sunday.undo_batch("second answer")
    assert rows.tasks() == []


async def test_what_was_changed_since_is_named_and_nothing_is_taken_back(sunday: Clocked, rows: Rows) -> None:
    sunday.batch = "run"
    await sunday.add("a", also=list("bcdefgh"))
    await sunday.add("water", **WATER)
    await sunday.complete(9)
    sunday.batch = None
    await sunday.update(2, title="B")
    before = rows.tasks(), rows.changes()
    assert await refusal(sunday, "run") == SINCE.format("task 2 (B)")
    assert (rows.tasks(), rows.changes()) == before
    await sunday.complete(10)
    assert await refusal(sunday, "run") == SINCE.format("task 2 (B) and task 10 (water)")
    await sunday.delete(3, 4, 5, 6, 7)
    assert await refusal(sunday, "run") == SINCE.format(
        "task 2 (B), task 3 (c), task 4 (d), task 5 (e), task 6 (f) and 2 more"
    )
    await sunday.undo(2, 10, 3, 4, 5, 6, 7)
    await sunday.undo_batch("run")
    assert rows.tasks() == []


@pytest.mark.parametrize("alone", [1, 2, 3])
async def test_what_was_taken_back_by_itself_is_passed_over(sunday: Clocked, rows: Rows, alone: int) -> None:
    sunday.batch = "run"
    await sunday.add("a", also=["b", "c"])
    sunday.batch = None
    await sunday.undo(alone)
    assert [id for id, *_ in told(await sunday.undo_batch("run"))] == [id for id in (1, 2, 3) if id != alone]
    assert rows.tasks() == []


async def test_what_a_batch_took_back_stays_taken_back(sunday: Clocked, rows: Rows) -> None:
    await sunday.add("a")
    await sunday.update(1, title="b")
    sunday.batch = "run"
    await sunday.undo(1)
    assert await refusal(sunday, "run") == NOTHING
    await sunday.update(1, title="c")
    assert told(await sunday.undo_batch("run")) == [(1, "a", "pending")]


async def test_of_a_repeat_that_was_deleted_and_opened_again(sunday: Clocked, rows: Rows) -> None:
    """On the way back its first must be closed before the one that followed is there again."""
    await sunday.add("water", **WATER)
    await sunday.complete(1)
    before = but_updated(rows.tasks())
    sunday.batch = "run"
    await sunday.delete(2)
    await sunday.update(1, status="pending")
    await sunday.undo_batch("run")
    assert but_updated(rows.tasks()) == before


async def test_more_than_a_hundred(sunday: Clocked, rows: Rows) -> None:
    sunday.batch = "run"
    for first in range(0, 150, 50):
        await sunday.add(f"{first}", also=[f"{first + n}" for n in range(1, 50)])
    assert len(told(await sunday.undo_batch("run"))) == 150
    assert rows.tasks() == []


@pytest.mark.parametrize("year", ["1999", "2026", "2999"])
async def test_thirty_days_by_the_clock_of_the_server(sunday: Clocked, rows: Rows, year: str) -> None:
    sunday.now = f"{year}-06-01T12:00:00+00:00"
    sunday.batch = "run"
    await sunday.add("a", also=["b"])
    assert {change["created_at"] for change in rows.changes()} == {datetime.fromisoformat(sunday.now)}
    sunday.now = f"{year}-07-01T11:59:00+00:00"
    await sunday.undo(1)
    sunday.now = f"{year}-07-01T12:00:00+00:00"
    assert await refusal(sunday, "run") == NOTHING
    with pytest.raises(Refusal, match="no change of task 2 within 30 days"):
        await sunday.undo(2)


@pytest.mark.parametrize("days", [-10_000, 0, 10_000])
async def test_nothing_is_swept_that_can_be_taken_back(
    sunday: Clocked, rows: Rows, database_url: str, days: int
) -> None:
    [moment] = rows(f"SELECT now() + interval '{days} days' AS now")
    sunday.now = moment["now"].isoformat()
    await sunday.add("a")
    sunday.now = (moment["now"] + 29.9 * quota.DAY).isoformat()
    engine = create_engine(database_url)
    try:
        assert await quota.sweep(engine, 30, clock=lambda: datetime.fromisoformat(sunday.now)) == 0
    finally:
        await engine.dispose()
    await sunday.undo(1)


async def test_nobody_else_s(sunday: Clocked, rows: Rows) -> None:
    rows(
        "INSERT INTO task_calls (user_id, operation, arguments, actor, batch) "
        "VALUES ('bob', 'add', '{}', 'mcp', 'his') RETURNING id"
    )
    rows(
        "INSERT INTO task_changes (user_id, call_id, task_id, after) "
        "SELECT user_id, id, 1, '{}' FROM task_calls WHERE user_id = 'bob' RETURNING id"
    )
    assert await refusal(sunday, "his") == NOTHING


async def test_two_at_once_take_a_batch_back_once(sunday: Clocked, rows: Rows) -> None:
    sunday.batch = "run"
    await sunday.add("a", also=["b"])
    await sunday.delete(1)
    sunday.batch = None
    answers = await asyncio.gather(*(sunday.undo_batch("run") for _ in range(6)), return_exceptions=True)
    assert sorted(type(answer).__name__ for answer in answers) == ["ChangedTask", *["NothingInBatch"] * 5]
    assert rows.tasks() == []


CHANGES: list[tuple[str, dict[str, Any]]] = [
    ("complete", {}),
    ("delete", {}),
    ("update", {"title": "plants"}),
    ("update", {"due": "next"}),
    ("update", {"due": "2026-11-29", "repeat": "FREQ=WEEKLY", "add_labels": ["y"]}),
    ("update", {"repeat": "none"}),
    ("update", {"status": "pending"}),
    ("add", {"due": "today", "repeat": "FREQ=DAILY"}),
]
STEP = st.tuples(st.sampled_from(CHANGES), st.lists(st.integers(1, 4), min_size=1, max_size=3, unique=True))
TURNS = st.lists(st.lists(STEP, min_size=1, max_size=4), min_size=1, max_size=4)


@pytest.mark.long
@same_examples(60)
@given(turns=TURNS, alone=st.booleans())
async def test_batches_taken_back_from_the_last_to_the_first_end_where_they_began(
    sunday: Clocked, rows: Rows, database_url: str, turns: list[list[Any]], alone: bool
) -> None:
    """`alone`: the last change of a task of each batch is taken back by itself before."""
    with psycopg.connect(as_admin(database_url), autocommit=True) as connection:
        connection.execute("TRUNCATE people, tasks, task_calls, task_changes")
    sunday.batch = None
    await sunday.add("milk", **WATER)
    await sunday.add("bread", priority="low", labels=["shopping"])
    states: list[tuple[str, list[dict[str, Any]]]] = []
    for number, steps in enumerate(turns):
        states.append((f"run-{number}", but_updated(rows.tasks())))
        sunday.batch = f"run-{number}"
        for (kind, arguments), ids in steps:
            await try_to(sunday, kind, arguments, ids)
    sunday.batch = None
    for batch, before in reversed(states):
        made = [change for change in rows.changes() if change["batch"] == batch]
        if alone and (changed := [change["task_id"] for change in made if change["before"] != change["after"]]):
            await try_to(sunday, "undo", {}, changed[:1])
        with suppress(NothingInBatch):
            await sunday.undo_batch(batch)
        assert but_updated(rows.tasks()) == before


async def try_to(sunday: Clocked, kind: str, arguments: dict[str, Any], ids: Sequence[int]) -> None:
    """Do it, or nothing where it is refused."""
    with suppress(Refusal):
        await (sunday.add("tea", **arguments) if kind == "add" else getattr(sunday, kind)(*ids, **arguments))
