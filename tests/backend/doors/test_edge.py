import asyncio
import json

import pytest

from tests.backend.conftest import Backend, Rows
from tests.backend.slow_turns import SLOW, read_text
from tests.chatkit_client import JSON, ChatKit, user_input
from tests.scripted_model import ScriptedModel
from tests.waiting import until


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


@pytest.mark.parametrize(
    ("origin", "scheme", "served"),
    [
        ("http://{host}", "http", True),
        ("https://{host}", "https", True),
        ("HTTPS://{host}", "https", True),
        ("http://{host}", "https", False),
        ("https://{host}", "http", False),
        ("foo://{host}", "http", False),
        ("{host}", "http", False),
        ("http://{host}/", "http", False),
        ("http://{host}.", "http", False),
    ],
)
async def test_an_origin_is_compared_with_its_scheme(chat: ChatKit, origin: str, scheme: str, served: bool) -> None:
    host = chat.base_url.removeprefix("http://")
    headers = {"Origin": origin.format(host=host), "X-Forwarded-Proto": scheme}
    response = await chat.http.post("/chatkit", json={"type": "threads.list", "params": {}}, headers=headers)
    assert response.status_code == (200 if served else 403)
    if not served:
        assert "TRUSTED_PROXIES" in response.json()["error"]


@pytest.mark.parametrize(
    ("host", "origin", "scheme"),
    [
        ("localhost:443", "https://localhost", "https"),
        ("localhost", "https://localhost", "https"),
        ("LOCALHOST:80", "http://localhost", "http"),
        ("[::1]:8443", "https://[::1]:8443", "https"),
    ],
)
async def test_a_default_port_is_the_same_as_none(chat: ChatKit, host: str, origin: str, scheme: str) -> None:
    headers = {"Host": host, "Origin": origin, "X-Forwarded-Proto": scheme}
    response = await chat.http.post("/chatkit", json={"type": "threads.list", "params": {}}, headers=headers)
    assert response.status_code == 200


@pytest.mark.parametrize(
    "kind", [None, "text/plain", "application/x-www-form-urlencoded", "multipart/form-data", "text/json", "x/json"]
)
@pytest.mark.parametrize("path", ["/chatkit", "/session", "/nothing"])
async def test_a_body_that_a_foreign_page_could_send_unasked_is_refused(
    chat: ChatKit, kind: str | None, path: str, rows: Rows
) -> None:
    body = json.dumps({"type": "threads.create", "params": {"input": user_input("add milk")}}).encode()
    response = await chat.http.post(path, content=body, headers={"Content-Type": kind} if kind else {})
    assert response.status_code == 415
    assert "Content-Type: application/json" in response.json()["error"]
    assert rows("SELECT 1 FROM conversations") == []


@pytest.mark.parametrize("kind", ["application/json", "Application/JSON; charset=utf-8"])
async def test_json_is_served_however_it_is_spelled(chat: ChatKit, kind: str) -> None:
    body = b'{"type": "threads.list", "params": {}}'
    assert (await chat.http.post("/chatkit", content=body, headers={"Content-Type": kind})).status_code == 200


async def test_by_https_browsers_are_told_to_stay_there(chat: ChatKit) -> None:
    for path in ("/", "/health", "/nothing"):
        secure = await chat.http.get(path, headers={"X-Forwarded-Proto": "https"})
        assert secure.headers["strict-transport-security"] == "max-age=31536000"
        assert "strict-transport-security" not in (await chat.http.get(path)).headers


async def test_who_leaves_before_the_body_is_sent_is_no_error(chat: ChatKit, caplog: pytest.LogCaptureFixture) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", chat.http.base_url.port)
    writer.write(
        b"POST /chatkit HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        b"Content-Length: 1000\r\nExpect: 100-continue\r\n\r\n"
    )
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
                "Access-Control-Request-Headers": "authorization,if-match",
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
        await chat.http.post("/chatkit", content=b"{}", headers=JSON),
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


async def test_turns_of_a_day_are_limited(backend: Backend, rows: Rows) -> None:
    async with backend(limit_turns_per_day=2) as chat:
        thread = (await chat.say("hello")).thread_id
        await chat.say("hello", thread)
        before = rows("SELECT count(*) FROM messages")
        refused = await chat.say("hello", thread)
        assert refused.error is not None
        assert refused.error["message"] == "You have asked 2 times in a day, which is the most: go on later."
        assert rows("SELECT count(*) FROM messages") == before
        rows("UPDATE runs SET started_at = started_at - interval '25 hours'")
        assert (await chat.say("hello", thread)).error is None


async def test_conversations_are_limited_and_go_on_when_no_new_one_fits(backend: Backend, rows: Rows) -> None:
    async with backend(limit_conversations=1) as chat:
        thread = (await chat.say("hello")).thread_id
        refused = await chat.say("hello")
        assert refused.error is not None
        assert refused.error["message"] == (
            "You have 1 conversations, which is the most: go on in one of them, or delete some."
        )
        assert len(rows("SELECT 1 FROM conversations")) == 1
        assert (await chat.say("hello", thread)).error is None
        await chat.ask("threads.delete", thread_id=thread)
        assert (await chat.say("hello")).error is None


async def test_requests_that_come_too_fast_are_refused(backend: Backend, rows: Rows) -> None:
    async with backend(limit_requests_per_minute=3) as chat:
        thread = (await chat.say("hello")).thread_id
        for _ in range(2):
            await chat.ask("threads.update", thread_id=thread, title="again")
        response = await chat.post("threads.update", thread_id=thread, title="too much")
        assert response.status_code == 429
        assert response.json()["error"].startswith("Requests come too fast: go on in ")
        refused = await chat.say("hello", thread)
        assert refused.error is not None
        assert refused.error["message"].startswith("Requests come too fast: go on in ")
        assert rows("SELECT title FROM conversations") == [{"title": "again"}]
