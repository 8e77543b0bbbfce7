import dataclasses
from collections.abc import Callable
from typing import Any

import pytest

from backend import budget
from backend.models import Message
from backend.providers import PROFILES
from backend.store_adapter import Recent
from tests.backend.conftest import Backend
from tests.backend.test_conversation import check_pairs
from tests.backend.test_turns import until
from tests.chatkit_client import ChatKit
from tests.scripted_model import ScriptedModel

Rows = Callable[..., list[dict[str, Any]]]


@pytest.fixture(autouse=True)
def _small_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(PROFILES, "offline", dataclasses.replace(PROFILES["offline"], history_tokens=400))


async def grow(chat: ChatKit, turns: int) -> str:
    thread = (await chat.say("add task 0")).thread_id
    for number in range(1, turns):
        assert (await chat.say(f"add task {number}", thread)).error is None
    return thread


def messages_of(request: dict[str, Any]) -> list[dict[str, Any]]:
    return request["body"]["messages"]


async def test_a_long_conversation_is_cut_at_whole_turns_and_summarised(
    chat: ChatKit, model: ScriptedModel, rows: Rows
) -> None:
    thread = await grow(chat, 12)
    requests = await model.finished_requests()
    turns = [request for request in requests if "tools" in request["body"]]
    for request in turns:
        messages = messages_of(request)
        check_pairs(messages)
        assert messages[0]["role"] == "system"
        assert messages[-1]["role"] in ("user", "tool")
        assert len(str(messages[1:])) < 400 * 8
    await until(lambda: rows("SELECT 1 FROM messages WHERE kind = 'summary'"))
    summaries = [request for request in requests if "tools" not in request["body"]]
    assert summaries
    assert "Person: add task 0" in messages_of(summaries[0])[-1]["content"]
    await chat.say("hello", thread)
    head = messages_of([request for request in await model.finished_requests() if "tools" in request["body"]][-1])[1]
    assert head["role"] == "user"
    assert "Summary of the conversation so far" in head["content"]
    assert [item["type"] for item in await chat.items(thread)] == ["user_message", "assistant_message"] * 13


async def test_after_a_summary_the_requests_begin_alike_again(chat: ChatKit, model: ScriptedModel, rows: Rows) -> None:
    thread = await grow(chat, 12)
    await until(lambda: rows("SELECT 1 FROM messages WHERE kind = 'summary'"))
    await chat.say("hello", thread)
    await chat.app.state.turns.finish_background_work()  # pyright: ignore[reportAttributeAccessIssue]
    await model.reset()
    await chat.say("hello once more", thread)
    await chat.say("hello again", thread)
    requests = [request for request in await model.finished_requests() if "tools" in request["body"]]
    first, second = map(messages_of, requests)
    assert second[: len(first)] == first


async def test_without_a_summary_a_plain_note_stands_in(chat: ChatKit, model: ScriptedModel, rows: Rows) -> None:
    await model.script(*[{"when": "Summarise", "status": 500}] * 50)
    thread = await grow(chat, 12)
    await chat.say("hello", thread)
    head = messages_of([request for request in await model.finished_requests() if "tools" in request["body"]][-1])[1]
    assert "left out because it is long" in head["content"]
    assert rows("SELECT 1 FROM messages WHERE kind = 'summary'") == []
    outcomes = {row["outcome"] for row in rows("SELECT outcome FROM runs")}
    assert outcomes == {"completed"}, "a failing summary is nobody's turn"


async def test_the_newest_turn_is_kept_however_long_it_is(backend: Backend, model: ScriptedModel) -> None:
    async with backend() as chat:
        thread = (await chat.say("hello")).thread_id
        await chat.say("add 'x' " + "very " * 1000, thread)
        sent = messages_of((await model.finished_requests())[1])
        assert sent[-1]["content"].endswith("very ")


async def test_a_retry_drops_the_summary_of_what_it_replaces(chat: ChatKit, rows: Rows) -> None:
    thread = await grow(chat, 12)
    await until(lambda: rows("SELECT 1 FROM messages WHERE kind = 'summary'"))
    first = (await chat.items(thread))[0]
    answer = await chat.stream("threads.retry_after_item", thread_id=thread, item_id=first["id"])
    assert answer.error is None
    assert rows("SELECT 1 FROM messages WHERE kind = 'summary' AND superseded_by IS NULL") == []


def row(seq: int, kind: str, content: Any) -> Message:
    return Message(
        conversation_id="t", id=str(seq), user_id="u", seq=seq, role="x", kind=kind, item={"content": content}
    )


@pytest.mark.parametrize("tokens", [1, 40, 100, 200, 400, 10_000])
def test_whatever_the_budget_calls_keep_their_outputs(tokens: int) -> None:
    rows: list[Message] = []
    for number in range(0, 60, 4):
        call = {"type": "function_call", "call_id": str(number), "name": "add_task", "arguments": "{}"}
        output = {"type": "function_call_output", "call_id": str(number), "output": "x" * number}
        rows += [
            row(number, "user_message", [{"text": f"message {number}"}]),
            row(number + 1, "tool_calls", {"calls": [call], "reasoning": []}),
            row(number + 2, "tool_output", {"output": output}),
            row(number + 3, "assistant_message", [{"text": "done"}]),
        ]
    window = budget.window(Recent(rows, complete=True, summary=None), tokens=tokens)
    assert window.left_out + window.rows == rows
    assert window.rows[-4].kind == "user_message"
    assert len(window.rows) % 4 == 0
    assert (window.stand_in is None) == (window.left_out == [])
