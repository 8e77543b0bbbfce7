"""Who locks a conversation and its run locks the conversation first: no two can wait for each other."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import psycopg
import pytest

from backend.commands import forget
from backend.conversation.acting import Acting
from backend.conversation.store_adapter import PostgresStore
from backend.turn import versions
from service.database import Pipeline
from tests.backend.conftest import Backend, Rows
from tests.backend.turn.waiting_run import WAITING, Case
from tests.chatkit_client import ChatKit
from tests.logins import as_admin
from tests.waiting import until

pytestmark = pytest.mark.long

WAITS = "SELECT 1 FROM pg_locks WHERE NOT granted AND pg_backend_pid() = ANY (pg_blocking_pids(pid))"
FREE = "SELECT 1 FROM conversations FOR NO KEY UPDATE SKIP LOCKED"


async def act(chat: ChatKit, case: Case, what: str) -> None:
    store = chat.app.state.parts.chatkit.server.store  # pyright: ignore[reportAttributeAccessIssue]
    match what:
        case "save":
            thread = await store.load_thread(case.thread, Acting("local"))
            await store.save_thread(thread, Acting("local", "run_1"))
        case "delete":  # without the stop, which locks the run alone
            await store.delete_thread(case.thread, Acting("local"))
        case "forget":
            await forget._forget(store.engine, user="local")
        case _:
            await case.act(chat, what)


@pytest.mark.parametrize("what", ["say", "show", "delete", "save", "forget"])
async def test_who_waits_for_a_run_has_its_conversation(
    backend: Backend, rows: Rows, database_url: str, what: str
) -> None:
    case = Case(1)
    async with backend() as chat:
        with psycopg.connect(as_admin(database_url), autocommit=True) as connection:
            psycopg.ClientCursor(connection).execute(WAITING.encode(), case.rows())
        if what == "save":
            rows("UPDATE runs SET status = 'running', heartbeat_at = now() + interval '1 hour'")
        rows("BEGIN")
        rows("SELECT 1 FROM runs FOR UPDATE")
        acting = asyncio.create_task(act(chat, case, what))
        try:
            await until(lambda: rows(WAITS))
            assert rows(FREE) == []
        finally:
            rows("ROLLBACK")
            await acting


@pytest.mark.parametrize("what", ["redraw", "rate", "summarise"])
async def test_who_waits_for_messages_has_their_conversation(chat: ChatKit, rows: Rows, what: str) -> None:
    store: PostgresStore = chat.app.state.parts.chatkit.server.store  # pyright: ignore[reportAttributeAccessIssue]
    thread = (await chat.say("add milk")).thread_id
    items = {item["type"]: item["id"] for item in await chat.items(thread)}
    person = Acting("local")
    acts: dict[str, Callable[[], Coroutine[Any, Any, Any]]] = {
        "redraw": lambda: store.redraw(thread, lambda widget: widget, person),
        "rate": lambda: store.save_feedback(thread, [items["assistant_message"]], "positive", person),
        "summarise": lambda: store.add_summary(thread, "so far", covers=last, context=person),
    }
    last = rows("SELECT max(seq) AS seq FROM messages")[0]["seq"]
    rows("BEGIN")
    rows("SELECT 1 FROM messages FOR UPDATE")
    acting = asyncio.create_task(acts[what]())
    try:
        await until(lambda: rows(WAITS))
        assert rows(FREE) == []
    finally:
        rows("ROLLBACK")
        await acting


async def test_an_ordinary_turn_locks_with_its_claim_alone(chat: ChatKit, monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[str] = []
    send = Pipeline.send

    async def seeing(self: Pipeline, statement: Any, **parameters: Any) -> Any:
        sent.append(statement.text)
        return await send(self, statement, **parameters)

    thread = (await chat.say("hello")).thread_id
    monkeypatch.setattr(Pipeline, "send", seeing)
    await chat.say("hello again", thread)
    engine = chat.app.state.parts.turns._engine  # pyright: ignore[reportAttributeAccessIssue]
    locking = [text for text in sent if "FROM conversations" in text and "FOR NO KEY UPDATE" in text]
    assert ["INSERT INTO runs" in text for text in locking] == [True]
    await versions.show(engine, thread, None, user_id="local")
    locking = [text for text in sent if "FROM conversations" in text and "FOR NO KEY UPDATE" in text]
    assert len(locking) > 1, "it is seen where it is taken"
