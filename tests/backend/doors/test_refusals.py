"""What is no valid request gets one clear sentence and changes nothing."""

import json
from collections.abc import AsyncIterator
from typing import Any, get_args

import pytest
from chatkit.types import NonStreamingReq, StreamingReq

from tests.backend.conftest import Backend, Rows
from tests.backend.operations import ACTION, UNKNOWN_ITEM, UNKNOWN_THREAD, UNSUPPORTED
from tests.chatkit_client import JSON, ChatKit, user_input
from tests.scripted_model import ScriptedModel


def test_the_tables_cover_every_operation_of_the_pinned_sdk() -> None:
    operations = {
        member.model_fields["type"].default for union in (StreamingReq, NonStreamingReq) for member in get_args(union)
    }
    assert operations == {*UNKNOWN_THREAD, *UNSUPPORTED, "threads.create", "threads.list"}


def sentence(response: Any) -> str:
    text = response.json()["error"]
    assert text.endswith(".")
    assert "Traceback" not in text
    assert "pydantic" not in text
    return text


@pytest.mark.parametrize("kind", UNKNOWN_THREAD)
async def test_an_unknown_thread_is_not_found(chat: ChatKit, kind: str, rows: Rows) -> None:
    response = await chat.post(kind, thread_id="thr_0", **UNKNOWN_THREAD[kind])
    assert response.status_code == 404
    assert "There is nothing with this id" in sentence(response)
    assert rows("SELECT * FROM runs") == rows("SELECT * FROM messages") == []


@pytest.mark.parametrize("kind", UNKNOWN_ITEM)
async def test_an_unknown_item_is_not_found(chat: ChatKit, kind: str, rows: Rows) -> None:
    thread = (await chat.say("hello")).thread_id
    before = rows("SELECT * FROM messages ORDER BY seq")
    response = await chat.post(kind, thread_id=thread, **UNKNOWN_ITEM[kind])
    assert response.status_code == 404
    assert "There is nothing with this id" in sentence(response)
    assert rows("SELECT * FROM messages ORDER BY seq") == before


async def test_an_item_of_another_thread_or_a_hidden_one_is_not_found(chat: ChatKit, rows: Rows) -> None:
    first = await chat.say("add milk")
    second = await chat.say("hello")
    hidden = rows("SELECT id FROM messages WHERE kind = 'tool_calls'")[0]["id"]
    for thread, item in ((second.thread_id, first.user_item_id), (first.thread_id, hidden)):
        for kind in ("threads.retry_after_item", "threads.custom_action", "threads.sync_custom_action"):
            params = {"item_id": item} | ({"action": ACTION} if "action" in kind else {})
            assert (await chat.post(kind, thread_id=thread, **params)).status_code == 404
        feedback = await chat.post("items.feedback", thread_id=thread, item_ids=[item], kind="positive")
        assert feedback.status_code == 404
    assert rows("SELECT * FROM messages WHERE feedback IS NOT NULL OR superseded_by IS NOT NULL") == []


async def test_an_action_on_what_is_no_widget_is_not_found(chat: ChatKit) -> None:
    first = await chat.say("hello")
    for kind in ("threads.custom_action", "threads.sync_custom_action"):
        params = {"thread_id": first.thread_id, "action": ACTION}
        assert (await chat.post(kind, item_id=first.user_item_id, **params)).status_code == 404
        response = await chat.post(kind, **params)
        assert response.status_code == 400
        assert "no action 'complete'" in sentence(response)


