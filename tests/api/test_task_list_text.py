"""Lists of tasks in the text of clients that show no cards."""

import json
from typing import Any

import httpx2
import pytest

from tests.scripted_model import ScriptedModel
from tests.support.script import add_task, call, calls, says
from tests.support.users import User

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
async def user(user: User, model: ScriptedModel) -> User:
    """A user with an open and a completed task."""
    lawn = call("add_task", title="mow the lawn", due="2101-01-03", priority="high", labels=["home"])
    milk = call("add_task", title="buy milk"), call("complete_task", task_id=2)
    await model.script(calls(lawn, *milk), says("Added."))
    await user.chatkit.say("add them")
    return user


async def test_list_that_the_answer_does_not_name_follows_it(user: User, model: ScriptedModel) -> None:
    plain, whole, stream = await answers(user, model, ALL, says("You have 2 tasks."))
    lines = "- mow the lawn (Mon 3 Jan 2101, high priority, #home)\n- buy milk (done)"
    assert plain == whole == f"You have 2 tasks.\n\n{lines}"
    assert stream == f"You have 2 tasks.{lines}", "another part of the message"


@pytest.mark.parametrize(
    ("steps", "answer"),
    [
        ([LIST, says("You have to mow the lawn.")], "You have to mow the lawn."),
        ([LIST, calls(call("complete_task", task_id=1)), says("Done.")], "Done."),
        ([calls(call("list_tasks", query="walrus")), says("Nothing.")], "Nothing."),
    ],
    ids=["named", "read to change one", "empty"],
)
async def test_nothing_follows_an_answer_that_needs_no_list(
    user: User, model: ScriptedModel, steps: list[dict[str, Any]], answer: str
) -> None:
    assert await answers(user, model, *steps) == [answer] * 3


async def test_long_list_is_cut(user: User, model: ScriptedModel) -> None:
    many = [[f"task {part}-{number}" for number in range(26)] for part in "ab"]
    await model.script(*(add_task(first, also=others) for first, *others in many), says("Added."))
    await user.chatkit.say("add them")
    for text in await answers(user, model, LIST, says("53 open tasks.")):
        lines = text.removeprefix("53 open tasks.").strip().splitlines()
        assert len(lines) == 51
        assert lines[-1] == "- and 3 more"
