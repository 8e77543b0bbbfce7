"""Every stream of events is kept open by comments while nothing else is sent."""

import asyncio
import re
from collections.abc import AsyncIterator
from typing import Any

import pytest

from tests.scripted_model import ScriptedModel
from tests.support.answers import FOLLOW, HANGS, find_thread, start_run
from tests.support.backends import local_backend
from tests.support.script import add_tasks, delete_tasks
from tests.support.stack import Stack
from tests.support.stored import Stored
from tests.support.users import User
from tests.waiting import until
from todo_client.chatkit import request, user_input

pytestmark = pytest.mark.long

CHAT = "groceries"
COMMENT = ": keep-alive"
LATE = {"text": "Hello.", "delay": 0.4}
SAID = {"messages": [{"role": "user", "content": "hello"}]}
STREAMS: dict[str, tuple[str, Any]] = {
    "chatkit": ("/chatkit", request("threads.create", input=user_input("hello"))),
    "plain": ("/chatkit", {"message": "hello"}),
    "run_api": (f"/chats/{CHAT}/interactions", {"user_message": "hello"}),
    "ai_sdk": ("/chat/stream", SAID),
}


@pytest.fixture
async def user(stack: Stack) -> AsyncIterator[User]:
    """At a backend that sends a comment after 0.05 seconds, not after 15."""
    async with local_backend(stack.services, 0.05) as backend, User(backend) as user:
        yield user


@pytest.mark.parametrize("stream", STREAMS)
async def test_late_answer(stream: str, user: User, model: ScriptedModel) -> None:
    await model.script(LATE)
    path, body = STREAMS[stream]
    response = await user.runs.http.post(path, json=body)
    lines = response.text.splitlines()
    assert lines.count(COMMENT) > 2
    frames = "\n".join(line for line in lines if line != COMMENT).split("\n\n")
    assert all(frame.startswith(("data: ", "id: ", "event: ")) for frame in frames), response.text


async def test_followers(user: User, model: ScriptedModel) -> None:
    await model.script({**HANGS, "delay": 0.3})
    run = await start_run(user, CHAT, "hello")
    follow = request("threads.custom_action", thread_id=await find_thread(user, CHAT), action=FOLLOW)
    reading = [
        asyncio.create_task(user.chatkit.http.post("/chatkit", json=follow)),
        asyncio.create_task(user.runs.http.get(f"/chats/{CHAT}/interactions/{run}/events")),
    ]
    async with user.runs.events(CHAT, run) as events:
        async for event in events:
            if event.name == "answer_delta":
                break
    await asyncio.sleep(0.2)
    await user.runs.cancel(CHAT, run)
    assert all(response.text.count(COMMENT) > 2 for response in await asyncio.gather(*reading))


async def test_run_that_waits_for_an_approval(user: User, model: ScriptedModel, stored: Stored) -> None:
    await model.script(add_tasks(11), delete_tasks(*range(1, 12)))
    run = await start_run(user, CHAT, "go on", until="approval_required")
    await until(lambda: stored.run_statuses(user.name) == ["waiting"])
    received = ""
    path = f"/chats/{CHAT}/interactions/{run}/events"
    async with asyncio.timeout(10), user.runs.http.stream("GET", path) as response:
        async for piece in response.aiter_text():
            received += piece
            if received.count(COMMENT) == 3:
                break
    assert "event: approval_required" in received
    assert "interaction_complete" not in received


async def test_each_event_is_one_line(user: User, model: ScriptedModel) -> None:
    await model.script({"text": "Hello \u2028 you."})
    response = await user.chatkit.post("threads.create", input=user_input("add \u2028 milk"))
    events = re.sub(rb"(?m)^: keep-alive\n+", b"", response.content)
    assert re.fullmatch(rb"(data: \{[^\r\n]+\}\n\n){5,}", events)
