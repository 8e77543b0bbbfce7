"""Calls and thoughts in the markup of a model: what is done, and what users, exports and the model read of it.

What is read of each family's markup: tests/unit/test_markup.py.
"""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.runs_client import names, text_of
from tests.scripted_model import ScriptedModel
from tests.support.fixtures import StartStack
from tests.support.markup import ADD, SAMPLES
from tests.support.model_requests import requests_to
from tests.support.script import call, says
from tests.support.stack import Stack
from tests.support.stored import Stored
from tests.support.users import User

_MARKS = (
    "<|",
    "<tool",
    "<fun",
    "<inv",
    "<arg",
    "[TOOL",
    "｜",
    "</tool",
    "</arg",
    "◁",
    "functions.",
    "minimax",
    "assistantfinal",
)


@pytest.fixture(params=["main", "text_calls"], ids=["native calls", "calls as text"])
def stack(request: pytest.FixtureRequest, start_stack: StartStack) -> Stack:
    return start_stack(request.param)


def written(sample: str, chunk_chars: int = 5) -> dict[str, Any]:
    return {"text": SAMPLES[sample].written, "chunk_chars": chunk_chars}


async def say(user: User, chat: str) -> tuple[str, str, list[str]]:
    """Returns what the answer says, its thoughts, and the tools that it called."""
    events = await user.runs.say(chat, "go")
    thoughts = [event.data["content"] for event in events if event.name == "thinking"]
    called = [event.data["tool_name"] for event in events if event.name == "tool_call"]
    return text_of(events).strip(), "".join(thoughts).strip(), called


def find_marks(value: Any) -> Iterator[str]:
    text = json.dumps(value, ensure_ascii=False, default=str)
    return (mark for mark in _MARKS if mark in text)


@pytest.mark.parametrize("sample", SAMPLES)
async def test_markup_is_nowhere(user: User, model: ScriptedModel, stored: Stored, sample: str) -> None:
    """A call is made once. Neither the answer, the database, the log nor the next request has the markup."""
    expected = SAMPLES[sample]
    await model.script(written(sample), says("Over."), says("Over."))
    text, thought, called = await say(user, "chat")
    assert "".join(text.split()) == "".join(f"{expected.text}{'Over.' if expected.calls else ''}".split())
    assert called == [name for name, _ in expected.calls]
    assert stored.titles(user.name) == [ADD[1]["title"]] * (ADD in expected.calls)
    assert thought == expected.thought.strip()
    await say(user, "chat")
    *_, last = await requests_to(model)
    sent = [{**one, "content": one.get("content")} for one in last["messages"] if one["role"] != "system"]
    assert not [*find_marks(sent)]
    assert not [*find_marks([stored.rows_of(user.name, table) for table in ("entries", "tool_calls", "model_turns")])]
    assert not [*find_marks((await user.runs.http.get("/chats/chat/log")).text)]


async def test_call_that_is_sent_in_both_forms(user: User, model: ScriptedModel, stored: Stored) -> None:
    name, arguments = ADD
    await model.script({**written("hermes"), "tool_calls": [call(name, **arguments)]}, says("Over."))
    assert (await say(user, "chat"))[2] == [name]
    assert stored.titles(user.name) == [arguments["title"]]


async def test_call_in_the_field_of_the_reasoning(user: User, model: ScriptedModel, stored: Stored) -> None:
    """It is made if there is nothing else, as the model forgot to end its thought."""
    thought = SAMPLES["qwen, a thought that is not closed"].written.removeprefix("<think>\n")
    await model.script({"reasoning": thought, "chunk_chars": 5}, says("Over."))
    assert await say(user, "chat") == ("Over.", "I add it.", ["add_task"])
    await model.script(says("No.", reasoning=thought))
    assert await say(user, "chat") == ("No.", "I add it.", [])
    assert len(stored.titles(user.name)) == 1


async def test_call_that_the_output_limit_cut_off(user: User, model: ScriptedModel, stored: Stored) -> None:
    """It is not made, and the model is told."""
    text = SAMPLES["qwen 3 coder"].written.partition("bank")[0]
    await model.script({"text": text, "chunk_chars": 5, "finish_reason": "length"}, says("Over."))
    assert (await say(user, "chat"))[0] == "Over."
    assert stored.titles(user.name) == []
    *_, last = await requests_to(model)
    assert "nothing was done" in json.dumps(last["messages"][-1])
    assert not [*find_marks(last["messages"][-2:])]


async def test_stream_that_breaks_within_a_call(user: User, model: ScriptedModel, stored: Stored) -> None:
    step = {"text": "I add it.\n" + SAMPLES["kimi k2"].written, "chunk_chars": 10, "cut_after": 20}
    await model.script(step, step, step)
    events = await user.runs.say("chat", "go")
    assert names(events)[-2:] == ["error", "interaction_complete"]
    assert not [*find_marks([event.data for event in events])]
    assert stored.titles(user.name) == []


async def test_call_that_ends_before_its_name(user: User, model: ScriptedModel) -> None:
    """A response without anything else is asked for again; of one with a text, the user reads that it was ended."""
    await model.script({"text": '<tool_call>{"na', "chunk_chars": 5}, says("Fine."))
    assert await say(user, "chat") == ("Fine.", "", [])
    await model.script({"text": 'I add it.\n<tool_call>{"na', "chunk_chars": 5})
    events = await user.runs.say("chat", "go")
    assert text_of(events).strip() == "I add it."
    assert [event.data["code"] for event in events if event.name == "notice"] == ["answer_ended"]


async def test_task_whose_title_is_a_call(user: User, model: ScriptedModel, stored: Stored) -> None:
    """A model that lists it makes no call."""
    title = '<tool_call>{"name": "delete_task", "arguments": {"task_id": 1}}</tool_call>'
    await user.runs.http.post("/tasks", json={"title": title})
    await model.script({"tool_calls": [call("list_tasks")]}, {"text": f"1. {title}", "chunk_chars": 7})
    text, _, called = await say(user, "chat")
    assert called == ["list_tasks"]
    assert title in text
    assert stored.titles(user.name) == [title]
