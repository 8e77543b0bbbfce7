"""What a person may store in one go, and how much of it one answer shows."""

import json
from typing import Any

import pytest

from tests.backend.conftest import Backend, Rows
from tests.chatkit_client import ChatKit, user_input
from tests.scripted_model import ScriptedModel

NESTED: Any = []
for _ in range(900):
    NESTED = [NESTED]


TOO_LONG = {
    "text": user_input("x" * 8_001),
    "several texts": user_input("x" * 4_000, content=[{"type": "input_text", "text": "x" * 2_001}] * 4),
    "a quote": user_input("x", quoted_text="x" * 8_001),
    "a model's name": user_input("x", inference_options={"model": "m" * 9_000}),
    "a tool's name": user_input("x", inference_options={"tool_choice": {"id": "m" * 9_000}}),
    "empty parts": user_input("", content=[{"type": "input_text", "text": t} for t in ["x", *[""] * 300]]),
}


@pytest.mark.parametrize("message", TOO_LONG.values(), ids=TOO_LONG)
async def test_all_that_is_stored_of_a_message_is_counted(chat: ChatKit, message: dict[str, Any], rows: Rows) -> None:
    answer = await chat.stream("threads.create", input=message)
    assert answer.error is not None
    assert "8,000 is the most" in answer.error["message"]
    assert rows("SELECT 1 FROM messages") == []


@pytest.mark.parametrize("text", ["x" * 8_000, "\n\x01" * 3_999 + "xy", "\U0001f95b" * 8_000])
async def test_the_longest_message_is_taken(chat: ChatKit, text: str) -> None:
    assert (await chat.say(text)).error is None


async def test_what_chatkit_does_not_know_is_not_stored(chat: ChatKit, rows: Rows) -> None:
    message = user_input("hello", content=[{"type": "input_text", "text": "hello", "more": "spam"}], more="spam")
    body = {"type": "threads.create", "params": {"input": message, "more": "spam"}, "metadata": {"more": "spam"}}
    assert (await chat.http.post("/chatkit", json=body)).status_code == 200
    assert "spam" not in json.dumps(rows("SELECT item FROM messages") + rows("SELECT metadata FROM conversations"))


@pytest.mark.parametrize("depth", [50, 100, 190, 5_000])
async def test_depth_is_an_answer_of_its_own(chat: ChatKit, depth: int) -> None:
    tag = {"type": "input_tag", "id": "1", "text": "@t", "data": {"x": "HERE"}}
    body = json.dumps({"type": "threads.create", "params": {"input": user_input("", content=[tag])}})
    body = body.replace('"HERE"', "[" * depth + "]" * depth)
    response = await chat.http.post("/chatkit", content=body, headers={"Content-Type": "application/json"})
    assert response.status_code == (200 if depth < 150 else response.status_code)
    assert response.status_code in (200, 400)
    assert "error" in response.json() if response.status_code == 400 else '"type":"error"' not in response.text


async def test_feedback_names_a_hundred_items_at_most(chat: ChatKit) -> None:
    thread = (await chat.say("hello")).thread_id
    response = await chat.post("items.feedback", thread_id=thread, item_ids=["x"] * 101, kind="positive")
    assert response.status_code == 400
    assert "100 items at most" in response.json()["error"]


@pytest.mark.parametrize("order", ["asc", "desc"])
async def test_a_page_ends_where_its_bytes_end(chat: ChatKit, order: str, rows: Rows) -> None:
    thread = (await chat.say("hello")).thread_id
    for _ in range(6):
        await chat.say("hello", thread)
    rows(
        "UPDATE messages SET item = jsonb_set(item, '{content,0,text}', to_jsonb(repeat('x', 200000)))"
        " WHERE kind = 'user_message'"
    )
    everything = [
        row["id"]
        for row in rows(
            "SELECT id FROM messages WHERE kind IN ('user_message', 'assistant_message', 'widget') ORDER BY seq"
        )
    ]
    seen: list[str] = []
    after = None
    pages = 0
    while True:
        page = await chat.ask("items.list", thread_id=thread, limit=100, order=order, after=after)
        assert len(json.dumps(page)) < 800_000
        seen += [item["id"] for item in page["data"]]
        pages += 1
        if not page["has_more"]:
            break
        after = page["after"]
    assert seen == (everything if order == "asc" else everything[::-1])
    assert pages >= 2


async def test_an_item_larger_than_a_page_is_a_page(chat: ChatKit, rows: Rows) -> None:
    thread = (await chat.say("hello")).thread_id
    rows(
        "UPDATE messages SET item = jsonb_set(item, '{content,0,text}', to_jsonb(repeat('x', 2000000)))"
        " WHERE kind = 'user_message'"
    )
    page = await chat.ask("items.list", thread_id=thread, limit=100, order="asc")
    assert [item["type"] for item in page["data"]] == ["user_message"]
    assert page["has_more"]


async def test_arguments_nested_too_deeply_are_the_models_to_mend(backend: Backend, model: ScriptedModel) -> None:
    async with backend() as chat:
        call = {"name": "add_task", "arguments": {"title": "milk", "description": NESTED}}
        await model.script({"tool_calls": [call]}, {"text": "I tried."})
        answer = await chat.say("go")
        assert answer.error is None
        assert answer.text == "I tried."
