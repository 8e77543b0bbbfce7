"""Clients that show no cards: a plain message to `POST /chatkit`, and lists of tasks as text."""

import json
from typing import Any

import httpx2
import pytest

from tests.scripted_model import ScriptedModel
from tests.support.fixtures import NewUser, StartStack
from tests.support.script import add_task, call, calls, delete_tasks, endless_answer, says
from tests.support.stored import Stored
from tests.support.users import User
from tests.waiting import until


async def say(user: User, **body: Any) -> list[dict[str, Any]]:
    response = await user.runs.http.post("/chatkit", json=body)
    assert response.status_code == 200, response.text
    assert response.headers["content-type"].startswith("text/event-stream")
    return [json.loads(line.removeprefix("data: ")) for line in response.text.split("\n\n") if line]


def text_of(events: list[dict[str, Any]]) -> str:
    return "".join(event["content"] for event in events if event["type"] == "message_delta")


async def test_answer(user: User, model: ScriptedModel, stored: Stored) -> None:
    first = {**add_task("milk"), "text": "I add it.", "reasoning": "Hm."}
    await model.script(first, says("It is there."), *[says("Hello again.")] * 4)
    events = await say(user, message="add milk")
    assert text_of(events) == "I add it.\n\nIt is there."
    assert {event["type"] for event in events[:-1]} == {"message_delta"}
    thread, run = events[-1]["conversation_id"], events[-1]["interaction_id"]
    assert events[-1] == {
        "type": "message_complete",
        "conversation_id": thread,
        "user_id": user.name,
        "interaction_id": run,
        "status": "completed",
        "changes": [{"task_id": 1, "title": "milk", "change": "added"}],
    }
    assert [(one.id, one.status) for one in stored.runs(user.name)] == [(run, "completed")]
    for name in (thread, 123, "123", "groceries"):
        assert (await say(user, conversation_id=name, message="hello"))[-1]["conversation_id"] == name
    assert len(stored.conversations(user.name)) == 3, "a name without quotes is the same"
    assert await user.chatkit.items(thread), "ChatKit's own requests find it, too"


async def test_approval(start_stack: StartStack, model: ScriptedModel) -> None:
    async with User(start_stack("approvals")) as user:
        await model.script(add_task("milk"), says("Fine."), {**delete_tasks(1), "text": "I ask."}, says("Deleted."))
        thread = (await say(user, message="add milk"))[-1]["conversation_id"]
        events = await say(user, conversation_id=thread, message="delete it")
        assert text_of(events).startswith("I ask.")
        assert "milk" in text_of(events), "what is asked is text, too"
        assert events[-1]["status"] == "waiting_approval"
        [approval] = events[-1]["approvals"]
        run = events[-1]["interaction_id"]
        await user.runs.approve(thread, run, approval["approval_id"], approved=True)
        assert (await user.runs.read(thread, run))[-1].data["status"] == "COMPLETED"


async def test_failed_and_cut_answers(user: User, model: ScriptedModel) -> None:
    await model.script({"text": "Half of it is here", "cut_after": 4}, {"text": "Half of", "finish_reason": "length"})
    failed = (await say(user, message="hello"))[-1]
    assert failed["type"] == "error"
    assert "Reference" in failed["message"]
    assert (await say(user, message="hello"))[-1]["notice"]


async def test_client_that_leaves_stops_the_answer(user: User, model: ScriptedModel, stored: Stored) -> None:
    await model.script(endless_answer("one two"))
    body = {"message": "count", "conversation_id": "a"}
    async with user.runs.http.stream("POST", "/chatkit", json=body) as response:
        lines = response.aiter_lines()  # held: who drops it leaves
        assert "message_delta" in await anext(lines)
        [busy] = await say(user, message="hello", conversation_id="a")
        assert busy["type"] == "error"
    await until(lambda: stored.run_statuses(user.name) == ["cancelled"])