async def test_an_action_that_a_widget_does_not_have_is_refused_in_words(chat: ChatKit, rows: Rows) -> None:
    thread = (await chat.say("hello")).thread_id
    widget = {"type": "Card", "children": [{"type": "Text", "value": "x"}]}
    item = {
        "type": "widget",
        "id": "wid_1",
        "thread_id": thread,
        "created_at": "2026-01-01T00:00:00Z",
        "widget": widget,
    }
    rows(
        "INSERT INTO messages (conversation_id, id, user_id, role, kind, item) "
        "VALUES (%s, 'wid_1', 'local', 'app', 'widget', %s)",
        thread,
        json.dumps(item),
    )
    answer = await chat.stream("threads.custom_action", thread_id=thread, item_id="wid_1", action=ACTION)
    assert answer.error is not None
    assert "no action 'complete'" in answer.error["message"]
    response = await chat.post("threads.sync_custom_action", thread_id=thread, item_id="wid_1", action=ACTION)
    assert response.status_code == 400


async def test_only_a_message_of_the_person_is_answered_again(chat: ChatKit) -> None:
    first = await chat.say("hello")
    answer = first.items[-1]
    response = await chat.post("threads.retry_after_item", thread_id=first.thread_id, item_id=answer["id"])
    assert response.status_code == 400
    response = await chat.post("threads.add_client_tool_output", thread_id=first.thread_id, result={})
    assert response.status_code == 400
    response = await chat.post(
        "threads.add_structured_input", thread_id=first.thread_id, item_id=answer["id"], input={"answers": {}}
    )
    assert response.status_code == 400


@pytest.mark.parametrize("kind", UNSUPPORTED)
async def test_what_the_product_has_no_use_for_is_refused(chat: ChatKit, kind: str) -> None:
    response = await chat.post(kind, **UNSUPPORTED[kind])
    assert response.status_code == 400
    assert "This assistant takes no" in sentence(response)


BODIES = {
    "nothing": b"",
    "no JSON": b"hello",
    "no object": b"[1]",
    "no type": b"{}",
    "unknown type": b'{"type": "threads.explode", "params": {}}',
    "type of another kind": b'{"type": 7, "params": {}}',
    "no params": b'{"type": "threads.list"}',
    "wrong params": b'{"type": "threads.get_by_id", "params": {"thread_id": 7}}',
    "wrong order": b'{"type": "threads.list", "params": {"order": "up"}}',
    "limit 0": b'{"type": "threads.list", "params": {"limit": 0}}',
    "huge limit": b'{"type": "threads.list", "params": {"limit": 1e400}}',
    "NUL": b'{"type": "threads.get_by_id", "params": {"thread_id": "a\\u0000b"}}',
    "NUL in a key": b'{"type": "threads.list", "params": {}, "metadata": {"a\\u0000": 1}}',
    "lone surrogate": b'{"type": "threads.get_by_id", "params": {"thread_id": "\\ud800"}}',
    "no UTF-8": b'{"type": "threads.get_by_id", "params": {"thread_id": "\xff"}}',
    "deep": b'{"type": "threads.list", "params": ' + b"[" * 10_000 + b"]" * 10_000 + b"}",
}


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
async def test_a_body_that_is_no_request_is_refused(chat: ChatKit, body: bytes, rows: Rows) -> None:
    response = await chat.http.post("/chatkit", content=body, headers=JSON)
    assert response.status_code == 400
    sentence(response)
    assert rows("SELECT * FROM conversations") == []


@pytest.mark.parametrize("bad", ["\x00", "\ud800"], ids=["NUL", "lone surrogate"])
async def test_text_that_cannot_be_stored_is_refused(chat: ChatKit, bad: str, rows: Rows) -> None:
    thread = (await chat.say("hello")).thread_id
    before = rows("SELECT * FROM messages")
    for kind, params in (
        ("threads.create", {"input": user_input(f"add {bad}")}),
        ("threads.add_user_message", {"thread_id": thread, "input": user_input("add", quoted_text=bad)}),
        ("threads.update", {"thread_id": thread, "title": f"a{bad}"}),
    ):
        body = json.dumps({"type": kind, "params": params})
        response = await chat.http.post("/chatkit", content=body, headers=JSON)
        assert response.status_code == 400
        sentence(response)
    assert rows("SELECT * FROM messages") == before


