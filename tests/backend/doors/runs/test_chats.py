"""What names a chat, and who is refused: by a status, with a sentence, before anything is stored."""

import asyncio
from typing import Any

import httpx2
import pytest

from client.connection import Refused
from tests.backend.conftest import Backend, Rows
from tests.backend.slow_turns import SLOW
from tests.chatkit_client import JSON, ChatKit
from tests.runs_client import Runs, id_of, names
from tests.scripted_model import ScriptedModel
from tests.waiting import until

OURS = ("thr_0", "thr_" + "0" * 32, "run_" + "0" * 32, "msg_" + "a" * 32)
NO_NAMES = ("a b", "a%2Fb", "ä", "a" * 101, "%2e", "...", "openapi.json", "a@b", "%00", "a%0A")
RUN = "run_" + "0" * 32
PATHS = [
    ("GET", ""),
    ("POST", "/interactions"),
    ("GET", f"/interactions/{RUN}"),
    ("GET", f"/interactions/{RUN}/events"),
    ("POST", f"/interactions/{RUN}/cancel"),
    ("POST", "/compact"),
]
BODY = {"user_message": "hello"}


def sentence(response: httpx2.Response) -> str:
    assert set(response.json()) == {"error"}
    text = response.json()["error"]
    assert text.endswith(".")
    assert "Traceback" not in text
    return text


async def asked(chat: ChatKit, method: str, path: str, **more: Any) -> httpx2.Response:
    body = {"json": BODY} if path.endswith("/interactions") else {}
    return await chat.http.request(method, f"/chats/{path}", **body, **more)


@pytest.mark.parametrize("name", ["groceries", "A-b_c.9", "a" * 100, ".a", "thr", "1"])
async def test_a_name_that_is_new_makes_a_chat_which_every_door_knows(runs: Runs, chat: ChatKit, name: str) -> None:
    events = await runs.say(name, "add milk")
    assert events[0].data["chat_id"] == name
    thread = (await chat.list_threads()).data[0]
    by_id = await runs.get_chat(thread["id"])
    assert {**by_id, "chat_id": name, "interactions": []} == {**await runs.get_chat(name), "interactions": []}
    assert (await chat.items(thread["id"]))[0]["type"] == "user_message"
    assert (await runs.say(thread["id"], "show all"))[0].data["chat_id"] == thread["id"]
    assert len((await runs.get_chat(name))["interactions"]) == 2


@pytest.mark.parametrize("path", [path for path in PATHS if path != ("POST", "/interactions")], ids=str)
async def test_only_a_message_makes_a_chat(chat: ChatKit, rows: Rows, path: tuple[str, str]) -> None:
    response = await asked(chat, path[0], f"groceries{path[1]}")
    assert response.status_code == 404
    assert "nothing with this id" in sentence(response)
    assert rows("SELECT * FROM conversations") == []


@pytest.mark.parametrize("name", OURS)
@pytest.mark.parametrize("path", PATHS, ids=str)
async def test_what_looks_like_our_ids_is_only_looked_up(
    chat: ChatKit, rows: Rows, path: tuple[str, str], name: str
) -> None:
    assert (await asked(chat, path[0], f"{name}{path[1]}")).status_code == 404
    assert rows("SELECT * FROM conversations") == rows("SELECT * FROM runs") == []


@pytest.mark.parametrize("name", NO_NAMES)
async def test_what_is_no_name_is_refused(chat: ChatKit, rows: Rows, name: str) -> None:
    for method, path in PATHS:
        if (name, path) == ("openapi.json", ""):
            continue  # which is the schema
        response = await asked(chat, method, f"{name}{path}")
        assert response.status_code in ((400, 404) if name == "a%2Fb" else (400,)), (method, path)
    assert rows("SELECT * FROM conversations") == []


async def test_two_first_messages_at_once_make_one_chat(backend: Backend, rows: Rows, model: ScriptedModel) -> None:
    async with backend() as one, backend() as two:

        async def say(chat: ChatKit) -> int:
            return (await asked(chat, "POST", "groceries/interactions")).status_code

        statuses = await asyncio.gather(*(say(chat) for chat in (one, two) * 5))
    assert set(statuses) <= {200, 409}
    assert 200 in statuses
    assert len(rows("SELECT 1 FROM conversations")) == 1
    assert len(rows("SELECT 1 FROM runs")) == statuses.count(200)


async def test_a_chat_that_is_answering_is_busy(backend: Backend, model: ScriptedModel, rows: Rows) -> None:
    await model.script(SLOW)
    async with (
        backend() as chat,
        Runs(chat.base_url) as runs,
        runs.interact("counting", "count") as events,
    ):
        await anext(events)
        response = await asked(chat, "POST", "counting/interactions")
        assert response.status_code == 409
        assert "still answering" in sentence(response)
    assert len(rows("SELECT 1 FROM messages WHERE kind = 'user_message'")) == 1


async def test_limits_are_statuses(backend: Backend, rows: Rows) -> None:
    async with backend(limit_turns_per_minute=1, limit_conversations=5) as chat, Runs(chat.base_url) as runs:
        await runs.say("one", "hello")
        response = await asked(chat, "POST", "two/interactions")
        assert response.status_code == 429
        sentence(response)
    async with backend(limit_conversations=1) as chat:
        assert (await asked(chat, "POST", "two/interactions")).status_code == 429
    async with backend(limit_requests_per_minute=1) as chat:
        statuses = [(await chat.http.get("/chats")).status_code for _ in range(2)]
        assert statuses == [200, 429]
    assert len(rows("SELECT 1 FROM conversations")) == 1


