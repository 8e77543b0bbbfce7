"""What a process cannot serve in time it refuses at once, with when to try again."""

import asyncio
import json
import time
from contextlib import AsyncExitStack, ExitStack
from typing import Any

import pytest

from backend.conversation.errors import Overloaded
from backend.turn.lifecycle.room import Room
from tests.backend.conftest import Backend, Rows
from tests.backend.slow_turns import SLOW, read_text
from tests.chatkit_client import ChatKit, user_input
from tests.scripted_model import ScriptedModel
from tests.soon import is_soon
from tests.waiting import until

SENTENCE = "try again in a few seconds"


async def refused_everywhere(chat: ChatKit, thread: str) -> None:
    """At each door."""
    response = await chat.post("threads.add_user_message", thread_id=thread, input=user_input("hello"))
    [event] = [json.loads(line.removeprefix("data: ")) for line in response.text.split("\n\n") if line]
    assert (event["type"], event["allow_retry"]) == ("error", True)
    assert SENTENCE in event["message"]
    plain = await chat.http.post("/chatkit", json={"message": "hello"})
    assert SENTENCE in plain.text
    bodies: dict[str, Any] = {
        "/chat": {"messages": [{"role": "user", "content": "hello"}]},
        "/chats/other/interactions": {"user_message": "hello"},
    }
    for path, body in bodies.items():
        response = await chat.http.post(path, json=body)
        assert (response.status_code, response.headers["retry-after"]) == (503, "5")
        assert SENTENCE in response.json()["error"]


async def test_one_turn_more_than_there_is_room_for_is_refused_until_another_ends(
    backend: Backend, model: ScriptedModel, rows: Rows
) -> None:
    async with backend(limit_turns_at_once=2) as chat:
        thread = (await chat.say("hello")).thread_id
        await model.script(*[SLOW | {"token_delay": 1}] * 2)
        async with (
            chat.open("threads.create", input=user_input("one")) as first,
            chat.open("threads.create", input=user_input("two")) as second,
        ):
            for events in (first, second):
                await read_text(events, at_least=4)
            before = rows("SELECT id FROM messages ORDER BY seq")
            await refused_everywhere(chat, thread)
            assert rows("SELECT id FROM messages ORDER BY seq") == before
        await until(lambda: not chat.app.state.parts.turns.count)  # pyright: ignore[reportAttributeAccessIssue]
        assert (await chat.say("hello", thread)).error is None


async def test_it_sees_that_the_event_loop_lags_and_that_it_has_caught_up() -> None:
    room = Room(None, 0.01)
    watching, lagging = asyncio.create_task(room.watch()), asyncio.create_task(_lag())
    await until(lambda: room.lags)
    with pytest.raises(Overloaded), room.place(running=20):
        pass
    with room.place(running=3):
        pass  # so few are not why
    lagging.cancel()
    await until(lambda: not room.lags)
    watching.cancel()


async def test_who_gets_no_connection_to_the_database_is_told_within_a_second(backend: Backend) -> None:
    async with backend(limit_lag_seconds=0.03) as chat, AsyncExitStack() as held:
        thread = (await chat.say("hello")).thread_id
        engine = chat.app.state.parts.engine  # type: ignore[attr-defined]
        for _ in range(10):
            await held.enter_async_context(engine.connect())
        began = time.monotonic()
        response = await chat.post("threads.add_user_message", thread_id=thread, input=user_input("hello"))
        assert SENTENCE in response.text
        assert is_soon(time.monotonic() - began)


async def _lag() -> None:
    while True:
        time.sleep(0.03)  # noqa: ASYNC251 - as work does that is too much
        await asyncio.sleep(0)


@pytest.mark.parametrize(
    ("lates", "lags"),
    [
        ([0.2] * 11, True),
        ([0.0] * 5 + [0.2] * 6, True),
        ([0.0] * 6 + [0.2] * 5, False),
        ([0.2] * 10, False),  # not for long enough
        ([0.0] * 10 + [30.0], False),  # one thing that took long, or a machine that slept
        ([0.2] * 11 + [0.01] * 6, False),  # it has caught up
        ([0.05] * 60, False),
    ],
)
def test_it_lags_when_most_looks_are_late(lates: list[float], lags: bool) -> None:
    room = Room(None, 0.1)
    for late in lates:
        room.look(late)
    assert room.lags is lags


async def test_a_queue_of_turns_that_do_not_begin_gets_no_longer() -> None:
    room = Room(None, 0.03)
    with ExitStack() as beginning:
        for _ in range(4):
            beginning.enter_context(room.place(running=0))
        await asyncio.sleep(0.6)  # one person's lock, maybe
        beginning.enter_context(room.place(running=0))
        beginning.enter_context(room.place(running=0))
        await asyncio.sleep(0.6)
        with pytest.raises(Overloaded), room.place(running=0):
            pass
    with room.place(running=0):
        pass


async def test_turns_that_begin_count_and_their_place_is_free_again() -> None:
    room = Room(2)
    with room.place(running=0), room.place(running=0), pytest.raises(Overloaded), room.place(running=0):
        pass
    with pytest.raises(ValueError, match="x"), room.place(running=1):
        raise ValueError("x")
    with room.place(running=1):
        pass
    with pytest.raises(Overloaded), room.place(running=2):
        pass
