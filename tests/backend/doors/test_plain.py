"""`POST /chatkit` with a message that is none of ChatKit's requests."""

import json
from typing import Any

import pytest

from tests.backend.conftest import Backend, Rows
from tests.backend.consent import calls, deleting, with_tasks
from tests.backend.slow_turns import SLOW
from tests.chatkit_client import ChatKit
from tests.runs_client import Runs
from tests.scripted_model import ScriptedModel
from tests.tokens import IDP_SECRET, ISSUER, minted, of_provider
from tests.waiting import until


async def say(chat: ChatKit, **body: Any) -> list[dict[str, Any]]:
    response = await chat.http.post("/chatkit", json=body)
    assert response.status_code == 200, response.text
    assert response.headers["content-type"].startswith("text/event-stream")
    return [json.loads(line.removeprefix("data: ")) for line in response.text.split("\n\n") if line]


def text_of(events: list[dict[str, Any]]) -> str:
    return "".join(event["content"] for event in events if event["type"] == "message_delta")


async def test_a_message_is_answered_in_pieces_and_a_conversation_begun_or_gone_on_with(
    chat: ChatKit, model: ScriptedModel, rows: Rows
) -> None:
    call = {"name": "add_task", "arguments": {"title": "milk"}}
    first = {"text": "I add it.", "reasoning": "Hm.", "tool_calls": [call]}
    await model.script(first, {"text": "It is there."}, *[{"text": "Hello again."}] * 4)
    told = await say(chat, message="add milk")
    assert text_of(told) == "I add it.\n\nIt is there."
    assert {event["type"] for event in told[:-1]} == {"message_delta"}
    thread = told[-1]["conversation_id"]
    assert thread.startswith("thr_")
    run = told[-1]["interaction_id"]
    assert told[-1] == {
        "type": "message_complete",
        "conversation_id": thread,
        "interaction_id": run,
        "status": "completed",
    }
    assert rows("SELECT outcome FROM runs WHERE id = %s", run) == [{"outcome": "completed"}]
    for name in (thread, 123, "123", "groceries"):
        assert (await say(chat, conversation_id=name, message="hello"))[-1]["conversation_id"] == name
    found = rows("SELECT name FROM conversations ORDER BY created_at")
    assert [one["name"] for one in found] == [None, "123", "groceries"]
    assert await chat.items(thread), "ChatKit's own requests find it, too"


async def test_what_waits_fails_or_is_cut_short_is_told(backend: Backend, model: ScriptedModel, rows: Rows) -> None:
    async with backend(approvals=("delete_task",)) as chat, Runs(chat.base_url) as runs:
        thread = await with_tasks(chat, model, 1)
        await model.script(calls(deleting(1), text="I ask."), {"text": "Done."})
        told = await say(chat, conversation_id=thread, message="delete it")
        assert text_of(told) == "I ask.\n\nDelete task 1?\n“task number 1” (1)"
        assert told[-1]["status"] == "waiting_approval"
        [asked] = told[-1]["approvals"]
        await runs.approve(thread, told[-1]["interaction_id"], asked["approval_id"], approved=True)
        await until(lambda: rows("SELECT 1 FROM runs HAVING count(*) FILTER (WHERE status <> 'ended') = 0"))
        await model.script({"text": "Half of it is here", "cut_after": 4})
        *_, failed = await say(chat, message="hello")
        assert failed["type"] == "error"
        assert "(Reference " in failed["message"]
        await model.script({"text": "Half of", "finish_reason": "length"})
        assert "output limit" in (await say(chat, message="hello"))[-1]["notice"]


async def test_who_leaves_stops_it(chat: ChatKit, model: ScriptedModel, rows: Rows) -> None:
    await model.script(SLOW | {"token_delay": 1})
    async with chat.http.stream("POST", "/chatkit", json={"message": "count", "conversation_id": "a"}) as response:
        lines = response.aiter_lines()  # held: who drops it leaves
        assert "message_delta" in await anext(lines)
        [busy] = await say(chat, message="hello", conversation_id="a")
        assert busy["type"] == "error"
        assert "still answering" in busy["message"]
    await until(lambda: rows("SELECT 1 FROM runs WHERE outcome = 'cancelled'"))


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"message": 7}, 400),
        ({"message": " "}, 400),
        ({"message": "hello", "conversation_id": True}, 400),
        ({"message": "hello", "conversation_id": "a/b"}, 400),
        ({"message": "hello", "conversation_id": ["a"]}, 400),
        ({"message": "hello", "conversation_id": "thr_0"}, 404),
        ({"message": "a\0b"}, 400),
        ({"message": "hello", "user_id": "bob"}, 403),
        ({"massage": "hello"}, 400),
    ],
)
async def test_what_is_none_is_refused_in_a_sentence(chat: ChatKit, rows: Rows, body: Any, status: int) -> None:
    response = await chat.http.post("/chatkit", json=body)
    assert response.status_code == status
    assert response.json()["error"].endswith(".")
    assert rows("SELECT 1 FROM runs") == []


async def test_a_user_id_is_the_callers_own_or_none(backend: Backend, model: ScriptedModel, rows: Rows) -> None:
    token = minted(IDP_SECRET, sub="alice", iss=ISSUER, aud="todo")
    await model.script({"text": "Hello."}, {"text": "Hello."})
    async with (
        backend(**of_provider("todo")) as stranger,
        ChatKit(stranger.base_url, headers={"Authorization": f"Bearer {token}"}) as alice,
    ):
        assert (await stranger.http.post("/chatkit", json={"message": "hello", "user_id": "alice"})).status_code == 401
        assert (await alice.http.post("/chatkit", json={"message": "hello", "user_id": "bob"})).status_code == 403
        assert (await say(alice, message="hello", user_id="alice"))[-1]["status"] == "completed"
        assert (await say(alice, message="hello", user_id=None))[-1]["status"] == "completed"
    assert {one["user_id"] for one in rows("SELECT user_id FROM runs")} == {"alice"}
