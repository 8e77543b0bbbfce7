"""With the owner's condition taken out of a statement, row-level security still shows and changes nothing foreign."""

import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import pytest
from sqlalchemy import event
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import AsyncEngine

from backend.conversation import profiles
from backend.conversation.acting import Acting
from backend.conversation.errors import BackendError
from backend.conversation.runs import beside, leases, limits
from backend.conversation.store_adapter import PostgresStore
from backend.turn import versions
from service.database import Statement, pipelined, transaction
from tests.backend.conftest import Rows
from tests.backend.items import make, new_thread

BOB = Acting("bob")
OWNER_CONDITION = re.compile(r"\b(?:\w+\.)?user_id = (?:%\(\w+\)s(?:::VARCHAR)?|\$\d+)")


@pytest.fixture
def rewritten(engine: AsyncEngine, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """The statements from which an owner's condition was taken."""
    found: list[str] = []
    as_written = Statement.with_parameters

    def compiled(self: Statement, given: Any) -> tuple[bytes, dict[str, Any]]:
        text, parameters = as_written(self, given)
        bare = OWNER_CONDITION.sub("(true)", text.decode())
        if bare != text.decode():
            found.append(bare)
        return bare.encode(), parameters

    monkeypatch.setattr(Statement, "with_parameters", compiled)

    def rewrite(_c: Any, _cursor: Any, statement: str, parameters: Any, _ctx: Any, _many: bool) -> tuple[str, Any]:
        bare = OWNER_CONDITION.sub("(true)", statement)
        if bare != statement:
            found.append(bare)
        return bare, parameters

    event.listen(engine.sync_engine, "before_cursor_execute", rewrite, retval=True)
    yield found
    event.remove(engine.sync_engine, "before_cursor_execute", rewrite)


async def take_lease(engine: AsyncEngine, thread: str, *, user_id: str, run_id: str) -> Any:
    async with pipelined(engine, user_id) as pipeline:
        ended = await leases.take_over(pipeline, user_id=user_id, conversation_id=thread)
        claimed = await leases.claim(pipeline, run_id, user_id=user_id, conversation_id=thread, lease_seconds=0.0001)
    return await ended.fetchall(), await claimed.fetchall()


async def in_pipeline(engine: AsyncEngine, function: Any, *arguments: Any, **options: Any) -> Any:
    async with pipelined(engine, "bob") as pipeline:
        result = await function(pipeline, *arguments, **options)
    return await result.fetchall() if result is not None else None


async def taking_a_place(*arguments: Any, **options: Any) -> None:
    assert await beside.send_beside(*arguments, **options) is None


async def in_transaction(engine: AsyncEngine, function: Any, *arguments: Any, **options: Any) -> Any:
    async with transaction(engine, "bob") as session:
        return await function(session, *arguments, **options)


ATTEMPTS: dict[str, Callable[[AsyncEngine, PostgresStore, str, Any], Any]] = {
    "load_thread": lambda e, s, t, i: s.load_thread(t, BOB),
    "load_threads": lambda e, s, t, i: s.load_threads(10, None, "asc", BOB),
    "load_threads after": lambda e, s, t, i: s.load_threads(10, t, "asc", BOB),
    "delete_thread": lambda e, s, t, i: s.delete_thread(t, BOB),
    "load_thread_items": lambda e, s, t, i: s.load_thread_items(t, None, 10, "asc", BOB),
    "load_thread_items after": lambda e, s, t, i: s.load_thread_items(t, i.id, 10, "asc", BOB),
    "open_thread": lambda e, s, t, i: s.open_thread(t, 10, BOB),
    "load_item": lambda e, s, t, i: s.load_item(t, i.id, BOB),
    "delete_thread_item": lambda e, s, t, i: s.delete_thread_item(t, i.id, BOB),
    "save_feedback": lambda e, s, t, i: s.save_feedback(t, [i.id], "positive", BOB),
    "history": lambda e, s, t, i: s.history(t, BOB),
    "left_out": lambda e, s, t, i: s.left_out(t, BOB, up_to=10**9),
    "add_summary": lambda e, s, t, i: s.add_summary(t, "text", covers=1, context=BOB),
    "answer again": lambda e, s, t, i: in_pipeline(
        e, taking_a_place, "run_alice", i.id, again=True, user_id="bob", conversation_id=t
    ),
    "show a version": lambda e, s, t, i: versions.show(e, t, "run_alice", user_id="bob"),
    "take a lease": lambda e, s, t, i: take_lease(e, t, user_id="bob", run_id="run_bob"),
    "end a run": lambda e, s, t, i: in_pipeline(
        e, leases.end, "run_alice", user_id="bob", outcome="failed", usage=None
    ),
    "hold a lease": lambda e, s, t, i: in_transaction(e, leases.hold, "run_alice", user_id="bob"),
    "request a stop": lambda e, s, t, i: in_transaction(e, leases.request_stop, user_id="bob", conversation_id=t),
    "is it running": lambda e, s, t, i: in_transaction(e, leases.is_running, "run_alice", user_id="bob"),
    "memory": lambda e, s, t, i: profiles.memory(e, "bob"),
    "count turns": lambda e, s, t, i: in_pipeline(
        e, limits.check, limits.Limits(1, 1, 1, 1), user_id="bob", is_new=True
    ),
}


@pytest.mark.parametrize("attempt", ATTEMPTS)
async def test_without_its_where_a_statement_still_shows_nothing_foreign(
    engine: AsyncEngine, rewritten: list[str], rows: Rows, attempt: str
) -> None:
    store = PostgresStore(engine)
    thread = await new_thread(engine, "alice")
    secret = make("assistant_message", thread)
    await store.add_thread_item(thread, secret, Acting("alice"))
    assert await profiles.set_memory(engine, "alice", secret.id, versions=None)
    await take_lease(engine, thread, user_id="alice", run_id="run_alice")
    before = [rows(f"SELECT * FROM {table}") for table in ("conversations", "messages", "runs")]
    rewritten.clear()

    result: Any = None
    with suppress(BackendError, DBAPIError):
        result = await ATTEMPTS[attempt](engine, store, thread, secret)
    assert rewritten, "the statement has an owner's condition, and it was taken out"
    assert thread not in str(result)
    assert secret.id not in str(result)
    assert result is not True
    assert [rows(f"SELECT * FROM {table}") for table in ("conversations", "messages", "runs")] == before
