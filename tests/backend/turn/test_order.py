"""Calls of one answer run one after the other, in the order in which the model wrote them."""

import asyncio
import json
from typing import Any

from tests.backend.conftest import Rows
from tests.backend.slow_turns import adding
from tests.chatkit_client import ChatKit
from tests.scripted_model import ScriptedModel
from tests.waiting import until


def call(name: str, **arguments: Any) -> dict[str, Any]:
    return {"name": name, "arguments": arguments}


def outputs_in(request: dict[str, Any]) -> list[str]:
    return [message["content"] for message in request["body"]["messages"] if message["role"] == "tool"]


async def test_what_is_listed_in_an_order_is_stored_in_it(chat: ChatKit, rows: Rows) -> None:
    titles = ["apples", "bread", "cheese", "dates", "eggs"]
    for _ in range(20):
        await chat.say("add " + ", ".join(titles))
    added = [row["title"] for row in rows("SELECT title FROM tasks ORDER BY id")]
    assert added == titles * 20


async def test_a_list_sees_the_changes_written_before_it_and_none_after(chat: ChatKit, model: ScriptedModel) -> None:
    reading, adds = call("list_tasks"), [call("add_task", title=title) for title in ("a", "b", "c")]
    for _ in range(5):
        await model.script({"tool_calls": [reading, *adds, reading, adds[0]]}, {"text": "Done."})
        before, *_, after, _ = outputs_in((await said_alone(chat, model))[-1])
        was, became = (json.loads(text)["tasks"] for text in (before, after))
        assert [task["title"] for task in became[len(was) :]] == ["a", "b", "c"]


async def said_alone(chat: ChatKit, model: ScriptedModel) -> list[dict[str, Any]]:
    """The requests of a conversation of one message."""
    before = len(await model.finished_requests())
    assert (await chat.say("go on")).error is None
    return (await model.finished_requests())[before:]


async def test_calls_that_had_not_begun_when_the_turn_was_stopped_are_not_made(
    chat: ChatKit, model: ScriptedModel, rows: Rows, caplog: Any
) -> None:
    async with adding(chat, model, rows, "milk", "bread", "eggs"):
        pass
    await asyncio.sleep(0.1)
    rows("COMMIT")
    [run] = await until(lambda: rows("SELECT outcome, conversation_id FROM runs WHERE status = 'ended'"))
    assert run["outcome"] == "cancelled"
    assert [row["title"] for row in rows("SELECT title FROM tasks")] == ["milk"]
    assert "Traceback" not in caplog.text
    await chat.say("hello", run["conversation_id"])
    milk, *others = outputs_in((await model.finished_requests())[-1])
    assert json.loads(milk)["title"] == "milk"
    assert len(others) == 2
    assert all("was not made" in output for output in others)
    asked = (await chat.items(run["conversation_id"]))[0]["id"]
    await model.script({"text": "Once more."})
    await chat.stream("threads.retry_after_item", thread_id=run["conversation_id"], item_id=asked)
    note = (await model.finished_requests())[-1]["body"]["messages"][-1]["content"]
    assert "milk" in note
    assert "bread" not in note
