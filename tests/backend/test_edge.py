import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from tests.backend.conftest import Backend
from tests.backend.test_turns import SLOW, read_text, until
from tests.chatkit_client import ChatKit, user_input
from tests.scripted_model import ScriptedModel

Rows = Callable[..., list[dict[str, Any]]]


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:8000", "localhost.evil.example", "", "127.0.0.1.nip.io"]
)
async def test_a_foreign_host_is_refused(chat: ChatKit, host: str, rows: Rows) -> None:
    for method, path in (("GET", "/"), ("POST", "/chatkit"), ("GET", "/ready")):
        response = await chat.http.request(method, path, headers={"Host": host})
        assert response.status_code == 421
        assert "ALLOWED_HOSTS" in response.json()["error"]
    assert rows("SELECT 1 FROM conversations") == []


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:1234", "127.0.0.1", "[::1]:8000", "todo.example"])
async def test_loopback_and_allowed_hosts_are_served(backend: Backend, host: str) -> None:
    async with backend(allowed_hosts=("todo.example",)) as chat:
        assert (await chat.http.get("/health", headers={"Host": host})).status_code == 200


@pytest.mark.parametrize(
    "origin", ["https://evil.example", "null", "http://localhost:1", "http://localhost.evil.example"]
)
async def test_a_page_of_another_origin_is_refused(chat: ChatKit, origin: str, rows: Rows) -> None:
    body = {"type": "threads.create", "params": {"input": user_input("add milk")}}
    response = await chat.http.post("/chatkit", json=body, headers={"Origin": origin})
    assert response.status_code == 403
    assert "access-control-allow-origin" not in response.headers
    assert rows("SELECT 1 FROM conversations") == []


async def test_who_leaves_before_the_body_is_sent_is_no_error(chat: ChatKit, caplog: pytest.LogCaptureFixture) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", chat.http.base_url.port)
    writer.write(b"POST /chatkit HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\nExpect: 100-continue\r\n\r\n")
    assert await reader.readline() == b"HTTP/1.1 100 Continue\r\n", "the body is being read"
    writer.close()
    await writer.wait_closed()
    assert (await chat.http.get("/health")).status_code == 200
    assert "ClientDisconnect" not in caplog.text


async def test_the_servers_own_page_and_programs_are_served(chat: ChatKit) -> None:
    for headers in ({}, {"Origin": chat.base_url}):
        response = await chat.http.post("/chatkit", json={"type": "threads.list", "params": {}}, headers=headers)
        assert response.status_code == 200


async def test_cors_only_as_configured(backend: Backend) -> None:
    async with backend(allowed_origins=("https://app.example",)) as chat:
        preflight = await chat.http.options(
            "/chatkit",
            headers={
                "Origin": "https://app.example",
                "Access-Control-Request-Method": "POST",
                "Access-Control-Request-Headers": "authorization",
            },
        )
        assert preflight.status_code == 200
        assert preflight.headers["access-control-allow-origin"] == "https://app.example"
        answer = await chat.http.post(
            "/chatkit", json={"type": "threads.list", "params": {}}, headers={"Origin": "https://app.example"}
        )
        assert answer.headers["access-control-allow-origin"] == "https://app.example"
        other = await chat.http.post(
            "/chatkit", json={"type": "threads.list", "params": {}}, headers={"Origin": "https://evil.example"}
        )
        assert other.status_code == 403


async def test_every_answer_carries_the_usual_headers(chat: ChatKit) -> None:
    responses = [
        await chat.http.get("/"),
        await chat.http.get("/nothing"),
        await chat.http.post("/chatkit", content=b"{}"),
        await chat.http.get("/", headers={"Host": "evil.example"}),
    ]
    for response in responses:
        assert "default-src 'none'" in response.headers["content-security-policy"]
        assert response.headers["x-content-type-options"] == "nosniff"
        assert response.headers["x-frame-options"] == "DENY"
        assert response.headers["referrer-policy"] == "no-referrer"


async def test_turns_per_minute_are_limited_and_the_wait_is_told(backend: Backend, rows: Rows) -> None:
    async with backend(limit_turns_per_minute=3) as one, backend(limit_turns_per_minute=3) as two:
        thread = (await one.say("hello")).thread_id
        await two.say("hello", thread)
        await one.say("hello")
        before = rows("SELECT count(*) FROM messages")
        for chat in (one, two):
            refused = await chat.say("hello", thread)
            assert [event["type"] for event in refused.events] == ["error"]
            assert refused.error is not None
            assert "go on in 6" in refused.error["message"] or "go on in 5" in refused.error["message"]
            assert refused.error["allow_retry"] is True
        assert rows("SELECT count(*) FROM messages") == before
        await one.ask("threads.update", thread_id=thread, title="not limited")
        rows("UPDATE runs SET started_at = started_at - interval '61 seconds'")
        assert (await one.say("hello", thread)).error is None


async def test_running_turns_are_limited(backend: Backend, model: ScriptedModel, rows: Rows) -> None:
    async with backend(limit_running_turns=1) as chat:
        await model.script(SLOW)
        async with chat.open("threads.create", input=user_input("count")) as events:
            await read_text(events, at_least=4)
            refused = await chat.say("hello")
            assert refused.error is not None
            assert "1 answers running" in refused.error["message"]
        await until(lambda: rows("SELECT 1 FROM runs WHERE status = 'ended'"))
        assert (await chat.say("hello")).error is None


async def test_a_limit_holds_however_many_ask_at_once(backend: Backend, rows: Rows) -> None:
    async with backend(limit_turns_per_minute=5) as one, backend(limit_turns_per_minute=5) as two:
        answers = await asyncio.gather(*(chat.say("hello") for chat in (one, two) * 8))
    assert sum(answer.error is None for answer in answers) == 5
    assert len(rows("SELECT 1 FROM runs")) == 5
