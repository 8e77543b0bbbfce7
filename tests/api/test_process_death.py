"""A process dies while it answers: another takes its conversations over, and nothing is lost or done twice."""

import signal
from typing import Any

import pytest

from tests.runs_client import id_of, names
from tests.scripted_model import ScriptedModel
from tests.support.answers import HANGS, list_texts, list_user_items, start_run
from tests.support.approvals import APIS, wait_for_approval
from tests.support.completions import check_pairs
from tests.support.fixtures import NewUser
from tests.support.model_requests import outputs_of, requests_to
from tests.support.script import add_task, call, calls, delete_tasks, says, start_coder
from tests.support.stack import Stack
from tests.support.stored import Stored
from tests.support.users import User
from tests.waiting import until

CHAT = "groceries"
RUN_API = APIS["run_api"]
TASKS = [f"task {number}" for number in range(11)]
ADD_MILK = add_task("milk")
AGENT_CALLS = calls(
    call("write_file", path="a.txt", content="x"), call("run_command", command="touch begun; sleep 300")
)
STEPS: list[dict[str, Any]] = [
    {"when": "count", **HANGS},
    {"when": "add milk", **ADD_MILK},
    *({"when": "add them", **step} for step in (add_task(TASKS[0], also=TASKS[1:]), says("Added."))),
    {"when": "delete them", **delete_tasks(*range(1, 12))},
    {"when": "work", **start_coder("write a.txt")},
    {"when": "write a.txt", **AGENT_CALLS},
    {"when": "are they gone?", **says("I look.")},
    {"when": "what happened?", **says("I look.")},
]

pytestmark = pytest.mark.long(seconds=15)


async def test_conversations_of_a_killed_process(
    stack: Stack, new_user: NewUser, model: ScriptedModel, stored: Stored
) -> None:
    """It is killed during an answer and an agent's command, and before it learns that two calls were made."""
    await model.script(*STEPS)
    counting, adding, deleting, working = (new_user() for _ in range(4))
    run = await start_run(counting, CHAT, "count", until="answer_delta", key="the-first")
    await counting.runs.send(CHAT, run, "and then", mode="follow_up")
    await until(lambda: any(row["text"].startswith("one") for row in stored.rows_of(counting.name, "entries")))
    for text in ("add them", "delete them"):
        await RUN_API.say(deleting, CHAT, text)
    approval = await wait_for_approval(deleting, CHAT)
    await start_run(working, CHAT, "work")
    await working.wait_for_file(CHAT, "begun")
    with stored.lock_table("tasks"):
        await start_run(adding, CHAT, "add milk")
        await RUN_API.decide(deleting, approval, approved=True, reason=None)
        await until(lambda: stored.has_waiting_statements(count=2))
        stack.backends[0].send(signal.SIGSTOP)
    await until(lambda: (stored.titles(adding.name), stored.titles(deleting.name)) == (["milk"], []))
    stack.backends[0].end(signal.SIGKILL)
    users = (counting, adding, deleting, working)
    await until(lambda: "running" not in {status for user in users for status in stored.run_statuses(user.name)})
    counting, adding, deleting, working = (new_user(user.name, backend=1) for user in users)
    await check_words_and_queue_are_kept(counting, run, thread_of(stored, counting))
    await check_retry_adds_no_task_again(adding, model, stored)
    await check_outcome_of_the_approved_call_is_unknown(deleting, model)
    await check_agent(working, model, thread_of(stored, working))


def thread_of(stored: Stored, user: User) -> str:
    return str(stored.runs(user.name)[0].conversation_id)


async def read_request(model: ScriptedModel, text: str) -> dict[str, Any]:
    """The request that was made for a message."""
    [body] = [body for body in await requests_to(model) if text in str(body["messages"][-1]["content"])]
    check_pairs(body["messages"])
    return body


async def check_words_and_queue_are_kept(user: User, run: str, thread: str) -> None:
    """An answer is stored as it grows; the message is not answered again if it is sent again under its key."""
    asked, text = await list_texts(user, thread)
    assert (asked, text[:3]) == ("count", "one")
    [unread] = (await user.runs.get_chat(CHAT, limit=0))["unread"]
    assert (unread["text"], unread["is_queued"]) == ("and then", False), "it is shown as not sent"
    again = await user.runs.say(CHAT, "count", key="the-first")
    assert id_of(again) == run
    assert names(again)[-2:] == ["error", "interaction_complete"]
    assert again[-1].data["status"] == "FAILED"
    assert len((await user.runs.get_chat(CHAT))["interactions"]) == 1


async def check_retry_adds_no_task_again(user: User, model: ScriptedModel, stored: Stored) -> None:
    await model.script(ADD_MILK, says("It is on your list."))
    thread = thread_of(stored, user)
    [item] = await list_user_items(user, thread)
    answer = await user.chatkit.stream("threads.retry_after_item", thread_id=thread, item_id=item["id"])
    assert answer.text == "It is on your list."
    assert stored.titles(user.name) == ["milk"], "a retry sends the same idempotency key"
    assert [operation for operation, _ in stored.task_calls(user.name)] == ["add"]


async def check_outcome_of_the_approved_call_is_unknown(user: User, model: ScriptedModel) -> None:
    await user.runs.say(CHAT, "are they gone?")
    assert outputs_of(await read_request(model, "are they gone?"))[1:] == [
        "The outcome of this call is unknown: it may have been carried out. Check what is there before repeating it."
    ]


async def check_agent(user: User, model: ScriptedModel, thread: str) -> None:
    """The model reads what the agent had done, and that the outcome of its last call is unknown."""
    await user.runs.say(CHAT, "what happened?")
    [shown] = [item for item in await user.chatkit.items(thread) if item["type"] == "workflow"]
    assert "loading" not in str(shown)
    [output] = outputs_of(await read_request(model, "what happened?"))
    assert "a.txt" in output
    assert "unknown" in output
