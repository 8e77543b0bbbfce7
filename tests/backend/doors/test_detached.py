"""Turns of a page that says so: leaving does not stop them, and they can be followed."""

import asyncio
from typing import Any

import pytest

from tests.backend.conftest import Backend, Rows
from tests.backend.slow_turns import SLOW, read_text
from tests.chatkit_client import Answer, ChatKit, user_input
from tests.scripted_model import ScriptedModel
from tests.waiting import until

pytestmark = pytest.mark.long

FOLLOW = {"type": "follow", "payload": {}}
SLOWLY = {**SLOW, "token_delay": 0.2}


async def follow(chat: ChatKit, thread: str) -> Answer:
    """Not held to the order of a turn of its own: it may have begun before."""
    async with chat.open("threads.custom_action", thread_id=thread, action=FOLLOW) as events:
        return Answer([event async for event in events])


async def left(chat: ChatKit, rows: Rows, *, at_least: int = 4) -> tuple[str, str]:
    """The thread and the run of an answer whose reader is gone."""
    async with (
        ChatKit(chat.base_url, detached=True) as page,
        page.open("threads.create", input=user_input("count")) as events,
    ):
        told: dict[str, Any] = await anext(events)
        await read_text(events, at_least=at_least)
    [run] = rows("SELECT id, conversation_id FROM runs")
    assert told == {"type": "client_effect", "name": "todo.interaction", "data": {"interaction_id": run["id"]}}
    return run["conversation_id"], run["id"]


async def test_who_leaves_does_not_stop_it(chat: ChatKit, model: ScriptedModel, rows: Rows) -> None:
    await model.script(SLOW)
    thread, _ = await left(chat, rows)
    await until(lambda: rows("SELECT 1 FROM runs WHERE outcome = 'completed'"))
    assert rows("SELECT 1 FROM run_events") == [], "nobody followed it"
    assert (await chat.items(thread))[-1]["content"][0]["text"] == SLOW["text"]


async def test_who_comes_back_follows_it_from_its_beginning(backend: Backend, model: ScriptedModel, rows: Rows) -> None:
    await model.script(SLOWLY)
    async with backend() as one, backend() as other:
        thread, run = await left(one, rows)
        assert (await one.get_thread(thread))["answering"] == run
        here, elsewhere = await asyncio.gather(follow(one, thread), follow(other, thread))
        assert here.text == elsewhere.text == SLOW["text"]
        assert here.events[0]["data"] == {"interaction_id": run}
        assert [item["type"] for item in here.items] == ["user_message", "assistant_message"]
        assert "answering" not in await one.get_thread(thread)
        assert (await follow(one, thread)).events == []


async def test_its_stop_is_asked_for_by_its_id(backend: Backend, model: ScriptedModel, rows: Rows) -> None:
    await model.script({**SLOW, "token_delay": 1})
    async with backend() as one, backend() as other:
        thread, run = await left(one, rows, at_least=1)
        turns = other.app.state.parts.turns  # pyright: ignore[reportAttributeAccessIssue]
        following = asyncio.create_task(follow(other, thread))
        await until(lambda: rows("SELECT 1 FROM run_events WHERE seq > 3"))
        assert not await turns.request_stop(run, conversation_id=thread, user_id="bob")
        assert not await turns.request_stop(run, conversation_id="thr_x", user_id="local")
        assert await turns.request_stop(run, conversation_id=thread, user_id="local")
        told = await following
        assert not await turns.request_stop(run, conversation_id=thread, user_id="local")
    assert rows("SELECT outcome FROM runs") == [{"outcome": "cancelled"}]
    assert SLOW["text"].startswith(told.text)
    assert told.error is None


async def test_who_leaves_before_they_know_which_it_is_stops_it(
    backend: Backend, model: ScriptedModel, rows: Rows
) -> None:
    await model.script(SLOWLY)
    async with backend(slow_notice_seconds=0.05) as chat, ChatKit(chat.base_url, detached=True) as page:
        rows("BEGIN")
        rows("LOCK TABLE conversations")
        async with page.open("threads.create", input=user_input("count")) as events:
            assert (await anext(events))["type"] == "progress_update"
        await asyncio.sleep(0.1)
        rows("COMMIT")
        await until(lambda: rows("SELECT 1 FROM runs WHERE outcome = 'cancelled'"))


async def test_a_turn_takes_so_long_at_most(backend: Backend, model: ScriptedModel, rows: Rows) -> None:
    await model.script({**SLOW, "token_delay": 1})
    async with backend(limit_turn_seconds=1.5) as chat:
        answer = await chat.say("count")
        assert answer.error is not None
        assert "took too long" in answer.error["message"]
        assert answer.text == SLOW["text"][:4]
        assert rows("SELECT outcome FROM runs") == [{"outcome": "failed"}]
        assert [item["type"] for item in await chat.items(answer.thread_id)][1:] == ["assistant_message", "task"]


async def test_other_readers_still_stop_their_answers(chat: ChatKit, model: ScriptedModel, rows: Rows) -> None:
    await model.script(SLOWLY)
    async with chat.open("threads.create", input=user_input("count")) as events:
        assert (await anext(events))["type"] == "thread.created"
        await read_text(events, at_least=4)
    await until(lambda: rows("SELECT 1 FROM runs WHERE outcome = 'cancelled'"))


async def test_only_ones_own_conversations_are_followed(chat: ChatKit) -> None:
    response = await chat.post("threads.custom_action", thread_id="thr_none", action=FOLLOW)
    assert response.status_code == 404
