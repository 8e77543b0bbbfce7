"""Who asks what was changed since misses nothing, whichever of two transactions ends first."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest
from sqlalchemy.ext.asyncio import AsyncEngine

from mcp_server.imports import adding
from mcp_server.imports.found import Found
from mcp_server.tasks import batches, edits, undo
from mcp_server.tasks.changes import Caller
from mcp_server.tasks.fields import Wanted
from mcp_server.tasks.lists import news
from service.database import Session, create_engine, stepwise
from tests.mcp_server.conftest import Limited, Rows
from tests.waiting import until

Change = Callable[[Session, int], Awaitable[Any]]
ALICE = Caller("alice")


@pytest.fixture
async def engine(database_url: str) -> AsyncIterator[AsyncEngine]:
    engine = create_engine(database_url, pool_size=20)
    yield engine
    await engine.dispose()


async def _add(session: Session, _: int) -> Any:
    return await edits.add(session, ALICE, title="new", wanted=Wanted())


async def _complete(session: Session, id: int) -> Any:
    return await edits.complete(session, ALICE, [id])


async def _undo(session: Session, id: int) -> Any:
    return await undo.undo(session, ALICE, [id])


async def _undo_batch(session: Session, id: int) -> Any:
    return await batches.undo(session, ALICE, f"batch {id}")


CHANGES: dict[str, Change] = {"add": _add, "complete": _complete, "undo": _undo, "undo a batch": _undo_batch}
# Two of these wait for each other in any case.
ALREADY_IN_TURN = [{"undo", "undo a batch"}, {"undo"}, {"undo a batch"}, {"add"}]
PAIRS = [(one, other) for one in CHANGES for other in CHANGES if {one, other} not in ALREADY_IN_TURN]


async def two_tasks(engine: AsyncEngine) -> int:
    """Each with a batch of its own, to be taken back; the number of the last change."""
    for id in (1, 2):
        async with stepwise(engine, "alice") as session:
            await edits.add(session, ALICE, title="milk", wanted=Wanted(due="2030-01-01", repeat="FREQ=DAILY"))
        async with stepwise(engine, "alice") as session:
            caller = Caller("alice", batch=f"batch {id}")
            await edits.update(session, caller, [id], Wanted(title="bread"))
    return (await news.since(engine, "alice", None)).last


@pytest.mark.parametrize(("first", "second"), PAIRS)
async def test_the_one_that_was_numbered_first_ends_last(
    engine: AsyncEngine, rows: Rows, first: str, second: str
) -> None:
    seen = await two_tasks(engine)
    heard: list[int] = []

    async def look() -> int:
        found = await news.since(engine, "alice", seen)
        heard.extend(found.task_ids)
        return found.last

    async def change(kind: str, id: int) -> None:
        async with stepwise(engine, "alice") as session:
            await CHANGES[kind](session, id)

    waits = "SELECT 1 FROM pg_locks WHERE NOT granted"
    async with stepwise(engine, "alice") as session:
        await CHANGES[first](session, 1)
        other = asyncio.create_task(change(second, 2))
        await until(lambda: other.done() or rows(waits))
        seen = await look()
    await other
    seen = await look()
    assert heard == [row["task_id"] for row in rows("SELECT task_id FROM task_changes WHERE id > 4 ORDER BY id")]
    assert len(heard) >= 2


async def test_an_import_is_in_turn_too(engine: AsyncEngine, rows: Rows) -> None:
    seen = await two_tasks(engine)
    async with stepwise(engine, "alice") as session:
        await edits.delete(session, ALICE, [1])
        found = [Found("line 1", ("milk",), title="imported")]
        other = asyncio.create_task(adding.add_all(engine, ALICE, lambda _: iter(found), progress=lambda _: None))
        await until(lambda: other.done() or rows("SELECT 1 FROM pg_locks WHERE NOT granted"))
        assert (await news.since(engine, "alice", seen)).task_ids == []
    await other
    assert (await news.since(engine, "alice", seen)).task_ids == [1, 3]


async def test_of_many_at_once_none_is_missed(engine: AsyncEngine, rows: Rows) -> None:
    async with stepwise(engine, "alice") as session:
        titles = [str(number) for number in range(2, 41)]
        await edits.add(session, ALICE, title="1", wanted=Wanted(), also=titles)
    seen = start = (await news.since(engine, "alice", None)).last
    heard: list[int] = []

    async def change(id: int) -> None:
        async with stepwise(engine, "alice") as session:
            await (_add(session, id) if id % 4 == 0 else _complete(session, id))

    writing = asyncio.gather(*map(change, range(1, 41)))
    while True:
        ended = writing.done()
        found = await news.since(engine, "alice", seen)
        heard += found.task_ids
        seen = found.last
        if ended:
            break
    await writing
    assert heard == [
        row["task_id"] for row in rows("SELECT task_id FROM task_changes WHERE id > %s ORDER BY id", start)
    ]
    assert len(heard) == 40


async def test_two_people_do_not_wait_for_each_other(engine: AsyncEngine) -> None:
    await two_tasks(engine)
    async with stepwise(engine, "alice") as session:
        await _complete(session, 1)
        async with asyncio.timeout(5), stepwise(engine, "bob") as other:
            await edits.add(other, Caller("bob"), title="his", wanted=Wanted())


async def test_near_the_limit_of_tasks_nobody_waits_in_a_circle(limited: Limited) -> None:
    """Who completes a repeat, which leaves a task, and who adds one want the same two locks."""
    async with limited(limit_tasks=1_000) as tools:
        for number in range(20):
            await tools.call("add_task", title=str(number), due="2030-01-01", repeat="FREQ=DAILY")
        added = [tools.call("add_task", title="new") for _ in range(20)]
        completed = [tools.call("complete_task", task_id=number) for number in range(1, 21)]
        await asyncio.gather(*[call for pair in zip(added, completed, strict=True) for call in pair])
        assert len(await tools.titles(status="pending", limit=100)) == 40
