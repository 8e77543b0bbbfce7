"""What is no valid request is rejected with a status and one sentence, and changes nothing."""

import json
from collections.abc import AsyncIterator
from typing import Any, get_args

import httpx2
import pytest
from chatkit.types import NonStreamingReq, StreamingReq

from tests.chatkit_client import JSON
from tests.scripted_model import ScriptedModel
from tests.support.fixtures import NewUser
from tests.support.operations import ACTION, UNKNOWN_ITEM, UNKNOWN_THREAD, UNSUPPORTED
from tests.support.script import add_task, call, calls, says
from tests.support.stack import Stack
from tests.support.stored import Stored
from tests.support.users import User
from todo_client.chatkit import request, user_input


def sentence(response: httpx2.Response) -> str:
    text = response.json()["error"]
    assert text.endswith(".")
    for internal in ("Traceback", "pydantic", "psycopg", "postgresql"):
        assert internal not in text
    return text


LIST = b'{"type": "threads.list", "params": {}, "metadata": {"x": VALUE}}'
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
    "UTF-16": LIST.decode().encode("utf-16-le"),
    "deep": LIST.replace(b"VALUE", b"[" * 10_000 + b"]" * 10_000),
    # Each of these takes a parser long.
    "many numbers": LIST.replace(b"VALUE", b"[" + b"1," * 1_000 + b"1]"),
    "many lists": LIST.replace(b"VALUE", b"[" + b"[]," * 1_000 + b"[]]"),
    "many objects": LIST.replace(b"VALUE", b"[" + b"{}," * 1_000 + b"{}]"),
    "many texts": LIST.replace(b"VALUE", b"[" + b'"",' * 20_000 + b'""]'),
    "many values after an escaped quote": LIST.replace(b"VALUE", b'["\\"",' + b"1," * 1_000 + b'"\\""]'),
    "long number": LIST.replace(b"VALUE", b"9" * 101),
    "long fraction": LIST.replace(b"VALUE", b"0." + b"1" * 101),
}


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
async def test_body_that_is_no_request(user: User, body: bytes, stored: Stored) -> None:
    response = await user.chatkit.http.post("/chatkit", content=body, headers=JSON)
    assert response.status_code == 400
    sentence(response)
    assert stored.row_counts(user.name) == {}


@pytest.mark.parametrize("text", ["[{," * 10_000, '\\"' * 10_000, "7" * 100_000, ["[,{" * 100, *range(900)]])
async def test_what_texts_hold_is_not_counted(user: User, text: Any) -> None:
    body = json.dumps(request("threads.list") | {"metadata": {"x": text}}).encode()
    assert (await user.chatkit.http.post("/chatkit", content=body, headers=JSON)).status_code == 200


async def test_body_too_large(user: User) -> None:
    async def pieces() -> AsyncIterator[bytes]:
        for _ in range(40):
            yield b" " * 50_000

    for content in (b" " * 131_073, b" " * 3_000_000, pieces()):
        response = await user.chatkit.http.post("/chatkit", content=content, headers=JSON)
        assert response.status_code == 413
        sentence(response)


def test_tables_cover_every_operation() -> None:
    operations = {
        member.model_fields["type"].default for union in (StreamingReq, NonStreamingReq) for member in get_args(union)
    }
    assert operations == {*UNKNOWN_THREAD, *UNSUPPORTED, "threads.create", "threads.list"}


@pytest.mark.parametrize("kind", UNSUPPORTED)
async def test_unsupported_operation(user: User, kind: str) -> None:
    response = await user.chatkit.post(kind, **UNSUPPORTED[kind])
    assert response.status_code == 400
    sentence(response)


