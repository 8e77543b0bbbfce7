"""What a person is told while a part of the product hangs: real processes are stopped, by their ids."""

import asyncio
import os
import signal
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg.rows import dict_row

from backend.tools.connection import ToolsUnavailable
from backend.tools.tasks.tools import TaskTools
from tests.backend.conftest import Backend, Rows
from tests.backend.slow_turns import SLOW as SLOW_WORDS
from tests.backend.slow_turns import read_text
from tests.backend.widgets import boxes, listed
from tests.chatkit_client import ChatKit, user_input
from tests.logins import as_admin
from tests.processes import ServiceProcess
from tests.scripted_model import ScriptedModel
from tests.waiting import until

pytestmark = pytest.mark.long

SLOW = "This is taking longer than usual…"


@pytest.fixture
def rows(database_url: str) -> Iterator[Rows]:
    """As the fixture of the same name, but the connection is not one of those that `frozen` stops."""
    with psycopg.connect(as_admin(database_url), autocommit=True, application_name="test") as connection:
        yield lambda statement: connection.cursor(row_factory=dict_row).execute(statement.encode()).fetchall()


@contextmanager
def frozen(*pids: int) -> Iterator[None]:
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        for pid in pids:
            os.kill(pid, signal.SIGCONT)


def postgres(rows: Rows) -> list[int]:
    """The processes that serve this database's sessions, and the one that would begin others."""
    sessions = rows(
        "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND application_name <> 'test' "
        "AND backend_type = 'client backend'"
    )
    pids = [row["pid"] for row in sessions]
    stat = Path(f"/proc/{pids[0]}/stat").read_text()
    return [int(stat.rsplit(")", 1)[1].split()[1]), *pids]


@pytest.fixture
async def chat(backend: Backend) -> AsyncIterator[ChatKit]:
    async with backend(slow_notice_seconds=0.5) as client:
        yield client


async def first_slow(events: AsyncIterator[dict[str, Any]]) -> list[dict[str, Any]]:
    """The events up to the one that tells of the wait."""
    seen = []
    async for event in events:
        seen.append(event)
        if event.get("text") == SLOW:
            return seen
    raise AssertionError(f"nobody told of the wait: {seen}")


async def test_a_frozen_database_is_told_of_before_the_turn_begins(chat: ChatKit, rows: Rows) -> None:
    thread = (await chat.say("hello")).thread_id
    with frozen(*postgres(rows)):
        began = time.monotonic()
        stream = chat.open("threads.add_user_message", thread_id=thread, input=user_input("hello again"))
        async with asyncio.timeout(5):
            events = await stream.__aenter__()
            assert len(await first_slow(events)) == 1
        assert time.monotonic() - began < 2
    rest = [event async for event in events]
    await stream.__aexit__(None, None, None)
    assert [event["type"] for event in rest[:2]] == ["thread.item.done", "thread.updated"]
    assert rest[-1]["item"]["type"] == "assistant_message"
    assert (await chat.say("and again", thread)).error is None


async def test_who_leaves_before_the_turn_began_stops_it(chat: ChatKit, rows: Rows) -> None:
    thread = (await chat.say("hello")).thread_id
    with frozen(*postgres(rows)):
        async with chat.open("threads.add_user_message", thread_id=thread, input=user_input("hello again")) as events:
            await first_slow(events)
    await until(lambda: rows("SELECT 1 FROM runs WHERE outcome = 'cancelled'"))
    assert (await chat.say("and again", thread)).error is None


async def test_a_refusal_that_comes_late_is_told_in_the_stream(chat: ChatKit, rows: Rows) -> None:
    await chat.say("hello")
    with frozen(*postgres(rows)):
        stream = chat.open("threads.add_user_message", thread_id="thr_unknown", input=user_input("hello"))
        events = await stream.__aenter__()
        await first_slow(events)
    [error] = [event async for event in events]
    await stream.__aexit__(None, None, None)
    assert "There is nothing with this id" in error["message"]


async def test_a_database_that_freezes_in_mid_answer_is_told_of(
    chat: ChatKit, model: ScriptedModel, rows: Rows
) -> None:
    await model.script(SLOW_WORDS)
    async with chat.open("threads.create", input=user_input("count")) as events:
        await read_text(events, at_least=8)
        with frozen(*postgres(rows)):
            async with asyncio.timeout(10):
                await first_slow(events)
        rest = [event async for event in events]
    assert rest[-1]["type"] == "thread.item.done"
    assert [row["outcome"] for row in rows("SELECT outcome FROM runs")] == ["completed"]


async def test_a_frozen_tool_server_is_told_of(backend: Backend, mcp: ServiceProcess, rows: Rows) -> None:
    assert mcp.process is not None
    async with backend(mcp_internal_url=f"{mcp.url}/mcp", slow_notice_seconds=0.5) as chat:
        _, item = await listed(chat, "milk", "bread")
        with frozen(mcp.process.pid):
            stream = chat.open("threads.create", input=user_input("add eggs"))
            events = await stream.__aenter__()
            seen = await first_slow(events)
            action = boxes(item)["milk"]["onChangeAction"]
            action = {"type": action["type"], "payload": action["payload"]}
            ticking = chat.open("threads.custom_action", thread_id=item["thread_id"], item_id=item["id"], action=action)
            ticked = await ticking.__aenter__()
            await first_slow(ticked)
        assert seen[-2]["text"] == "Adding “eggs”…"
        assert [event["type"] async for event in ticked][-1] == "thread.item.replaced"
        assert [event["type"] async for event in events][-1] == "thread.item.done"
        await stream.__aexit__(None, None, None)
        await ticking.__aexit__(None, None, None)
    assert [row["title"] for row in rows("SELECT title FROM tasks ORDER BY id")] == ["milk", "bread", "eggs"]


async def test_a_tool_server_that_stays_frozen_is_an_error(mcp: ServiceProcess) -> None:
    assert mcp.process is not None
    tools = TaskTools(f"{mcp.url}/mcp", None, resend_seconds=20, answer_seconds=0.5)
    await tools.connect()
    await tools.refresh()
    with frozen(mcp.process.pid):
        began = time.monotonic()
        with pytest.raises(ToolsUnavailable):
            await tools.refresh()
        assert time.monotonic() - began < 2
    await tools.refresh()
    await tools.cleanup()


async def test_a_model_that_says_nothing_is_told_of(chat: ChatKit, model: ScriptedModel) -> None:
    await model.script({"text": "At last.", "delay": 1.5})
    answer = await chat.say("hello")
    assert [event["text"] for event in answer.of("progress_update")] == [SLOW], "once for each silence"
    assert answer.text == "At last."
