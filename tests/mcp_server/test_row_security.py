"""With the WHERE on user_id gone from each statement in turn, PostgreSQL still shows and changes nothing foreign."""

import re
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from typing import Any

import psycopg
import pytest
from sqlalchemy import Select, UpdateBase, text
from sqlalchemy.ext.asyncio import AsyncEngine

from mcp_server.errors import NextIsOpen, TaskNotFound
from mcp_server.tasks import batches, changes, edits, statements, undo, zones
from mcp_server.tasks.changes import WITHIN, Caller
from mcp_server.tasks.fields import Wanted
from mcp_server.tasks.lists import pages
from mcp_server.tasks.lists import statements as lists
from mcp_server.tasks.lists.wishes import Wish
from service.database import Pipeline, Session, create_engine, login_transaction, stepwise, transaction
from tests.logins import as_owner
from tests.mcp_server.conftest import Rows

CONDITION = re.compile(r"(\w+\.)?user_id = %\(\w+\)s(::\w+)?")
ALICE = Caller("alice", idempotency_key="new")
MODULES = (batches, changes, edits, pages, statements, undo, zones)
FOREIGN = 2  # alice has no task of this number

Operation = Callable[[Session], Awaitable[Any]]


async def listed(session: Session, **wish: Any) -> int:
    page = await pages.list_page(session, ALICE, Wish(**wish))
    return len(page.tasks) or len(page.nearest)


async def counted(session: Session, *, deleted: bool) -> int:
    params = {"owner": "alice", "counted": 10, "since": ALICE.clock() - WITHIN}
    return await session.scalar(lists.count((), deleted=deleted), params) or 0


READS: dict[str, Operation] = {
    "list": listed,
    "list by status": partial(listed, status="pending"),
    "search": partial(listed, query="OF"),
    "near a search": partial(listed, query="off"),
    "deleted": partial(listed, status="deleted"),
    "near a search of deleted": partial(listed, status="deleted", query="off"),
    "total": partial(counted, deleted=False),
    "total of deleted": partial(counted, deleted=True),
}
CHANGES: dict[str, Operation] = {
    "complete": lambda session: edits.complete(session, ALICE, [FOREIGN]),
    "update": lambda session: edits.update(session, ALICE, [FOREIGN], Wanted(title="mine")),
    "delete": lambda session: edits.delete(session, ALICE, [FOREIGN]),
}


class Unconditional:
    """An engine whose statements have lost every condition on user_id, as all that the driver is given has."""

    def __init__(self, engine: AsyncEngine, monkeypatch: pytest.MonkeyPatch) -> None:
        self.engine = engine
        self.rewritten: list[str] = []
        execute = psycopg.AsyncCursor.execute

        async def rewritten(cursor: Any, query: Any, *rest: Any, **named: Any) -> Any:
            return await execute(cursor, self._rewrite(query), *rest, **named)

        monkeypatch.setattr(psycopg.AsyncCursor, "execute", rewritten)

    def _rewrite(self, query: Any) -> Any:
        text = query.decode() if isinstance(query, bytes) else query
        changed, count = CONDITION.subn("true", text) if isinstance(text, str) else ("", 0)
        if count:
            self.rewritten.append(changed)
        return changed.encode() if count else query


@pytest.fixture
async def unconditional(database_url: str, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Unconditional]:
    engine = create_engine(database_url)
    async with stepwise(engine, "bob") as session:
        await edits.add(session, Caller("bob", idempotency_key="k"), title="of bob", wanted=Wanted())
        await edits.add(session, Caller("bob"), title="of bob", wanted=Wanted())
    async with stepwise(engine, "alice") as session:
        await edits.add(session, Caller("alice", idempotency_key="k"), title="of alice", wanted=Wanted())
    yield Unconditional(engine, monkeypatch)
    await engine.dispose()


@asynccontextmanager
async def everybodys(unconditional: Unconditional) -> AsyncIterator[Session]:
    """Where nothing but the condition keeps people apart."""
    engine = create_engine(as_owner(unconditional.engine.url.render_as_string(hide_password=False)))
    async with login_transaction(engine) as opened:
        driver: Any = (await (await opened.connection()).get_raw_connection()).driver_connection
        yield Session(Pipeline(driver))
        await driver.commit()
    await engine.dispose()


def as_alice(engine: AsyncEngine) -> AbstractAsyncContextManager[Session]:
    return stepwise(engine, "alice")


