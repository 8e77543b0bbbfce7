"""Readers that lose their connection, leave or come back: what they read goes on where it was left."""

import asyncio
import random

import pytest

from tests.chatkit_client import Answer
from tests.scripted_model import ScriptedModel
from tests.support.answers import FOLLOW, HANGS, find_thread, follow, start_run
from tests.support.fixtures import NewUser
from tests.support.resuming import read_with_disconnects
from tests.support.script import PAUSING, SLOW_TEXT, add_task
from tests.support.stored import Stored
from tests.support.users import User
from tests.waiting import until
from todo_client.chatkit import request

pytestmark = pytest.mark.long

CHAT = "groceries"
OPEN_RESPONSES = 32  # of one user in a process


@pytest.mark.long(seconds=5)
@pytest.mark.parametrize("seed", range(2))
async def test_reader_that_is_cut_off_at_any_byte(
    seed: int, user: User, new_user: NewUser, model: ScriptedModel
) -> None:
    processes = (user.runs, new_user(user.name, backend=1).runs)
    assert await read_with_disconnects(random.Random(seed), processes, model, CHAT, readers=3) > 5


async def test_page_that_comes_back_follows_from_the_beginning(
    user: User, new_user: NewUser, model: ScriptedModel
) -> None:
    await model.script(add_task("milk"), {**PAUSING, "hold_after": 4, "reasoning": "One after the other."})
    run = await start_run(user, CHAT, "count", until="answer_delta")
    thread = await find_thread(user, CHAT)
    other = new_user(user.name, backend=1)
    assert (await other.runs.get_chat(thread))["answering"] == run
    following = {"thread_id": thread, "action": FOLLOW}
    async with (
        user.chatkit.open("threads.custom_action", **following) as here,
        other.chatkit.open("threads.custom_action", **following) as elsewhere,
    ):
        answers = [Answer([await anext(events)]) for events in (here, elsewhere)]
        await model.release()
        for answer, events in zip(answers, (here, elsewhere), strict=True):
            answer.events += [event async for event in events]
    for answer in answers:
        assert answer.text == SLOW_TEXT
        assert answer.events[0]["data"] == {"interaction_id": run}
        kinds = ["user_message", "widget", "workflow", "assistant_message", "widget"]
        assert [item["type"] for item in answer.items] == kinds
    assert (await user.runs.get_chat(thread))["answering"] is None
    assert (await follow(user, thread)).events == []


async def test_readers_of_a_user_are_limited(user: User, model: ScriptedModel, stored: Stored) -> None:
    await model.script(HANGS)
    run = await start_run(user, CHAT, "count", until="answer_delta")
    events = f"/chats/{CHAT}/interactions/{run}/events"
    thread = await find_thread(user, CHAT)
    async with asyncio.timeout(240), asyncio.TaskGroup() as readers:
        held = [asyncio.Event() for _ in range(OPEN_RESPONSES)]
        leave = asyncio.Event()

        async def hold(reading: asyncio.Event) -> None:
            async with user.runs.events(CHAT, run) as stream:
                await anext(stream)
                reading.set()
                await leave.wait()

        for one in held:
            readers.create_task(hold(one))
        for one in held:
            await one.wait()
        body = request("threads.custom_action", thread_id=thread, action=FOLLOW)
        rejected = [
            await user.runs.http.get(events),
            await user.runs.http.post("/chats/other/interactions", json={"user_message": "hello"}),
            await user.chatkit.http.post("/chatkit", json=body),
        ]
        assert [response.status_code for response in rejected] == [429] * 3
        assert len(stored.runs(user.name)) == 1
        leave.set()

    async def is_read() -> bool:
        async with user.runs.http.stream("GET", events) as response:
            return response.status_code == 200

    await until(is_read)
    await user.runs.cancel(CHAT, run)