async def test_unknown_and_foreign_ids(user: User, new_user: NewUser, model: ScriptedModel, stored: Stored) -> None:
    """They are answered in the same words: nobody learns what others have."""
    await model.script(add_task("milk"), says("Fine."), says("Hello."), says("Hello."))
    answer = await user.chatkit.say("add milk")
    thread, item = answer.thread_id, answer.user_item_id
    stranger = new_user()
    own = (await stranger.chatkit.say("hello")).thread_id
    before = (await user.chatkit.items(thread), stored.row_counts(user.name), stored.row_counts(stranger.name))

    def said(response: httpx2.Response, id: str) -> tuple[int, str]:
        assert response.status_code == 404
        return response.status_code, sentence(response).replace(id, "ID")

    for kind, params in UNKNOWN_THREAD.items():
        swapped = params | ({"item_id": item} if "item_id" in params else {})
        foreign = await stranger.chatkit.post(kind, thread_id=thread, **swapped)
        missing = await stranger.chatkit.post(kind, thread_id="thr_0", **params)
        assert said(foreign, thread) == said(missing, "thr_0"), kind
    for kind, params in UNKNOWN_ITEM.items():
        swapped = {key: item if value in ("msg_0", "si_0", "wid_0") else value for key, value in params.items()}
        swapped |= {"item_ids": [item]} if "item_ids" in swapped else {}
        foreign = await stranger.chatkit.post(kind, thread_id=own, **swapped)
        missing = await stranger.chatkit.post(kind, thread_id=own, **params)
        [unknown] = {*str(params).split("'")} & {"msg_0", "si_0", "wid_0"}
        assert said(foreign, item) == said(missing, unknown), kind
    assert (await stranger.chatkit.post("threads.list", after=thread)).status_code == 404
    assert [one["id"] for one in (await stranger.chatkit.list_threads()).data] == [own]
    after = (await user.chatkit.items(thread), stored.row_counts(user.name), stored.row_counts(stranger.name))
    assert after == before


async def test_item_of_another_kind(user: User, model: ScriptedModel, stored: Stored) -> None:
    await model.script(says("Hello."))
    answer = await user.chatkit.say("hello")
    thread, message = {"thread_id": answer.thread_id}, answer.items[-1]["id"]
    counts = stored.row_counts(user.name)
    wrong: list[tuple[str, dict[str, Any], int]] = [
        ("threads.custom_action", {"item_id": answer.user_item_id, "action": ACTION}, 404),
        ("threads.sync_custom_action", {"item_id": answer.user_item_id, "action": ACTION}, 404),
        ("threads.custom_action", {"action": ACTION}, 400),
        ("threads.retry_after_item", {"item_id": message}, 400),
        ("threads.add_client_tool_output", {"result": {}}, 400),
        ("threads.add_structured_input", {"item_id": message, "input": {"answers": {}}}, 400),
        ("items.feedback", {"item_ids": ["x"] * 101, "kind": "positive"}, 400),
    ]
    for kind, params, status in wrong:
        response = await user.chatkit.post(kind, **thread, **params)
        assert response.status_code == status, kind
        sentence(response)
    assert stored.row_counts(user.name) == counts


async def test_action_that_a_card_does_not_have(user: User, model: ScriptedModel) -> None:
    await model.script(add_task("milk"), calls(call("list_tasks")), says("Here."))
    answer = await user.chatkit.say("add milk and show my list")
    card = next(item for item in answer.items if item["type"] == "widget")
    action = {"type": "explode", "payload": {}}
    params = {"thread_id": answer.thread_id, "item_id": card["id"], "action": action}
    assert (await user.chatkit.stream("threads.custom_action", **params)).error is not None
    assert (await user.chatkit.post("threads.sync_custom_action", **params)).status_code == 400


@pytest.mark.parametrize(
    ("bad", "named"), [("\x00", "a NUL character"), ("\ud83d", "half of a character")], ids=["NUL", "lone surrogate"]
)
async def test_text_that_cannot_be_stored(
    user: User, bad: str, named: str, model: ScriptedModel, stored: Stored
) -> None:
    await model.script(says("Hello."))
    thread = (await user.chatkit.say("hello")).thread_id
    before = stored.row_counts(user.name)
    sent: list[tuple[str, dict[str, Any]]] = [
        ("threads.create", {"input": user_input(f"add {bad}")}),
        ("threads.add_user_message", {"thread_id": thread, "input": user_input("add", quoted_text=bad)}),
        ("threads.update", {"thread_id": thread, "title": f"a{bad}"}),
    ]
    bodies: list[tuple[str, Any]] = [("/chatkit", request(kind, **params)) for kind, params in sent]
    bodies += [
        ("/tasks", {"title": f"😀 {bad}"}),
        ("/memory", {bad: "x"}),
        ("/chats/a/interactions", {"user_message": f"x{bad}"}),
    ]
    for path, body in bodies:
        response = await user.chatkit.http.post(path, content=json.dumps(body), headers=JSON)
        assert response.status_code == 400
        assert named in sentence(response)
    assert stored.row_counts(user.name) == before


TOO_LONG = {
    "text": user_input("x" * 8_001),
    "several texts": user_input("x" * 4_000, content=[{"type": "input_text", "text": "x" * 2_001}] * 4),
    "a quote": user_input("x", quoted_text="x" * 8_001),
    "a model's name": user_input("x", inference_options={"model": "m" * 9_000}),
    "a tool's name": user_input("x", inference_options={"tool_choice": {"id": "m" * 9_000}}),
    "empty parts": user_input("", content=[{"type": "input_text", "text": t} for t in ["x", *[""] * 300]]),
}