@pytest.mark.parametrize("read", READS.values(), ids=READS)
async def test_lists(unconditional: Unconditional, rows: Rows, read: Operation) -> None:
    rows("UPDATE task_changes SET before = after, after = NULL RETURNING id")  # as many deletions as tasks
    async with as_alice(unconditional.engine) as session:
        assert await read(session) == 1
    read_as_alice = [*unconditional.rewritten]
    async with everybodys(unconditional) as session:
        assert await read(session) == 3, "the condition is not gone: this test shows nothing"
    assert unconditional.rewritten == read_as_alice * 2


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
async def test_changes(unconditional: Unconditional, rows: Rows, change: Operation) -> None:
    before = rows.tasks(), rows.changes()
    with pytest.raises(TaskNotFound, match=f"There is no task {FOREIGN}:"):
        async with as_alice(unconditional.engine) as session:
            await change(session)
    assert (rows.tasks(), rows.changes()) == before
    claiming, changing = unconditional.rewritten
    assert "user_id =" not in claiming + changing
    async with everybodys(unconditional) as session:
        await change(session)
    assert rows.tasks() != before[0], "the condition is not gone: this test shows nothing"


async def test_the_log_that_answers_a_call_sent_again(unconditional: Unconditional, rows: Rows) -> None:
    before = rows.tasks(), rows.changes()
    async with as_alice(unconditional.engine) as session:
        again = await edits.add(session, Caller("alice", idempotency_key="k"), title="of alice", wanted=Wanted())
    assert again.title == "of alice"
    adding, claiming, reading = unconditional.rewritten
    assert (adding[:4], claiming[:6], reading[:6]) == ("WITH", "INSERT", "SELECT")
    assert (rows.tasks(), rows.changes()) == before


async def test_the_log_of_an_addition(unconditional: Unconditional, rows: Rows) -> None:
    before = rows.tasks(), rows.changes()
    async with as_alice(unconditional.engine) as session:
        await edits.add(session, ALICE, title="more", wanted=Wanted())
    assert len(unconditional.rewritten) == 1
    assert (rows.tasks()[:3], rows.changes()[:3]) == before
    assert (rows.tasks()[3]["user_id"], rows.changes()[3]["user_id"]) == ("alice", "alice")


@pytest.mark.parametrize(
    "table", ["people", "tasks", "task_calls", "task_changes", "conversations", "messages", "runs"]
)
async def test_a_statement_that_names_nobody(unconditional: Unconditional, rows: Rows, table: str) -> None:
    """The tables of both services, with everything a statement can do."""
    stored = {"tasks": rows.tasks(), "task_changes": rows.changes()}
    async with transaction(unconditional.engine, "carol") as session:
        connection = await session.connection()
        assert (await connection.execute(text(f"SELECT * FROM {table}"))).all() == []
        assert (await connection.execute(text(f"UPDATE {table} SET user_id = 'carol'"))).rowcount == 0
        assert (await connection.execute(text(f"DELETE FROM {table}"))).rowcount == 0
    assert {"tasks": rows.tasks(), "task_changes": rows.changes()} == stored


async def test_every_statement_with_an_owner_is_among_these(unconditional: Unconditional) -> None:
    """A statement that a later change adds to tasks or changes must be added here too."""
    for operation in READS.values():
        async with as_alice(unconditional.engine) as session:
            await operation(session)
    for operation in CHANGES.values():
        with pytest.raises(TaskNotFound):
            async with as_alice(unconditional.engine) as session:
                await operation(session)
    for key in ("k", "new"):
        async with as_alice(unconditional.engine) as session:
            caller = Caller("alice", idempotency_key=key, batch="run")
            await edits.add(session, caller, title="of alice", wanted=Wanted())
    async with as_alice(unconditional.engine) as session:
        await use_a_repeat(session)
        await batches.undo(session, Caller("alice"), "run")
    dynamic = len(READS)  # two for each that finds what is near, of which the first is a search as another is
    dynamic += 1  # a search of what was deleted
    assert len(set(unconditional.rewritten)) == len(owned_statements(unconditional.engine)) + dynamic


async def use_a_repeat(session: Session) -> None:
    daily = Wanted(due="today", repeat="FREQ=DAILY")
    task = await edits.add(session, Caller("alice"), title="water the plants", wanted=daily)
    await edits.complete(session, Caller("alice"), [task.id])
    with pytest.raises(NextIsOpen):
        await edits.update(session, Caller("alice"), [task.id], Wanted(status="pending"))
    await undo.undo(session, Caller("alice"), [task.id])


def owned_statements(engine: AsyncEngine) -> list[str]:
    built = [value for module in MODULES for value in vars(module).values()]
    texts = [str(value.compile(dialect=engine.dialect)) for value in built if isinstance(value, Select | UpdateBase)]
    return [statement for statement in texts if CONDITION.search(statement)]
