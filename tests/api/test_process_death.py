"""A process dies while it answers: the conversation is free again, and nothing is lost or done twice."""

import signal

import pytest

from tests.scripted_model import ScriptedModel
from tests.support.answers import HANGS, list_texts, start_run
from tests.support.approvals import APIS, wait_for_approval
from tests.support.completions import check_pairs
from tests.support.fixtures import NewUser
from tests.support.model_requests import requests_to
from tests.support.script import add_task, call, calls, delete_tasks, says, start_coder
from tests.support.stack import Stack
from tests.support.stored import Stored
from tests.support.users import User
from tests.waiting import until
from todo_client.chatkit import user_input

CHAT = "groceries"
RUN_API = APIS["run_api"]
FREE_SECONDS = 30  # on a busy machine; 12 elsewhere

pytestmark = pytest.mark.long(seconds=6)


async def say_when_free(user: User, text: str) -> None:
    """Sends a message until it is taken."""

    async def is_taken() -> bool:
        response = await user.runs.http.post(f"/chats/{CHAT}/interactions", json={"user_message": text})
        assert response.status_code in (200, 409)
        return response.status_code == 200

    await until(is_taken, seconds=FREE_SECONDS)


async def test_tool_call_of_a_killed_process_is_made_once(
    stack: Stack, user: User, new_user: NewUser, model: ScriptedModel, stored: Stored
) -> None:
    """The task server has the call when the process dies; then the user has the message answered again."""
    await model.script(add_task("milk"), add_task("milk"), says("It is on your list."))
    other = new_user(user.name, backend=1)
    with stored.lock_table("tasks"):
        answer = user.chatkit.open("threads.create", input=user_input("add milk"))
        async with answer as events:
            thread = item = ""
            async for event in events:
                if event["type"] == "thread.created":
                    thread = event["thread"]["id"]
                if event["type"] == "thread.item.done" and event["item"]["type"] == "user_message":
                    item = event["item"]["id"]
                if event["type"] == "progress_update":
                    break
            await until(stored.has_waiting_statements)
            stack.backends[0].end(signal.SIGKILL)
    await until(lambda: stored.run_statuses(user.name) != ["running"], seconds=FREE_SECONDS)
    answer = await other.chatkit.stream("threads.retry_after_item", thread_id=thread, item_id=item)
    assert answer.text == "It is on your list."
    assert stored.titles(user.name) == ["milk"], "a retry sends the same idempotency key"
    assert [operation for operation, _ in stored.task_calls(user.name)] == ["add"]


async def test_words_of_a_killed_process_are_kept(
    stack: Stack, user: User, new_user: NewUser, model: ScriptedModel, stored: Stored
) -> None:
    """An answer is stored as it grows."""
    await model.script(HANGS)
    await start_run(user, CHAT, "count", until="answer_delta")
    await until(lambda: any(row["text"].startswith("one") for row in stored.rows_of(user.name, "entries")))
    stack.backends[0].end(signal.SIGKILL)
    await until(lambda: stored.run_statuses(user.name) == ["interrupted"], seconds=FREE_SECONDS)
    asked, text = await list_texts(new_user(user.name, backend=1), thread_of(stored, user))
    assert (asked, text[:3]) == ("count", "one")


async def test_outcome_of_the_call_of_a_killed_process_is_unknown(
    stack: Stack, user: User, new_user: NewUser, model: ScriptedModel, stored: Stored
) -> None:
    """The call had waited for approval, and the task server has it when the process dies: it may have been made."""
    tasks = [f"task {number}" for number in range(11)]
    await model.script(add_task(tasks[0], also=tasks[1:]), says("Added."), delete_tasks(*range(1, 12)))
    await RUN_API.say(user, CHAT, "add them")
    await RUN_API.say(user, CHAT, "delete them")
    waiting = await wait_for_approval(user, CHAT)
    with stored.lock_table("tasks"):
        await RUN_API.decide(user, waiting, approved=True, reason=None)
        await until(stored.has_waiting_statements)
        stack.backends[0].end(signal.SIGKILL)
    await model.script(says("I look."))
    await say_when_free(new_user(user.name, backend=1), "are they gone?")
    messages = (await requests_to(model))[-1]["messages"]
    check_pairs(messages)
    assert [message["content"] for message in messages if message["role"] == "tool"][1:] == [
        "The outcome of this call is unknown: it may have been carried out. Check what is there before repeating it."
    ]


async def test_agent_of_a_killed_process(
    stack: Stack, user: User, new_user: NewUser, model: ScriptedModel, stored: Stored
) -> None:
    """The model is told what the agent had done, and that the outcome of its last call is unknown."""
    writes, sleeps = call("write_file", path="a.txt", content="x"), call("run_command", command="touch begun; sleep 30")
    await model.script(start_coder("write a.txt"), calls(writes, sleeps))
    async with user.runs.interact(CHAT, "do it") as events:
        await anext(events)
        other = new_user(user.name, backend=1)
        await other.wait_for_file(CHAT, "begun")
        stack.backends[0].end(signal.SIGKILL)
    await model.reset()
    await model.script(says("I look."))
    await say_when_free(other, "what happened?")
    [shown] = [item for item in await other.chatkit.items(thread_of(stored, user)) if item["type"] == "workflow"]
    assert "loading" not in str(shown)
    messages = (await requests_to(model))[-1]["messages"]
    check_pairs(messages)
    [told] = [message["content"] for message in messages if message["role"] == "tool"]
    assert "a.txt" in told
    assert "unknown" in told


def thread_of(stored: Stored, user: User) -> str:
    return str(stored.runs(user.name)[0].conversation_id)