async def test_invalid_message(user: User, stored: Stored) -> None:
    rejected: list[tuple[Any, int]] = [
        ({"message": 7}, 400),
        ({"message": " "}, 400),
        ({"message": "hello", "conversation_id": True}, 400),
        ({"message": "hello", "conversation_id": "a/b"}, 400),
        ({"message": "hello", "conversation_id": ["a"]}, 400),
        ({"message": "hello", "conversation_id": "thr_0"}, 404),
        ({"message": "a\0b"}, 400),
        ({"message": "hello", "user_id": {}}, 400),
        ({"massage": "hello"}, 400),
    ]
    for body, status in rejected:
        response = await user.runs.http.post("/chatkit", json=body)
        assert response.status_code == status, body
        assert response.json()["error"].endswith(".")
    assert stored.row_counts(user.name) == {}


async def test_user_id_is_the_callers_own(user: User, new_user: NewUser, model: ScriptedModel, stored: Stored) -> None:
    await model.script(*[says("Hello.")] * 2)
    other = new_user()
    response = await user.runs.http.post("/chatkit", json={"message": "hello", "user_id": other.name})
    assert response.status_code == 403
    assert (await say(user, message="hello", user_id=user.name))[-1]["user_id"] == user.name
    assert (await say(user, message="hello", user_id=None))[-1]["status"] == "completed"
    assert stored.row_counts(other.name) == {}


LIST, ALL = calls(call("list_tasks", status="pending")), calls(call("list_tasks"))
QUESTION = "what is on my list?"


def joined(response: httpx2.Response, kind: str, field: str) -> str:
    lines = [line.removeprefix("data: ") for line in response.text.splitlines() if line.startswith("data: {")]
    return "".join(event[field] for event in map(json.loads, lines) if event["type"] == kind)


async def answers(user: User, model: ScriptedModel, *steps: dict[str, Any]) -> list[str]:
    """The answer's text at each of the addresses that show no cards."""
    http, messages = user.chatkit.http, {"messages": [{"role": "user", "content": QUESTION}]}
    await model.script(*(step for _ in range(3) for step in steps))
    plain = await http.post("/chatkit", json={"message": QUESTION})
    whole = await http.post("/chat", json=messages)
    stream = await http.post("/chat/stream", json=messages)
    return [
        joined(plain, "message_delta", "content"),
        whole.json()["answer"],
        joined(stream, "text-delta", "delta"),
    ]


@pytest.fixture
async def owner(user: User, model: ScriptedModel) -> User:
    """A user with an open and a completed task."""
    lawn = call("add_task", title="mow the lawn", due="2101-01-03", priority="high", labels=["home"])
    milk = call("add_task", title="buy milk"), call("complete_task", task_id=2)
    await model.script(calls(lawn, *milk), says("Added."))
    await user.chatkit.say("add them")
    return user


async def test_list_that_the_answer_does_not_name_follows_it(owner: User, model: ScriptedModel) -> None:
    plain, whole, stream = await answers(owner, model, ALL, says("You have 2 tasks."))
    lines = "- mow the lawn (Mon 3 Jan 2101, high priority, #home)\n- buy milk (done)"
    assert plain == whole == f"You have 2 tasks.\n\n{lines}"
    assert stream == f"You have 2 tasks.{lines}", "another part of the message"


@pytest.mark.parametrize(
    ("steps", "answer"),
    [
        ([LIST, says("You have to mow the lawn.")], "You have to mow the lawn."),
        ([LIST, calls(call("complete_task", task_id=1)), says("Fine.")], "Fine."),
        ([calls(call("list_tasks", query="walrus")), says("Nothing.")], "Nothing."),
    ],
    ids=["named", "read to change one", "empty"],
)
async def test_nothing_follows_an_answer_that_needs_no_list(
    owner: User, model: ScriptedModel, steps: list[dict[str, Any]], answer: str
) -> None:
    assert await answers(owner, model, *steps) == [answer] * 3


async def test_long_list_is_cut(owner: User, model: ScriptedModel) -> None:
    many = [[f"task {part}-{number}" for number in range(26)] for part in "ab"]
    await model.script(*(add_task(first, also=others) for first, *others in many), says("Added."))
    await owner.chatkit.say("add them")
    for text in await answers(owner, model, LIST, says("53 open tasks.")):
        lines = text.removeprefix("53 open tasks.").strip().splitlines()
        assert len(lines) == 51
        assert lines[-1] == "- and 3 more"
