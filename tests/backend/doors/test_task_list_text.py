"""Lists of tasks in the text of clients that show no cards."""

import json
from collections.abc import AsyncIterator

import httpx2
import pytest

from tests.backend.conftest import Backend
from tests.backend.consent import call, calls
from tests.chatkit_client import ChatKit
from tests.scripted_model import ScriptedModel

LIST, ALL = calls(call("list_tasks", status="pending")), calls(call("list_tasks"))


@pytest.fixture
async def chat(backend: Backend, model: ScriptedModel) -> AsyncIterator[ChatKit]:
    async with backend() as client:
        await model.script(
            calls(
                call("add_task", title="mow the lawn", due="2101-01-03", priority="high", labels=["home"]),
                call("add_task", title="buy milk"),
                call("complete_task", task_id=2),
            ),
            {"text": "Added."},
        )
        await client.say("add them")
        yield client


def joined(response: httpx2.Response, kind: str, field: str) -> str:
    lines = [line.removeprefix("data: ") for line in response.text.splitlines() if line.startswith("data: {")]
    return "".join(event[field] for event in map(json.loads, lines) if event["type"] == kind)


async def texts(chat: ChatKit, model: ScriptedModel, *steps: dict[str, object]) -> list[str]:
    """The answer's text at each of the addresses that show no cards."""
    await model.script(*(step for _ in range(3) for step in steps))
    plain = await chat.http.post("/chatkit", json={"message": "what is on my list?"})
    one = await chat.http.post("/chat", json={"messages": [{"role": "user", "content": "what is on my list?"}]})
    stream = await chat.http.post(
        "/chat/stream", json={"messages": [{"role": "user", "content": "what is on my list?"}]}
    )
    return [
        joined(plain, "message_delta", "content"),
        one.json()["answer"],
        joined(stream, "text-delta", "delta"),
    ]


async def test_a_list_that_the_answer_does_not_name_follows_it(chat: ChatKit, model: ScriptedModel) -> None:
    plain, one, stream = await texts(chat, model, ALL, {"text": "You have 2 tasks."})
    lines = "- mow the lawn (Mon 3 Jan 2101, high priority, #home)\n- buy milk (done)"
    assert plain == one == f"You have 2 tasks.\n\n{lines}"
    assert stream == f"You have 2 tasks.{lines}", "another part of the message"


@pytest.mark.parametrize(
    ("steps", "answer"),
    [
        ([LIST, {"text": "You have to mow the lawn."}], "You have to mow the lawn."),
        ([ALL, {"text": "- mow the lawn"}], "- mow the lawn"),
        ([LIST, calls(call("complete_task", task_id=1)), {"text": "Done."}], "Done."),
        ([calls(call("list_tasks", query="walrus")), {"text": "Nothing."}], "Nothing."),
    ],
    ids=["named", "listed", "read to change one", "empty"],
)
async def test_nothing_follows_an_answer_that_needs_no_list(
    chat: ChatKit, model: ScriptedModel, steps: list[dict[str, object]], answer: str
) -> None:
    assert await texts(chat, model, *steps) == [answer] * 3


async def test_a_long_list_is_cut(chat: ChatKit, model: ScriptedModel) -> None:
    many = [[f"task {part}-{number}" for number in range(26)] for part in "ab"]
    await model.script(calls(*(call("add_task", title=first, also=rest) for first, *rest in many)), {"text": "Added."})
    await chat.say("add them")
    for text in await texts(chat, model, LIST, {"text": "53 open tasks."}):
        lines = text.removeprefix("53 open tasks.").strip().splitlines()
        assert len(lines) == 51
        assert lines[-1] == "- and 3 more"
