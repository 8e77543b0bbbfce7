"""The task server, the model or the database goes away: what the user is shown, and what is done."""

import asyncio
import signal
from collections.abc import Iterator

import pytest

from tests.chatkit_client import check_sequence
from tests.conftest import find_free_port
from tests.processes import ServiceProcess
from tests.scripted_model import ScriptedModel
from tests.support.backends import local_backend, user_at
from tests.support.model_requests import requests_to
from tests.support.script import PAUSING, add_task, says
from tests.support.stack import Stack
from tests.support.stored import Stored
from tests.support.users import User
from todo_client.chatkit import user_input

pytestmark = pytest.mark.long


@pytest.fixture
def mcp(stack: Stack) -> Iterator[ServiceProcess]:
    """The task server that all stacks share; it runs again after the test."""
    yield stack.services.mcp
    if not stack.services.mcp.is_running:
        stack.services.mcp.start()
    stack.services.mcp.wait_until_ready()


def nowhere() -> str:
    return f"http://127.0.0.1:{find_free_port()}"


@pytest.mark.long(seconds=5)
async def test_restart_of_the_task_server_is_not_noticed(
    user: User, mcp: ServiceProcess, model: ScriptedModel, stored: Stored
) -> None:
    await model.script(add_task("milk"), says("Added."), add_task("bread"), says("Added."))
    first = await user.chatkit.say("add milk")
    mcp.end(signal.SIGKILL)
    asyncio.get_running_loop().call_later(0.5, mcp.start)
    assert (await user.chatkit.say("add bread", first.thread_id)).error is None
    assert stored.titles(user.name) == ["milk", "bread"]


async def test_title_of_a_tag_cannot_be_looked_up(
    stack: Stack, user: User, mcp: ServiceProcess, model: ScriptedModel
) -> None:
    """The message is stored and read by the task's number, also later."""
    await model.script(says("Hello."), says("Later."), says("Still."))
    async with user_at(stack.services, user, MCP_RESEND_SECONDS="0.1") as there:
        thread = (await there.chatkit.say("hello")).thread_id
        mcp.end()
        tag = {"type": "input_tag", "id": "7", "text": "forged", "data": {}}
        content = [{"type": "input_text", "text": "complete "}, tag]
        await there.chatkit.say("", thread, content=content)
        mcp.start()
        mcp.wait_until_ready()
        await there.chatkit.say("well?", thread)
        shown = (await there.chatkit.items(thread))[2]
    _, first, second = [body["messages"] for body in await requests_to(model)]
    assert "@7: its title could not be looked up" in str(first)
    assert second[: len(first)] == first
    assert shown["content"][1]["text"] == "task 7"


async def test_task_server_that_stays_away(stack: Stack, user: User, model: ScriptedModel, stored: Stored) -> None:
    """The answer fails and can be tried again, where the task server is back."""
    await model.script(says("Hello."))
    thread = (await user.chatkit.say("hello")).thread_id
    away = {"MCP_INTERNAL_URL": f"{nowhere()}/mcp", "MCP_RESEND_SECONDS": "0.3"}
    async with user_at(stack.services, user, **away) as there:
        failed = await there.chatkit.say("add milk", thread)
        assert failed.error is not None
        assert failed.error["allow_retry"] is True
        assert (await there.runs.http.get("/ready")).status_code == 503
    await model.script(add_task("milk"), says("Added."))
    again = await user.chatkit.stream("threads.retry_after_item", thread_id=thread, item_id=failed.user_item_id)
    assert again.error is None
    assert stored.titles(user.name) == ["milk"]


async def test_model_that_cannot_be_reached(stack: Stack) -> None:
    async with user_at(stack.services, LLM_BASE_URL=f"{nowhere()}/v1") as user:
        answer = await user.chatkit.say("hello")
        assert answer.error is not None
        assert answer.error["allow_retry"] is True
        ready = await user.runs.ready()
        assert ready["status"] == "ready", "the model is reported, not required"
        assert ready["model"]["last"] != "ok"


async def test_process_that_answers_as_many_as_it_may(stack: Stack, model: ScriptedModel, stored: Stored) -> None:
    await model.script(PAUSING, says("Hello."))
    async with (
        local_backend(stack.services, LIMIT_RUNS_AT_ONCE="1") as backend,
        User(backend) as one,
        User(backend) as other,
        one.runs.interact("one", "count") as events,
    ):
        await anext(events)
        response = await other.runs.http.post("/chats/two/interactions", json={"user_message": "hello"})
        assert response.status_code == 503
        assert int(response.headers["retry-after"]) > 0
        assert stored.row_counts(other.name) == {}
        await model.release()
        async for _ in events:
            pass
        assert (await other.runs.say("two", "hello"))[-1].data["status"] == "COMPLETED"


async def test_database_that_fails_before_an_answer(user: User, stored: Stored) -> None:
    with stored.reject_new_messages():
        response = await user.chatkit.post("threads.create", input=user_input("hello"))
    assert response.status_code in (500, 503)
    assert response.json()["error"]
    assert stored.conversations(user.name) == []


async def test_database_that_fails_during_an_answer(user: User, model: ScriptedModel, stored: Stored) -> None:
    await model.script(PAUSING, says("Hello."))
    async with user.chatkit.open("threads.create", input=user_input("count")) as events:
        received = [await anext(events) for _ in range(4)]
        with stored.reject_new_messages():
            await model.release()
            received += [event async for event in events]
    check_sequence(received, created=True)
    assert [event["type"] for event in received].count("error") == 1
    assert received[-1]["type"] == "error"
    run = await stored.run_with_status(user.name, "interrupted")  # by the sweep, as its outcome could not be stored
    assert run.conversation_id
    assert (await user.chatkit.say("hello", run.conversation_id)).text == "Hello."
