"""What `/chat` and `/chat/stream` refuse: with one sentence, and nothing is stored."""

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from tests.backend.conftest import Backend, Rows
from tests.backend.consent import calls, deleting, open_tasks
from tests.backend.doors.chat.asking import MINI, ask, part, said, send
from tests.chatkit_client import JSON, ChatKit
from tests.scripted_model import ScriptedModel
from tests.tokens import IDP_SECRET, ISSUER, minted, of_provider

PATHS = ("/chat", "/chat/stream")
AUDIENCE = "todo"
SAID = said("hello")
NEVER_ASKED = {"id": "apr_0", "approved": True}


def decided(*approvals: Any, kind: str = "dynamic-tool", role: str = "assistant") -> dict[str, Any]:
    """A message of the assistant as the AI SDK sends it back, with what the person decided."""
    common = {"type": kind, "toolName": "delete_task", "toolCallId": "c", "input": {}, "state": "approval-responded"}
    return {"role": role, "parts": [{**common, "approval": approval} for approval in approvals]}


REFUSED: dict[str, tuple[Any, str]] = {
    "no messages": ({}, "at messages"),
    "messages that are no list": ({"messages": {"0": SAID}}, "at messages"),
    "a message that is none": ({"messages": ["hello"]}, "at messages.0"),
    "no role": ({"messages": [{"content": "hello"}]}, "at messages.0.role"),
    "nobody's message": ({"messages": []}, "No text content provided"),
    "only others'": ({"messages": [{"role": "hacker", "content": "x"}]}, "No text content provided"),
    "no text": ({"messages": [{"role": "user", "content": []}]}, "No text content provided"),
    "content that is none": ({"messages": [{"role": "user", "content": {"text": "x"}}]}, "No text content provided"),
    "empty text": ({"messages": [{"role": "user", "content": [part("")]}]}, "No text content provided"),
    "unseen text": ({"messages": [said(" \u200b")]}, "The message is empty"),
    "an image": ({"messages": [{"role": "user", "content": [part("x"), {"type": "image"}]}]}, "type 'image'"),
    "a file": ({"messages": [{"role": "user", "parts": [{"type": "file", "url": "x"}, part("x")]}]}, "type 'file'"),
    "a part without type": ({"messages": [{"role": "user", "content": [{"text": "x"}]}]}, "an object with a type"),
    "a part that is none": ({"messages": [{"role": "user", "content": [7]}]}, "an object with a type"),
    "a text that is none": ({"messages": [{"role": "user", "content": [part("x") | {"text": 7}]}]}, "type 'text'"),
    "a thread that is none": ({"messages": [SAID], "threadId": 7}, "at threadId"),
    "a name that is none": ({"messages": [SAID], "threadId": "a/b"}, "A chat is named by"),
    "a long text": ({"messages": [said("x" * 8_001)]}, "8,001 characters"),
    "a NUL": ({"messages": [said("a\0b")]}, "NUL"),
    "many values": ({"messages": [SAID], "x": [0] * 20_001}, "more than 20,000 values"),
    "many parts": ({"messages": [{"role": "user", "parts": [part("x")] * 10_000}]}, "values: send less"),
    "deep": ({"messages": [SAID], "x": json.loads("[" * 400 + "]" * 400)}, "not JSON"),
    "decided nowhere": ({"messages": [decided({"id": "apr_0", "approved": True})]}, "its threadId"),
    "no decision": ({"messages": [decided({"id": "x", "approved": "yes"})], "id": "a"}, "An approval has its id"),
    "no approval": ({"messages": [decided(None)], "id": "a"}, "An approval has its id"),
    "decided twice": ({"messages": [decided(*[{"id": "x", "approved": True}] * 2)], "id": "a"}, "decided once"),
    "a tool's turn": ({"messages": [SAID, {"role": "assistant", "parts": [{"type": "tool-x"}]}]}, "Nothing was said"),
    "its call": ({"messages": [SAID, {"role": "assistant", "content": [{"type": "tool-call"}]}]}, "Nothing was said"),
    "its result": ({"messages": [SAID, {"role": "tool", "content": [{"type": "tool-result"}]}]}, "Nothing was said"),
}


@pytest.mark.parametrize("path", PATHS)
async def test_what_is_no_message_is_refused_in_a_sentence(chat: ChatKit, rows: Rows, path: str) -> None:
    for name, (body, told) in REFUSED.items():
        response = await chat.http.post(path, content=json.dumps(body), headers=JSON)
        assert response.status_code == 400, name
        assert told in response.json()["error"], name
        assert response.json()["error"].endswith("."), name
    for raw in (b"", b"[]", b"{", b'{"messages": [{"role": "user", "content": "\\ud800"}]}'):
        response = await chat.http.post(path, content=raw, headers=JSON)
        assert response.status_code == 400
        assert "Traceback" not in response.text
    unknown = await send(chat, [SAID], path, threadId="thr_0")
    assert unknown.status_code == 404
    assert rows("SELECT 1 FROM runs") == []


