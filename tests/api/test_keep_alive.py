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

CHAT = "groceries"
COMMENT = ": keep-alive"
LATE = {"text": "Hello.", "hold_after": 0}
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
    received = ""
    async with user.runs.http.stream("POST", path, json=body) as response:
        async for piece in response.aiter_text():
            received += piece
            if received.count(COMMENT) > 2:
                await model.release()
    frames = "\n".join(line for line in received.splitlines() if line != COMMENT).split("\n\n")
    assert all(frame.startswith(("data: ", "id: ", "event: ")) for frame in frames), received
    assert "Hello." in received


async def read_comments(user: User, method: str, path: str, body: Any = None) -> str:
    """Reads until three have come."""
    received = ""
    async with user.runs.http.stream(method, path, json=body) as response:
        async for piece in response.aiter_text():
            received += piece
            if received.count(COMMENT) >= 3:
                return received
    raise AssertionError(received)


async def test_followers(user: User, model: ScriptedModel) -> None:
    await model.script(HANGS)
    run = await start_run(user, CHAT, "hello")
    follow = request("threads.custom_action", thread_id=await find_thread(user, CHAT), action=FOLLOW)
    await asyncio.gather(
        read_comments(user, "POST", "/chatkit", follow),
        read_comments(user, "GET", f"/chats/{CHAT}/interactions/{run}/events"),
    )
    await user.runs.cancel(CHAT, run)


async def test_run_that_waits_for_an_approval(user: User, model: ScriptedModel, stored: Stored) -> None:
    await model.script(add_tasks(11), delete_tasks(*range(1, 12)))
    run = await start_run(user, CHAT, "go on", until="approval_required")
    await until(lambda: stored.run_statuses(user.name) == ["waiting"])
    received = await read_comments(user, "GET", f"/chats/{CHAT}/interactions/{run}/events")
    assert "event: approval_required" in received
    assert "interaction_complete" not in received


async def test_each_event_is_one_line(user: User, model: ScriptedModel) -> None:
    await model.script({"text": "Hello \u2028 you."})
    response = await user.chatkit.post("threads.create", input=user_input("add \u2028 milk"))
    events = re.sub(rb"(?m)^: keep-alive\n+", b"", response.content)
    assert re.fullmatch(rb"(data: \{[^\r\n]+\}\n\n){5,}", events)
