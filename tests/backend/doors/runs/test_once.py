"""A request that is sent again under its key."""

import asyncio
import hashlib
import itertools
import secrets
import time
from datetime import timedelta
from typing import Any

import httpx2
import pytest

from backend.conversation.runs import kept
from tests.backend.conftest import Backend, Rows
from tests.backend.slow_turns import SLOW
from tests.chatkit_client import ChatKit
from tests.runs_client import Runs, id_of, names, text_of
from tests.scripted_model import ScriptedModel
from tests.waiting import until

pytestmark = pytest.mark.long


async def post(chat: ChatKit, path: str, key: str, body: Any = None) -> httpx2.Response:
    return await chat.http.post(f"/chats/{path}", json=body, headers={"Idempotency-Key": key})


def said(rows: Rows) -> int:
    return len(rows("SELECT 1 FROM messages WHERE kind = 'user_message'"))


async def test_the_same_message_again_is_the_same_run_from_its_first_event(runs: Runs, rows: Rows) -> None:
    first = await runs.say("groceries", "add milk", key="k")
    assert await runs.say("groceries", "add milk", key="k") == first
    assert said(rows) == len(rows("SELECT 1 FROM tasks")) == 1
    other = await runs.say("groceries", "add milk", key="another")
    assert id_of(other) != id_of(first)


async def test_a_message_is_joined_while_it_is_answered(runs: Runs, model: ScriptedModel, rows: Rows) -> None:
    await model.script(SLOW)
    async with runs.interact("counting", "count", key="k") as events:
        first = [await anext(events)]
        again = asyncio.create_task(runs.say("counting", "count", key="k"))
        first += [event async for event in events]
    assert await again == first
    assert text_of(first) == SLOW["text"]
    assert said(rows) == 1


async def test_of_one_person_only_so_many_are_kept(chat: ChatKit, runs: Runs, rows: Rows) -> None:
    first = await runs.say("groceries", "add milk", key="k")
    rows(
        "INSERT INTO kept_requests (user_id, key, request) "
        "SELECT who, 'key-' || n, '' FROM generate_series(1, %s) n, unnest(ARRAY['local', 'bob']) AS who",
        kept.MOST - 1,
    )
    before = rows("SELECT count(*) FROM runs"), rows("SELECT count(*) FROM kept_requests")
    for path, body in (
        ("groceries/interactions", {"user_message": "add bread"}),
        ("bread/interactions", {"user_message": "add bread"}),
        ("groceries/branch", {"interaction_id": id_of(first)}),
    ):
        response = await post(chat, path, "one-more", body)
        assert response.status_code == 429
        assert "10,000 requests with a key within 24 hours" in response.json()["error"]
    assert (rows("SELECT count(*) FROM runs"), rows("SELECT count(*) FROM kept_requests")) == before
    assert await runs.say("groceries", "add milk", key="k") == first
    await runs.say("groceries", "add bread")
    rows("DELETE FROM kept_requests WHERE key = 'key-1'")
    assert (await post(chat, "groceries/branch", "one-more", {"interaction_id": id_of(first)})).status_code == 200


async def test_a_key_holds_one_request(chat: ChatKit, runs: Runs, rows: Rows) -> None:
    run = id_of(await runs.say("one", "hello", key="k"))
    for path, body in (
        ("one/interactions", {"user_message": "something else"}),
        ("two/interactions", {"user_message": "hello"}),
        (f"one/interactions/{run}/cancel", None),
    ):
        response = await post(chat, path, "k", body)
        assert response.status_code == 409
        assert "use a new key" in response.json()["error"]
    assert said(rows) == 1


@pytest.mark.parametrize("key", ["", "a b", "a" * 256, "ä"])
async def test_what_is_no_key_is_refused(chat: ChatKit, rows: Rows, key: str) -> None:
    headers: Any = {"Idempotency-Key": key.encode()}
    response = await chat.http.post("/chats/one/interactions", json={"user_message": "hello"}, headers=headers)
    assert response.status_code == 400
    assert "Idempotency-Key" in response.json()["error"]
    assert said(rows) == 0


async def test_every_visible_character_makes_a_key(runs: Runs) -> None:
    visible = "".join(map(chr, range(0x21, 0x7F)))
    for key in (visible, "a" * 255):
        assert await runs.say("one", "hello", key=key) == await runs.say("one", "hello", key=key)


