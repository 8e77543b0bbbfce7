"""Limits of a user, as each API enforces them: a status, one sentence, and nothing stored."""

from typing import Any

import httpx2
import pytest

from tests.runs_client import names, text_of
from tests.scripted_model import ScriptedModel
from tests.support.answers import HANGS, find_thread, list_texts
from tests.support.backends import local_backend, user_at
from tests.support.script import PAUSING, says
from tests.support.stack import Services
from tests.support.stored import Stored
from tests.support.users import User
from tests.waiting import until
from todo_client.chatkit import request, user_input
from todo_client.sse import EventParser


@pytest.fixture
def stack_name() -> str:
    return "limits"


async def send(user: User, api: str, text: str, chat: str) -> httpx2.Response:
    """One message to a chat of this name; ChatKit's operation makes a thread of its own."""
    requests: dict[str, tuple[str, dict[str, Any]]] = {
        "chatkit": ("/chatkit", request("threads.create", input=user_input(text))),
        "plain": ("/chatkit", {"message": text, "conversation_id": chat}),
        "run_api": (f"/chats/{chat}/interactions", {"user_message": text}),
        "chat": ("/chat", {"threadId": chat, "messages": [{"role": "user", "content": text}]}),
        "ai_sdk": ("/chat/stream", {"threadId": chat, "messages": [{"role": "user", "content": text}]}),
    }
    path, body = requests[api]
    return await user.runs.http.post(path, json=body)


APIS = ("chatkit", "plain", "run_api", "chat", "ai_sdk")


def check_rejected(response: httpx2.Response, *statuses: int) -> None:
    """By a status, or where a stream has begun by one error event, with a sentence."""
    if response.status_code == 200 and response.headers["content-type"].startswith("text/event-stream"):
        [event] = [one.data for one in EventParser().feed(response.content)]
        assert event["type"] == "error"
        sentence = event["message"]
    else:
        assert response.status_code in statuses, response.text
        sentence = response.json()["error"]
    assert sentence.endswith(".")


async def test_long_message(user: User, model: ScriptedModel, stored: Stored) -> None:
    for api in APIS:
        check_rejected(await send(user, api, "a" * 201, "one"), 400, 413)
    assert await model.requests() == []
    assert stored.row_counts(user.name) == {}


async def test_messages_per_minute(services: Services, model: ScriptedModel) -> None:
    await model.script(*[says("Hello.")] * 3)
    # So few that the next one is allowed only after 30 seconds.
    async with local_backend(services, LIMIT_RUNS_PER_MINUTE="2") as backend, User(backend) as user:
        for number in range(2):
            response = await send(user, "run_api", "hello", "one")
            assert response.status_code == 200, f"message {number}: {response.text}"
        for api in APIS:
            check_rejected(await send(user, api, "hello", "one"), 429)
        assert len(await model.requests()) == 2
        async with User(backend) as other:
            assert (await send(other, "run_api", "hello", "one")).status_code == 200


@pytest.mark.parametrize("api", APIS)
async def test_running_answers(api: str, user: User, model: ScriptedModel, stored: Stored) -> None:
    await model.script(PAUSING, says("Hello."))
    async with user.runs.interact("slow", "count") as events:
        await anext(events)
        check_rejected(await send(user, api, "hello", "another"), 429)
        await model.release()
        async for _ in events:
            pass
    await until(lambda: "running" not in stored.run_statuses(user.name))
    assert (await send(user, api, "hello", "another")).status_code == 200


@pytest.mark.parametrize("api", APIS)
async def test_conversations(api: str, user: User, model: ScriptedModel, stored: Stored) -> None:
    await model.script(*[says("Hello.")] * 4)
    for number in range(3):
        assert (await send(user, "run_api", "hello", f"chat-{number}")).status_code == 200
    check_rejected(await send(user, api, "hello", "one-more"), 429)
    assert len(stored.conversations(user.name)) == 3
    assert (await send(user, "run_api", "hello", "chat-0")).status_code == 200, "older ones go on"


@pytest.mark.parametrize("api", APIS)
async def test_model_tokens(api: str, user: User, model: ScriptedModel, stored: Stored) -> None:
    await model.script({**says("Hello."), "usage": {"prompt_tokens": 5_000_000, "completion_tokens": 1}})
    assert (await send(user, "run_api", "hello", "one")).status_code == 200
    response = await send(user, api, "and now?", "one")
    check_rejected(response, 429)
    assert "You have used up your 5,000,000 model tokens of today. Try again " in response.text
    assert len(await model.requests()) == len(stored.runs(user.name)) == 1


@pytest.mark.long
async def test_seconds_of_an_answer(services: Services, model: ScriptedModel) -> None:
    await model.script(HANGS, says("Hello."))
    async with user_at(services, LIMIT_RUN_SECONDS="2") as user:
        events = await user.runs.say("one", "count")
        assert names(events)[-1] == "interaction_complete"
        assert events[-1].data["status"] == "FAILED"
        assert "error" in names(events)
        shown = await list_texts(user, await find_thread(user, "one"))
        assert shown == ["count", *filter(None, [text_of(events)])], "what was shown is kept"
        assert names(await user.runs.say("one", "hello"))[-1] == "interaction_complete"


async def test_requests_per_minute(services: Services, model: ScriptedModel, stored: Stored) -> None:
    """Whatever is asked counts; what is rejected changes nothing."""
    await model.script(says("Hello."))
    # So few that the next one is allowed only after 30 seconds.
    async with local_backend(services, LIMIT_REQUESTS_PER_MINUTE="2") as backend, User(backend) as user:
        thread = (await user.chatkit.say("hello")).thread_id
        *_, rejected = [
            await user.chatkit.post("threads.update", thread_id=thread, title=f"title {number}") for number in range(2)
        ]
        check_rejected(rejected, 429)
        assert stored.conversation_title(user.name, thread) == "title 0"
        token = {"Authorization": f"Bearer {user.token}"}
        check_rejected(await user.runs.http.post("/session", headers=token), 429)
        async with User(backend) as other:
            assert (await other.chatkit.post("threads.list")).status_code == 200
