"""Users whom a reverse proxy names (AUTH_MODE=proxy): what counts only from it, and in which form."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any
from urllib.parse import urlsplit

import httpx2
import psycopg
import pytest

from tests.logins import as_admin
from tests.scripted_model import ScriptedModel
from tests.serving import http_client
from tests.support.backends import LocalBackend, local_backend
from tests.support.script import add_task, pausing_answer, says
from tests.support.stack import Services, Stack
from tests.support.stored import Stored
from tests.waiting import until
from todo_client.chatkit import request, user_input

SETTINGS = {
    "AUTH_MODE": "proxy",
    "TRUSTED_PROXIES": "127.0.0.1",
    "PROXY_SIGN_OUT_URL": "https://auth.example/logout",
    "AUTH_JWT_SECRET": "",
    "AUTH_ISSUER": "",
    "AUTH_AUDIENCE": "",
}
USER, NAME = "Remote-User", "Remote-Name"
SAID = pausing_answer("Hello ", "there.")


@pytest.fixture
async def backend(stack: Stack) -> AsyncIterator[LocalBackend]:
    async with local_backend(stack.services, 0.05, **SETTINGS) as backend:
        yield backend


@pytest.fixture
async def http(backend: LocalBackend) -> AsyncIterator[httpx2.AsyncClient]:
    async with http_client(backend.url) as http:
        yield http


@pytest.fixture
def database(services: Services) -> Any:
    with psycopg.connect(as_admin(services.database_url), autocommit=True) as connection:
        connection.execute("TRUNCATE accounts, sessions CASCADE")
        yield connection


async def test_user_of_the_proxy(
    http: httpx2.AsyncClient, database: psycopg.Connection[Any], model: ScriptedModel, stored: Stored
) -> None:
    own = {"Origin": str(http.base_url).rstrip("/")}
    named = [(USER.encode(), b"ann-p"), (NAME.encode(), "Ann Ünder".encode())]
    session = (await http.get("/session", headers=named)).json()
    assert session == {"user_id": "ann-p", "name": "Ann Ünder", "expires": None, "session_id": None}
    await model.script(add_task("milk"), says("Fine."))
    body = request("threads.create", input=user_input("add milk"))
    assert (await http.post("/chatkit", json=body, headers={USER: "ann-p", **own})).status_code == 200
    assert stored.titles("ann-p") == ["milk"]
    assert (await http.get("/tasks?view=all", headers={USER: "bob-p"})).json()["tasks"] == []
    row = database.execute("SELECT name, password_hash, issuer FROM accounts WHERE user_id = 'ann-p'").fetchone()
    assert row == ("ann-p", None, None), "the newest name counts"
    assert (await http.delete("/session", headers={USER: "ann-p", **own})).json() == {
        "url": "https://auth.example/logout"
    }


INVALID: dict[str, list[tuple[str, str]]] = {
    "two": [(USER, "ann-p"), (USER, "bob-p")],
    "two that are equal": [(USER, "ann-p"), (USER, "ann-p")],
    "two, one in capitals": [(USER, "ann-p"), (USER.upper(), "bob-p")],
    "underscore": [("Remote_User", "ann-p")],
    "underscore beside it": [(USER, "ann-p"), ("Remote_User", "bob-p")],
    "underscore in the name": [(USER, "ann-p"), ("remote_name", "Bob")],
    "two names": [(USER, "ann-p"), (NAME, "Ann"), (NAME, "Bob")],
    "300 characters": [(USER, "a" * 300)],
    "no UTF-8": [(USER, "\udcff")],
    "invisible": [(USER, "\u200b")],
    "direction": [(USER, "ann\u202e")],
    "the local user": [(USER, "local")],
}


async def test_invalid_headers(http: httpx2.AsyncClient, database: psycopg.Connection[Any]) -> None:
    for name, headers in INVALID.items():
        sent = [(key.encode(), value.encode(errors="surrogateescape")) for key, value in headers]
        response = await http.get("/session", headers=sent)
        assert (response.status_code, "proxy" in response.json()["error"]) == (400, True), (name, response.text)
    for headers in ({}, {USER: ""}, {NAME: "Ann"}):
        assert (await http.get("/session", headers=headers)).status_code == 401, headers
    assert database.execute("SELECT count(*) FROM accounts").fetchone() == (0,)


async def test_control_characters(backend: LocalBackend) -> None:
    address = urlsplit(backend.url)
    for value in (b"ann\0", b"ann\x01", b"ann\r\nRemote-User: bob", b"ann\x7f"):
        reader, writer = await asyncio.open_connection(address.hostname, address.port)
        writer.write(b"GET /session HTTP/1.1\r\nHost: localhost\r\nRemote-User: " + value + b"\r\n\r\n")
        assert b" 400 " in await reader.readline(), value
        writer.close()


async def test_long_and_foreign_names(http: httpx2.AsyncClient) -> None:
    for user_id in ("a" * 200, "zoë@example.com", "Ann Example", "张三"):
        session = await http.get("/session", headers=[(USER.encode(), user_id.encode())])
        assert session.json()["user_id"] == user_id


async def test_stranger(services: Services, database: psycopg.Connection[Any]) -> None:
    """Who connects decides, whatever is said of where a request comes from."""
    elsewhere = SETTINGS | {"TRUSTED_PROXIES": "10.0.0.7"}
    async with local_backend(services, **elsewhere) as backend, http_client(backend.url) as http:
        for headers in (
            {USER: "ann-p"},
            {USER: "ann-p", "X-Forwarded-For": "10.0.0.7"},
            {USER: "ann-p", "Forwarded": "for=10.0.0.7"},
            {USER: "ann-p", "X-Real-IP": "10.0.0.7"},
            {"Remote_User": "ann-p"},
            {USER: "local"},
        ):
            assert (await http.get("/session", headers=headers)).status_code == 401, headers
    assert database.execute("SELECT count(*) FROM accounts").fetchone() == (0,)


async def test_client_of_the_proxy(http: httpx2.AsyncClient) -> None:
    response = await http.get("/session", headers={USER: "ann-p", "X-Forwarded-For": "198.51.100.7"})
    assert response.status_code == 200


async def test_header_of_another_name(services: Services) -> None:
    other = SETTINGS | {"PROXY_USER_HEADER": "X-authentik-username"}
    async with local_backend(services, **other) as backend, http_client(backend.url) as http:
        assert (await http.get("/session", headers={USER: "ann-p"})).status_code == 401
        session = await http.get("/session", headers={"X-Authentik-Username": "ann-p"})
        assert session.json()["user_id"] == "ann-p"


async def test_other_websites(http: httpx2.AsyncClient) -> None:
    """The browser sends what the proxy knows the user by with their requests, too."""
    origin = str(http.base_url).rstrip("/")
    for method, headers, status in (
        ("GET", {}, 200),
        ("GET", {"Sec-Fetch-Site": "none"}, 200),
        ("GET", {"Sec-Fetch-Site": "same-origin"}, 200),
        ("GET", {"Sec-Fetch-Site": "cross-site"}, 403),
        ("GET", {"Sec-Fetch-Site": "same-site"}, 403),
        ("DELETE", {}, 403),
        ("DELETE", {"Sec-Fetch-Site": "none"}, 403),
        ("DELETE", {"Sec-Fetch-Site": "cross-site"}, 403),
        ("DELETE", {"Origin": "https://evil.example"}, 403),
        ("DELETE", {"Origin": origin, "Sec-Fetch-Site": "cross-site"}, 403),
        ("DELETE", {"Origin": origin}, 204),
        ("DELETE", {"Sec-Fetch-Site": "same-origin"}, 204),
    ):
        response = await http.request(method, "/sessions", headers={USER: "ann-p", **headers})
        assert response.status_code == status, (method, headers)


async def test_disabled_account(
    http: httpx2.AsyncClient, database: psycopg.Connection[Any], model: ScriptedModel
) -> None:
    """Its open stream ends as well."""
    await model.script(SAID)
    headers = {USER: "ann-p", "Origin": str(http.base_url).rstrip("/")}
    body, received = request("threads.create", input=user_input("hello")), ""
    async with http.stream("POST", "/chatkit", json=body, headers=headers) as response:
        async for piece in response.aiter_text():
            if "Hello " in piece and "Hello " not in received:
                database.execute("UPDATE accounts SET disabled_at = now() WHERE user_id = 'ann-p'")
                database.execute("UPDATE sessions SET ended_at = clock_timestamp() WHERE user_id = 'ann-p'")
            received += piece
    await model.release()
    assert "Hello " in received
    assert "there." not in received
    for _ in range(2):
        response = await http.get("/session", headers=headers)
        assert response.status_code == 401
        assert "disabled" in response.json()["error"]
    assert (await http.get("/session", headers={USER: "bob-p"})).status_code == 200
    database.execute("UPDATE accounts SET disabled_at = NULL")

    async def is_enabled() -> bool:
        return (await http.get("/session", headers=headers)).status_code == 200

    await until(is_enabled, seconds=30)


async def test_one_session_for_many_requests(http: httpx2.AsyncClient, database: psycopg.Connection[Any]) -> None:
    """The database is not asked for each request who the user is."""
    await asyncio.gather(*(http.get("/session", headers={USER: "ann-p"}) for _ in range(20)))
    assert database.execute("SELECT count(*) FROM sessions WHERE user_id = 'ann-p'").fetchone() == (1,)