async def test_what_is_refused_is_not_kept(backend: Backend, model: ScriptedModel, rows: Rows) -> None:
    await model.script(SLOW)
    async with backend() as chat, Runs(chat.base_url) as runs:
        async with runs.interact("counting", "count") as events:
            await anext(events)
            assert (await post(chat, "counting/interactions", "k", {"user_message": "and?"})).status_code == 409
            async for _ in events:
                pass
        assert rows("SELECT * FROM kept_requests") == []
        assert (await post(chat, "counting/interactions", "k", {"user_message": "and?"})).status_code == 200
        assert said(rows) == 2


async def test_a_cancellation_is_answered_alike_again(
    chat: ChatKit, runs: Runs, model: ScriptedModel, rows: Rows
) -> None:
    await model.script(SLOW)
    async with runs.interact("counting", "count") as events:
        run = id_of([await anext(events)])
        path = f"counting/interactions/{run}/cancel"
        first = await post(chat, path, "k")
        assert names([event async for event in events])[-1] == "interaction_complete"
    again = await post(chat, path, "k")
    assert (again.status_code, again.json()) == (first.status_code, first.json())
    assert first.json()["status"] == "cancelling"
    refused = await post(chat, path, "another")
    assert refused.status_code == 409
    assert [row["key"] for row in rows("SELECT key FROM kept_requests")] == ["k"]


async def test_a_request_whose_process_died_is_not_done_again(
    chat: ChatKit, runs: Runs, model: ScriptedModel, rows: Rows
) -> None:
    await model.script(SLOW)
    async with runs.interact("counting", "count") as events:
        path = f"counting/interactions/{id_of([await anext(events)])}/cancel"
        await post(chat, path, "k")
    rows("UPDATE kept_requests SET status = NULL, answer = NULL, created_at = created_at - interval '1 minute'")
    response = await post(chat, path, "k")
    assert response.status_code == 409
    assert "is not known" in response.json()["error"]


async def test_the_first_answer_is_waited_for_with_growing_pauses(
    chat: ChatKit, runs: Runs, rows: Rows, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = f"one/interactions/{id_of(await runs.say('one', 'hello'))}/messages"
    body = {"text": "and?", "mode": "steer"}
    request = httpx2.Request("POST", f"http://one/chats/{path}", json=body)
    what = f"POST /chats/{path}\n".encode() + request.read()
    rows(
        "INSERT INTO kept_requests (user_id, key, request, created_at) VALUES ('local', 'k', %s, now() - %s)",
        hashlib.sha256(what).digest(),
        timedelta(seconds=26),
    )
    looked: list[float] = []

    async def find(*args: Any, **more: Any) -> Any:
        looked.append(time.monotonic())
        return await kept_before(*args, **more)

    kept_before = kept.find
    monkeypatch.setattr(kept, "find", find)
    response = await post(chat, path, "k", body)
    assert (response.status_code, "is not known" in response.json()["error"]) == (409, True)
    pauses = [later - earlier for earlier, later in itertools.pairwise(looked)]
    assert 4 <= len(pauses) <= 8
    assert pauses[0] < 0.5 < pauses[-1] < 3


async def test_a_key_is_free_again_after_a_day(runs: Runs, rows: Rows) -> None:
    first = await runs.say("one", "hello", key="k")
    rows("UPDATE kept_requests SET created_at = created_at - interval '23 hours 59 minutes'")
    assert await runs.say("one", "hello", key="k") == first
    rows("UPDATE kept_requests SET created_at = created_at - interval '2 minutes'")
    assert id_of(await runs.say("one", "something else", key="k")) != id_of(first)


@pytest.mark.parametrize("where", ["one chat", "a new name", "one process"])
async def test_duplicates_at_once_act_once(backend: Backend, rows: Rows, where: str) -> None:
    async with backend() as one, backend() as two, Runs(one.base_url) as here, Runs(two.base_url) as there:
        name = "groceries"
        if where == "one chat":
            await here.say(name, "hello")
        clients = (here, here) if where == "one process" else (here, there)
        for _ in range(5):
            before, key = said(rows), secrets.token_hex()
            name = f"{name}x" if where == "a new name" else name
            if where == "one process" and before == 0:
                await here.say(name, "hello")
                before = 1
            answers = await asyncio.gather(*(client.say(name, "add milk", key=key) for client in clients * 3))
            assert all(answer == answers[0] for answer in answers)
            assert said(rows) == before + 1
    assert len(rows("SELECT 1 FROM tasks")) == 5
    await until(lambda: not rows("SELECT 1 FROM runs WHERE status <> 'ended'"))