async def test_keys_that_are_special_elsewhere_and_long_histories_are_passed_over(
    chat: ChatKit, model: ScriptedModel
) -> None:
    await model.script({"text": "Yes."}, {"text": "No."})
    odd = {"__proto__": {"role": "user"}, "constructor": {"prototype": 1}, "toString": None}
    body = {"messages": [{**SAID, **odd}, odd | {"role": "assistant", "content": odd}], **odd}
    assert (await chat.http.post("/chat", json=body)).json()["answer"] == "Yes."
    many = [{"role": "assistant", "parts": [part("x" * 30)] * 5}] * 900
    assert (await ask(chat, [*many, SAID]))["answer"] == "No."


async def test_limits_tell_when_to_come_back(backend: Backend) -> None:
    async with backend(limit_turns_per_minute=1) as chat:
        assert (await send(chat, [SAID])).status_code == 200
        for path in PATHS:
            refused = await send(chat, [SAID], path)
            assert refused.status_code == 429
            assert 1 <= int(refused.headers["retry-after"]) <= 60
            metrics = (await chat.http.get("/metrics")).text
            assert f'todo_chat_seconds_count{{outcome="refused",route="{path}"}}' in metrics


async def test_pages_of_allowed_origins_read_what_they_need(backend: Backend) -> None:
    origin = {"Origin": "http://localhost:3000"}
    async with backend(allowed_origins=("http://localhost:3000",)) as chat:
        asking = {"Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "content-type"}
        for path in PATHS:
            preflight = await chat.http.options(path, headers={**origin, **asking})
            assert preflight.status_code == 200
            answered = await send(chat, MINI, path, headers=origin)
            assert answered.headers["access-control-allow-origin"] == origin["Origin"]
            exposed = answered.headers["access-control-expose-headers"].lower()
            assert {"retry-after", "x-vercel-ai-ui-message-stream"} <= {name.strip() for name in exposed.split(",")}
            assert (await send(chat, MINI, path, headers={"Origin": "http://evil.example"})).status_code == 403
        streamed = await send(chat, MINI, "/chat/stream", headers=origin)
        assert streamed.headers["x-vercel-ai-ui-message-stream"] == "v1"


@pytest.fixture
async def people(backend: Backend) -> AsyncIterator[tuple[ChatKit, ChatKit, ChatKit]]:
    """Alice, Bob, and somebody without a token."""
    tokens = (minted(IDP_SECRET, sub=name, iss=ISSUER, aud=AUDIENCE) for name in ("alice", "bob"))
    one, other = ({"Authorization": f"Bearer {token}"} for token in tokens)
    async with (
        backend(**of_provider(AUDIENCE), approvals=("delete_task",)) as stranger,
        ChatKit(stranger.base_url, headers=one) as alice,
        ChatKit(stranger.base_url, headers=other) as bob,
    ):
        yield alice, bob, stranger


async def test_chats_and_decisions_are_their_persons_alone(
    people: tuple[ChatKit, ChatKit, ChatKit], model: ScriptedModel, rows: Rows
) -> None:
    alice, bob, stranger = people
    added = {"tool_calls": [{"name": "add_task", "arguments": {"title": "milk"}}]}
    await model.script(added, {"text": "Added."}, calls(deleting(1)), {"text": "Hello, Bob."}, {"text": "Deleted."})
    thread = (await ask(alice, MINI))["threadId"]
    asked = await ask(alice, [said("delete 1")], threadId=thread)
    approval = {"id": asked["approvals"][0]["approval_id"], "approved": True}
    for path in PATHS:
        assert (await send(stranger, [SAID], path)).status_code == 401
        assert (await send(bob, [SAID], path, threadId=thread)).status_code == 404
        for where in (thread, "bobs", asked["interactionId"]):
            assert (await send(bob, [decided(approval)], path, threadId=where)).status_code == 404
        # Of her own: in another chat, of another run, beside one that was never asked.
        assert (await send(alice, [decided(approval)], path, threadId="another")).status_code == 404
        for forged in (decided(NEVER_ASKED), decided(approval, NEVER_ASKED), decided(NEVER_ASKED, approval)):
            assert (await send(alice, [forged], path, id=thread)).status_code == 404
    assert (await ask(bob, [decided(approval, role="user"), SAID], threadId="bobs"))["answer"] == "Hello, Bob."
    assert rows("SELECT decision FROM approvals") == [{"decision": None}]
    assert open_tasks(rows) == 1
    answered = await ask(alice, [SAID, decided(approval)], threadId=thread)
    assert (answered["answer"], answered["interactionId"]) == ("Deleted.", asked["interactionId"])
    assert open_tasks(rows) == 0
    # The same again is answered alike, the opposite is refused.
    assert await ask(alice, [SAID, decided(approval)], threadId=thread) == answered
    again = await send(alice, [decided(approval)], "/chat/stream", threadId=thread)
    assert '"Deleted."' in again.text
    assert again.text.endswith("data: [DONE]\n\n")
    other = await send(alice, [decided({**approval, "approved": False})], threadId=thread)
    assert (other.status_code, "decided already" in other.json()["error"]) == (400, True)