BODIES = {
    "nothing": b"",
    "no JSON": b"hello",
    "no object": b"[1]",
    "no field": b"{}",
    "a number": b'{"user_message": 1}',
    "empty": b'{"user_message": ""}',
    "blank": b'{"user_message": " \\u200b"}',
    "too long": b'{"user_message": "' + b"a" * 8_001 + b'"}',
    "NUL": b'{"user_message": "a\\u0000"}',
    "lone surrogate": b'{"user_message": "\\ud800"}',
    "no UTF-8": b'{"user_message": "\xff"}',
    "deep": b'{"user_message": ' + b"[" * 10_000 + b"]" * 10_000 + b"}",
}


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
async def test_a_body_that_is_no_request_is_refused(chat: ChatKit, body: bytes, rows: Rows) -> None:
    response = await chat.http.post("/chats/one/interactions", content=body, headers=JSON)
    assert response.status_code == 400
    sentence(response)
    assert rows("SELECT * FROM conversations") == []


async def test_a_body_that_is_too_large_is_refused(chat: ChatKit, rows: Rows) -> None:
    response = await chat.http.post("/chats/one/interactions", json={"user_message": "a" * 200_000})
    assert response.status_code == 413
    sentence(response)
    assert rows("SELECT * FROM conversations") == []


@pytest.mark.parametrize("given", ["-1", "1.5", "x", "", "9223372036854775808", "9" * 40, "\N{SUPERSCRIPT TWO}"])
async def test_a_last_event_that_is_no_number_is_refused(chat: ChatKit, runs: Runs, given: str) -> None:
    run = id_of(await runs.say("one", "hello"))
    headers = {"Last-Event-ID": given.encode()}
    response = await chat.http.get(f"/chats/one/interactions/{run}/events", headers=headers)  # pyright: ignore[reportArgumentType]
    assert response.status_code == 400
    assert "2^63" in sentence(response)


@pytest.mark.parametrize("page", ["limit=0", "limit=101", "limit=x", "limit="])
async def test_a_page_that_cannot_be_is_refused(chat: ChatKit, runs: Runs, page: str) -> None:
    await runs.say("one", "hello")
    for path in ("/chats", "/chats/one"):
        response = await chat.http.get(f"{path}?{page}")
        assert response.status_code == 400
        sentence(response)


async def test_a_page_after_what_is_not_there_is_not_found(runs: Runs) -> None:
    run = id_of(await runs.say("one", "hello"))
    await runs.say("two", "hello")
    for read in (lambda: runs.get_chats(after="three"), lambda: runs.get_chat("two", after=run)):
        with pytest.raises(Refused) as refused:
            await read()
        assert refused.value.status == 404


async def test_an_interaction_of_another_chat_is_not_found(runs: Runs, chat: ChatKit) -> None:
    run = id_of(await runs.say("one", "hello"))
    await runs.say("two", "hello")
    for method, path in (("GET", ""), ("GET", "/events"), ("POST", "/cancel")):
        response = await chat.http.request(method, f"/chats/two/interactions/{run}{path}")
        assert response.status_code == 404


async def test_a_deleted_chat_is_gone_and_its_name_is_free(
    chat: ChatKit, runs: Runs, model: ScriptedModel, rows: Rows
) -> None:
    run = id_of(await runs.say("one", "hello"))
    await model.script(SLOW)
    async with runs.interact("one", "count") as events:
        second = id_of([await anext(events)])
        await chat.delete_thread((await chat.list_threads()).data[0]["id"])
        assert names([event async for event in events])[-1] == "interaction_complete"
    for gone in (run, second):
        assert (await chat.http.get(f"/chats/one/interactions/{gone}/events")).status_code == 404
    assert rows("SELECT * FROM run_events") == []
    await until(lambda: rows("SELECT 1 FROM runs WHERE status = 'ended' HAVING count(*) = 2"))
    assert len(await runs.say("one", "hello")) > 3
    assert len((await runs.get_chat("one"))["interactions"]) == 1


async def test_pages_of_other_origins_may_send_what_the_api_reads(backend: Backend) -> None:
    async with backend(allowed_origins=("https://app.example",)) as chat:
        for header in ("last-event-id", "idempotency-key"):
            preflight = await chat.http.options(
                "/chats/one/interactions",
                headers={
                    "Origin": "https://app.example",
                    "Access-Control-Request-Method": "POST",
                    "Access-Control-Request-Headers": header,
                },
            )
            assert preflight.status_code == 200
        answer = await chat.http.get("/chats", headers={"Origin": "https://app.example"})
        exposed = answer.headers["access-control-expose-headers"].split(", ")
        assert {"x-request-id", "retry-after"} <= set(exposed)
        foreign = await chat.http.get("/chats", headers={"Origin": "https://evil.example"})
        assert foreign.status_code == 403


NO_IDS = ("%00", "run_%00", "a%0A", "a b", "%ED%A0%80", "a" * 101)


@pytest.mark.parametrize("no_id", NO_IDS)
async def test_what_can_be_no_id_is_refused_and_not_looked_up(chat: ChatKit, runs: Runs, no_id: str) -> None:
    await runs.say("one", "hello")
    for method, what, body in (
        ("GET", "", None),
        ("GET", "/events", None),
        ("POST", "/cancel", None),
        ("POST", "/approve", {"approval_id": "apr_0", "approved": True}),
        ("POST", "/edit", {"new_user_message": "hello"}),
        ("POST", "/messages", {"text": "hello", "mode": "steer"}),
    ):
        response = await chat.http.request(method, f"/chats/one/interactions/{no_id}{what}", json=body)
        assert response.status_code == 404, (method, what)
        assert "nothing with this id" in sentence(response)
    for path in ("", "/one"):
        response = await chat.http.get(f"/chats{path}?after={no_id}")
        assert response.status_code == 400
        assert "after" in sentence(response)
