"""A stream ends with the sign-in that opened it: its token expires, or its session is ended. Its run goes on."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from typing import Any

import httpx2
import pytest

from backend.api import identity
from tests.scripted_model import ScriptedModel
from tests.serving import http_client
from tests.support.answers import FOLLOW, find_thread, start_run
from tests.support.backends import LocalBackend, local_backend, user_at
from tests.support.database_proxy import database_proxy
from tests.support.script import add_tasks, delete_tasks, pausing_answer, says
from tests.support.stack import Stack
from tests.support.stored import Stored
from tests.support.users import User
from tests.waiting import until
from todo_client import ApiError
from todo_client.agent import Agent
from todo_client.chatkit import request, user_input

CHAT = "groceries"
STARTS: dict[str, tuple[str, Any]] = {
    "chatkit": ("/chatkit", request("threads.create", input=user_input("hello"))),
    "detached": ("/chatkit", request("threads.create", {"detached": True}, input=user_input("hello"))),
    "plain": ("/chatkit", {"message": "hello"}),
    "run_api": (f"/chats/{CHAT}/interactions", {"user_message": "hello"}),
    "ai_sdk": ("/chat/stream", {"messages": [{"role": "user", "content": "hello"}]}),
}
ANSWER = pausing_answer("Hello ", "there.")


class Clock:
    """The clock by which streams end; tokens that are sent are checked by the real one."""

    seconds = 0.0

    def time(self) -> float:
        return time.time() + self.seconds


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(identity, "time", clock)
    return clock


@pytest.fixture
async def backend(stack: Stack) -> AsyncIterator[LocalBackend]:
    """It looks every 0.05 seconds, not every 15."""
    async with local_backend(stack.services, 0.05) as backend:
        yield backend


@pytest.fixture
async def user(backend: LocalBackend) -> AsyncIterator[User]:
    async with User(backend) as user:
        yield user


async def read_to_the_end(response: httpx2.Response, text: str, then: Callable[[], object]) -> str:
    """Calls `then` once the text was received; returns all that was."""
    received, has_called = "", False
    async for piece in response.aiter_text():
        received += piece
        if text in received and not has_called:
            has_called = True
            then()
    assert has_called, received
    return received


@pytest.mark.parametrize("stream", STARTS)
async def test_answer_whose_token_expires(
    stream: str, user: User, model: ScriptedModel, stored: Stored, clock: Clock
) -> None:
    await model.script(ANSWER)
    path, body = STARTS[stream]
    async with user.runs.http.stream("POST", path, json=body) as response:
        received = await read_to_the_end(response, "Hello", lambda: setattr(clock, "seconds", 700.0))
    await model.release()
    await until(lambda: stored.run_statuses(user.name) == ["completed"])
    assert "there." not in received
    assert not any(end in received for end in ("interaction_complete", "message_complete", "[DONE]", '"finish"'))


async def test_followers_whose_token_expires(user: User, model: ScriptedModel, stored: Stored, clock: Clock) -> None:
    await model.script(ANSWER)
    run = await start_run(user, CHAT, "hello", until="answer_delta")
    thread = await find_thread(user, CHAT)
    path = f"/chats/{CHAT}/interactions/{run}/events"
    follow = request("threads.custom_action", thread_id=thread, action=FOLLOW)
    is_read = 0

    def let_expire() -> None:
        nonlocal is_read
        is_read += 1
        clock.seconds = 700.0 * (is_read == 3)

    async def read(method: str, path: str, body: Any = None) -> str:
        async with user.runs.http.stream(method, path, json=body) as response:
            return await read_to_the_end(response, "Hello", let_expire)

    texts = await asyncio.gather(
        read("POST", "/chatkit", follow), read("GET", path), read("GET", f"/chat/stream/{CHAT}/stream")
    )
    await model.release()
    await until(lambda: stored.run_statuses(user.name) == ["completed"])
    assert not any("there." in text for text in texts)


async def test_approval_is_not_shown_to_an_expired_token(
    user: User, model: ScriptedModel, stored: Stored, clock: Clock
) -> None:
    await model.script(add_tasks(11), delete_tasks(*range(1, 12)), says("Fine."))
    run = await start_run(user, CHAT, "go on", until="approval_required")
    await until(lambda: stored.run_statuses(user.name) == ["waiting"])
    approval = (await user.runs.get_interaction(CHAT, run))["approvals"][0]["approval_id"]
    async with user.runs.http.stream("GET", f"/chats/{CHAT}/interactions/{run}/events") as response:
        received = await read_to_the_end(response, "approval_required", lambda: setattr(clock, "seconds", 700.0))
    await user.runs.approve(CHAT, run, approval, approved=True)
    await until(lambda: stored.run_statuses(user.name) == ["completed"])
    assert "event: approved" not in received
    assert stored.titles(user.name) == []


async def test_answer_as_one_object(user: User, model: ScriptedModel, stored: Stored, clock: Clock) -> None:
    await model.script(ANSWER)
    asking = asyncio.create_task(user.runs.http.post("/chat", json=STARTS["ai_sdk"][1]))
    await until(lambda: stored.run_statuses(user.name) == ["running"])
    clock.seconds = 700.0
    await model.release()
    response = await asking
    assert response.status_code == 401
    assert "there." not in response.text
    assert stored.run_statuses(user.name) == ["completed"]


async def test_answer_as_one_object_to_a_session_that_was_ended(
    user: User, model: ScriptedModel, stored: Stored
) -> None:
    await model.script(ANSWER)
    headers = await begin_session(user)
    async with http_client(user.url) as browser:
        asking = asyncio.create_task(browser.post("/chat", json=STARTS["ai_sdk"][1], headers=headers))
        await until(lambda: stored.run_statuses(user.name) == ["running"])
        assert (await browser.delete("/session", headers=headers)).status_code == 204
        await model.release()
        assert (await asking).status_code == 401


async def test_session_that_is_ended_while_a_look_gets_no_response(
    stack: Stack, model: ScriptedModel, stored: Stored
) -> None:
    await model.script(ANSWER)
    path, body = STARTS["detached"]
    async with database_proxy(stack.services.database_url) as proxy:
        settings = {"DATABASE_URL": proxy.url, "LISTEN_DATABASE_URL": stack.services.database_url}
        async with user_at(stack.services, **settings) as user, http_client(user.url) as browser:
            headers = await begin_session(user)
            ending: list[asyncio.Task[None]] = []

            async def end_elsewhere() -> None:
                proxy.holds_before = b"ended_sessions"
                await until(lambda: proxy.holds_before is None)
                async with http_client(stack.url) as other:
                    ended = await other.delete("/session", headers=headers | {"Origin": stack.url})
                    assert ended.status_code == 204

            in_time = asyncio.timeout(60)  # else it is open as long as the answer
            async with in_time, browser.stream("POST", path, json=body, headers=headers) as response:
                received = await read_to_the_end(
                    response, "Hello", lambda: ending.append(asyncio.create_task(end_elsewhere()))
                )
            await ending[0]
            proxy.released.set()
            await model.release()
            await until(lambda: stored.run_statuses(user.name) == ["completed"])
    assert "there." not in received


async def begin_session(user: User) -> dict[str, str]:
    """Returns the headers of the page."""
    signed_in = await user.runs.http.post("/session")
    user.runs.http.cookies.clear()
    return {"Cookie": signed_in.headers["set-cookie"].partition(";")[0], "Origin": user.url}


async def test_download_whose_token_expires(user: User, model: ScriptedModel, clock: Clock) -> None:
    """It is cut off, so that nobody takes the beginning for the whole."""
    await model.script(says("Hello."))
    await start_run(user, CHAT, "hello", until="interaction_complete")
    path, size = f"/chats/{CHAT}/files/large.bin", 9_500_000
    assert (await user.runs.http.put(path, content=bytes(size))).status_code == 201
    received = 0
    with pytest.raises(httpx2.TransportError):
        async with user.runs.http.stream("GET", path) as response:
            async for piece in response.aiter_raw(4_096):
                received += len(piece)
                if not clock.seconds:
                    clock.seconds = 700.0
                    await asyncio.sleep(0.2)  # in which the backend looks several times
    assert 0 < received < size


async def test_session_that_is_ended(user: User, model: ScriptedModel, stored: Stored) -> None:
    """Also in another process, which the database tells."""
    await model.script(ANSWER)
    headers = await begin_session(user)
    async with http_client(user.url) as browser:
        left: list[asyncio.Task[httpx2.Response]] = []

        def sign_out() -> None:
            left.append(asyncio.create_task(browser.delete("/session", headers=headers)))

        path, body = STARTS["detached"]
        async with browser.stream("POST", path, json=body, headers=headers) as response:
            assert response.status_code == 200
            received = await read_to_the_end(response, "Hello", sign_out)
        assert (await left[0]).status_code == 204
        await model.release()
        await until(lambda: stored.run_statuses(user.name) == ["completed"])
        assert "there." not in received
        assert (await browser.post("/chatkit", json=request("threads.list"), headers=headers)).status_code == 401


@pytest.mark.long(seconds=15)
async def test_client_whose_token_expires(stack: Stack, model: ScriptedModel, stored: Stored) -> None:
    """It says what to do, and another one with a new token reads the answer from its beginning."""
    await model.script(ANSWER)
    async with User(stack) as user:
        token = user.mint_token(exp=int(time.time()))  # which is accepted for ten seconds
        agent = Agent(user.url, token=token, chat=CHAT)
        with pytest.raises(ApiError, match=r"^You are not signed in\. Sign in on the page, or send a valid bearer"):
            await agent.prompt("hello")
        assert stored.run_statuses(user.name) == ["running"]
        await model.release()
        result = await Agent(user.url, token=user.token, chat=CHAT).resume()
        texts = result.text if result else (await user.runs.get_chat(CHAT))["interactions"][0]
        assert "Hello there." in str(texts)