@pytest.mark.parametrize("message", TOO_LONG.values(), ids=TOO_LONG)
async def test_long_message(user: User, message: dict[str, Any], model: ScriptedModel, stored: Stored) -> None:
    answer = await user.chatkit.stream("threads.create", input=message)
    assert answer.error is not None
    assert not answer.error["allow_retry"]
    assert stored.row_counts(user.name) == {}
    assert await model.requests() == []


@pytest.mark.parametrize("text", ["x" * 8_000, "\n\x01" * 3_999 + "xy", "\U0001f95b" * 8_000])
async def test_longest_message(user: User, text: str, model: ScriptedModel) -> None:
    await model.script(says("Hello."))
    assert (await user.chatkit.say(text)).error is None


@pytest.mark.parametrize(
    "message",
    [
        *(user_input(text) for text in ("", "  \n ", "\u3164\u200b")),
        user_input("see this") | {"attachments": ["atc_0"]},
    ],
)
async def test_message_without_text_or_with_attachment(user: User, message: dict[str, Any], stored: Stored) -> None:
    response = await user.chatkit.post("threads.create", input=message)
    assert response.status_code == 400
    sentence(response)
    assert stored.row_counts(user.name) == {}


async def test_unknown_fields_are_not_stored(user: User, model: ScriptedModel) -> None:
    await model.script(says("Hello."))
    message = user_input("hello", content=[{"type": "input_text", "text": "hello", "more": "spam"}], more="spam")
    body = request("threads.create", input=message, more="spam") | {"metadata": {"more": "spam"}}
    assert (await user.chatkit.http.post("/chatkit", json=body)).status_code == 200
    thread = (await user.chatkit.list_threads()).data[0]["id"]
    assert "spam" not in json.dumps([await user.chatkit.get_thread(thread), await user.chatkit.items(thread)])


@pytest.mark.parametrize("depth", [50, 100, 5_000])
async def test_deep_value(user: User, depth: int, model: ScriptedModel) -> None:
    await model.script(says("Hello."))
    tag = {"type": "input_tag", "id": "1", "text": "@t", "data": {"x": "HERE"}}
    body = json.dumps(request("threads.create", input=user_input("", content=[tag])))
    body = body.replace('"HERE"', "[" * depth + "]" * depth)
    response = await user.chatkit.http.post("/chatkit", content=body, headers=JSON)
    assert response.status_code == (200 if depth < 150 else 400)
    assert "error" in response.json() if depth > 150 else '"type":"error"' not in response.text


async def test_deep_arguments_of_a_tool(user: User, model: ScriptedModel) -> None:
    nested: Any = []
    for _ in range(900):
        nested = [nested]
    await model.script(add_task("milk", description=nested), says("I tried."))
    answer = await user.chatkit.say("go")
    assert (answer.error, answer.text) == (None, "I tried.")


@pytest.mark.parametrize(
    "title", ["", "   ", "x" * 201, "a\nb", "a\x1b[2Jb", "a\u2028b", "\u3164", "\u200b"], ids=ascii
)
async def test_title_that_is_no_visible_line(user: User, title: str, model: ScriptedModel) -> None:
    await model.script(says("Hello."))
    thread = (await user.chatkit.say("hello")).thread_id
    assert (await user.chatkit.post("threads.update", thread_id=thread, title=title)).status_code == 400
    assert (await user.chatkit.get_thread(thread))["title"] == "hello"


async def test_invisible_characters_of_a_title(user: User, model: ScriptedModel) -> None:
    await model.script(says("Hello."))
    thread = (await user.chatkit.say("hel\u200blo\x1b there\nyou \U000e0041")).thread_id
    assert (await user.chatkit.get_thread(thread))["title"] == "hello there you"
    await user.chatkit.update_thread(thread, "shopping \u202e👨‍👩‍👧 \U000e0041")
    assert (await user.chatkit.get_thread(thread))["title"] == "shopping 👨‍👩‍👧"


async def test_error_has_the_id_of_its_request(user: User, stored: Stored, stack: Stack) -> None:
    """An error that nobody expected is one sentence, too, and its cause is in the log alone."""
    with stored.hide_table("profiles"):
        response = await user.chatkit.http.get("/calendar", headers={"X-Request-ID": "abc"})
    assert response.status_code in (500, 503)
    assert response.headers["x-request-id"] == "abc"
    assert "profiles" not in response.text
    assert response.headers["x-content-type-options"] == "nosniff"
    assert "profiles" in stack.backends[0].log_text