async def test_a_backslash_before_u0000_is_only_text(chat: ChatKit) -> None:
    answer = await chat.say("add 'write about \\u0000'")
    assert "\\u0000" in answer.items[0]["content"][0]["text"]


@pytest.mark.parametrize("size", [131_073, 3_000_000])
async def test_more_than_the_limit_is_too_large(chat: ChatKit, size: int) -> None:
    response = await chat.http.post("/chatkit", content=b" " * size, headers=JSON)
    assert response.status_code == 413
    assert "131,072 bytes" in sentence(response)


async def test_a_body_in_pieces_is_measured_as_well(chat: ChatKit) -> None:
    async def pieces() -> AsyncIterator[bytes]:
        for _ in range(40):
            yield b" " * 50_000

    response = await chat.http.post("/chatkit", content=pieces(), headers=JSON)
    assert response.status_code == 413


@pytest.mark.parametrize("text", ["", "  \n ", "\u3164\u200b"], ids=ascii)
async def test_an_empty_message_is_refused(chat: ChatKit, text: str, rows: Rows) -> None:
    response = await chat.post("threads.create", input=user_input(text))
    assert response.status_code == 400
    assert "empty" in sentence(response)
    assert rows("SELECT * FROM conversations") == []


async def test_an_attachment_is_refused(chat: ChatKit) -> None:
    response = await chat.post("threads.create", input=user_input("see this") | {"attachments": ["atc_0"]})
    assert response.status_code == 400
    assert "attachments" in sentence(response)


async def test_too_long_a_message_is_an_error_event_and_is_not_stored(
    chat: ChatKit, rows: Rows, model: ScriptedModel
) -> None:
    answer = await chat.say("a" * 8_001)
    assert [event["type"] for event in answer.events] == ["error"]
    assert answer.error is not None
    assert "8,001 characters" in answer.error["message"]
    assert answer.error["allow_retry"] is False
    assert rows("SELECT * FROM conversations") == []
    assert await model.requests() == []


@pytest.mark.parametrize(
    "title", ["", "   ", "x" * 201, "a\nb", "a\x1b[2Jb", "a\u2028b", "\u3164", "\u200b"], ids=ascii
)
async def test_a_thread_title_that_is_no_visible_line_is_refused(chat: ChatKit, title: str) -> None:
    thread = (await chat.say("hello")).thread_id
    response = await chat.post("threads.update", thread_id=thread, title=title)
    assert response.status_code == 400
    assert (await chat.ask("threads.get_by_id", thread_id=thread))["title"] == "hello"


async def test_what_nobody_sees_is_taken_out_of_a_thread_title(chat: ChatKit) -> None:
    thread = (await chat.say("hel\u200blo\x1b there\nyou \U000e0041")).thread_id
    assert (await chat.ask("threads.get_by_id", thread_id=thread))["title"] == "hello there you"
    await chat.ask("threads.update", thread_id=thread, title="shopping \u202e👨‍👩‍👧 \U000e0041")
    assert (await chat.ask("threads.get_by_id", thread_id=thread))["title"] == "shopping 👨‍👩‍👧"


async def test_other_methods_and_paths_are_refused(chat: ChatKit) -> None:
    assert (await chat.http.get("/chatkit")).status_code == 405
    assert (await chat.http.get("/docs")).status_code == 404


async def test_without_a_database_the_answer_is_a_sentence(backend: Backend) -> None:
    async with backend(database_url=_secret("postgresql://nobody:secret@127.0.0.1:9/none")) as chat:
        for response in (
            await chat.post("threads.list"),
            await chat.post("threads.create", input=user_input("hello")),
        ):
            assert response.status_code == 503
            assert "database cannot be reached" in response.json()["error"]
            assert "secret" not in response.text
        ready = await chat.http.get("/ready")
        assert ready.status_code == 503
        assert "database" in ready.json()["reason"]


def _secret(value: str) -> Any:
    from pydantic import SecretStr

    return SecretStr(value)
