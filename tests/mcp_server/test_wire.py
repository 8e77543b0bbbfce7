"""What a client may rely on beneath the tools: ids, batches, what is announced, and how a call is ended."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import httpx2
import psycopg
import pytest

from tests.logins import as_admin
from tests.mcp_server.conftest import Rows
from tests.mcp_server.guarded import own
from tests.mcp_server.wire import LEGACY, MODERN, call, cancelled, request, result, send
from tests.processes import ServiceProcess
from tests.waiting import until

WAITING = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()"
both = pytest.mark.parametrize("version", [MODERN, LEGACY])


@pytest.fixture
async def http(server_at: str, database_url: str) -> AsyncIterator[httpx2.AsyncClient]:
    async with httpx2.AsyncClient(verify=False, base_url=server_at) as client:
        yield client


async def send_changed(
    http: httpx2.AsyncClient, made: httpx2.Request, change: Callable[[dict[str, Any]], Any]
) -> httpx2.Response:
    """Send the request with another body than a client library would make."""
    headers = [(name, value) for name, value in made.headers.raw if name.lower() not in (b"host", b"content-length")]
    return await http.post("/mcp", content=json.dumps(change(json.loads(made.content))), headers=headers, timeout=5)


@both
@pytest.mark.parametrize("wrong", [None, 1.5, True, [], {}])
async def test_an_id_that_is_none_is_an_error(
    http: httpx2.AsyncClient, rows: Rows, version: str, wrong: object
) -> None:
    made = call("add_task", {"title": "milk"}, version=version)
    response = await send_changed(http, made, lambda message: message | {"id": wrong})
    assert response.status_code == 400
    assert response.json()["id"] is None
    assert response.json()["error"] == {
        "code": -32600,
        "message": "The id of a request must be text or a whole number: send it again with such an id.",
    }
    assert rows.tasks() == []


@both
@pytest.mark.parametrize("right", ["", "a", 0, -1, 2**60])
async def test_ids_that_are_allowed_come_back(http: httpx2.AsyncClient, version: str, right: object) -> None:
    made = request("tools/list", version=version)
    response = await send_changed(http, made, lambda message: message | {"id": right})
    assert response.status_code == 200
    assert response.json()["id"] == right


@pytest.mark.parametrize("version", [MODERN, LEGACY, "2025-03-26"])
async def test_a_batch_is_refused_with_a_sentence(http: httpx2.AsyncClient, rows: Rows, version: str) -> None:
    made = call("add_task", {"title": "milk"}, version=version)
    response = await send_changed(http, made, lambda message: [message, message])
    assert response.status_code == 400
    assert response.json()["error"] == {
        "code": -32600,
        "message": "A body holds one JSON-RPC message: send the messages of a batch one by one.",
    }
    assert rows.tasks() == []


MANY = "The body has more than 1,000 values: send less at once."
LONG = "The body has a number of more than 100 digits: send a shorter one."


@both
@pytest.mark.parametrize(
    ("value", "sentence"), [([[]] * 1_000, MANY), ("[" * 10_000, None), (10**100, LONG), ("1" * 200, None)]
)
async def test_what_would_take_long_to_read_is_refused_unread(
    http: httpx2.AsyncClient, rows: Rows, version: str, value: object, sentence: str | None
) -> None:
    def with_more(message: dict[str, Any]) -> dict[str, Any]:
        message["params"]["_meta"] = message["params"].get("_meta", {}) | {"more": value}
        return message

    response = await send_changed(http, call("add_task", {"title": "milk"}, version=version), with_more)
    if sentence:
        assert response.status_code == 400
        assert response.json() == {"jsonrpc": "2.0", "id": None, "error": {"code": -32600, "message": sentence}}
    else:
        assert response.status_code == 200
    assert len(rows.tasks()) == (0 if sentence else 1)


@both
async def test_a_body_in_another_encoding_is_refused(http: httpx2.AsyncClient, rows: Rows, version: str) -> None:
    made = call("add_task", {"title": "milk"}, version=version)
    headers = [(name, value) for name, value in made.headers.raw if name.lower() not in (b"host", b"content-length")]
    response = await http.post("/mcp", content=made.content.decode().encode("utf-16"), headers=headers)
    assert response.status_code == 400
    assert response.json()["error"]["message"] == "The body is not JSON in UTF-8: it has a NUL byte."
    assert rows.tasks() == []


async def test_only_the_tools_are_announced(http: httpx2.AsyncClient) -> None:
    me = {"protocolVersion": LEGACY, "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
    legacy = await send(http, request("initialize", me, version=LEGACY))
    modern = await send(http, request("server/discover"))
    for answer in (legacy, modern):
        assert answer.json()["result"]["capabilities"] == {"tools": {}}


@contextmanager
def locked(database_url: str) -> Iterator[psycopg.Connection]:
    """Nobody can write a task until the block ends."""
    with psycopg.connect(as_admin(database_url)) as connection:
        connection.execute("LOCK TABLE tasks IN ACCESS EXCLUSIVE MODE")
        yield connection


def waits(rows: Rows) -> bool:
    return rows(WAITING)[0]["count"] > 0


@both
async def test_who_leaves_changes_nothing(
    http: httpx2.AsyncClient, database_url: str, rows: Rows, version: str
) -> None:
    with locked(database_url):
        left = asyncio.create_task(send(http, call("add_task", {"title": "milk"}, version=version)))
        await until(lambda: waits(rows))
        left.cancel()
        with suppress(asyncio.CancelledError):
            await left
        await until(lambda: not waits(rows))  # although the table is locked still
    assert result(await send(http, call("add_task", {"title": "bread"}, version=version)))["title"] == "bread"
    assert [task["title"] for task in rows.tasks()] == ["bread"]
    assert len(rows.changes()) == 1


async def test_a_cancelled_call_changes_nothing(http: httpx2.AsyncClient, database_url: str, rows: Rows) -> None:
    with locked(database_url):
        waiting = asyncio.create_task(send(http, call("add_task", {"title": "milk"}, version=LEGACY)))
        await until(lambda: waits(rows))
        assert (await send(http, cancelled(7))).status_code == 202
        await asyncio.sleep(0.1)
        assert not waiting.done()
        assert (await send(http, cancelled(1))).status_code == 202
        answer = (await asyncio.wait_for(waiting, 5)).json()
    assert answer["result"]["content"][0]["text"] == (
        "The call was cancelled before it changed anything: send it again if it is still wanted."
    )
    assert rows.tasks() == []


async def test_which_of_two_calls_is_meant_must_be_certain(
    http: httpx2.AsyncClient, database_url: str, rows: Rows
) -> None:
    with locked(database_url):
        both_calls = [
            asyncio.create_task(send(http, call("add_task", {"title": title}, version=LEGACY)))
            for title in ("milk", "bread")
        ]
        await until(lambda: rows(WAITING)[0]["count"] == 2)
        assert (await send(http, cancelled(1))).status_code == 202
    for answer in await asyncio.gather(*both_calls):
        result(answer)
    assert len(rows.tasks()) == 2


async def test_nobody_cancels_the_call_of_another(
    guarded: ServiceProcess, guarded_http: httpx2.AsyncClient, database_url: str, rows: Rows
) -> None:
    with locked(database_url):
        hers = asyncio.create_task(
            send(guarded_http, call("add_task", {"title": "milk"}, version=LEGACY, token=own(sub="alice b")))
        )
        await until(lambda: waits(rows))
        assert (await send(guarded_http, cancelled(1, token=own(sub="bob")))).status_code == 202
        # Her name and the id, divided otherwise.
        assert (await send(guarded_http, cancelled("b 1", token=own(sub="alice")))).status_code == 202
        assert (await send(guarded_http, cancelled(1))).status_code == 401
        await asyncio.sleep(0.2)
        assert not hers.done()
    result(await hers)
    assert [task["title"] for task in rows.tasks()] == ["milk"]


@pytest.mark.long
async def test_a_cancellation_reaches_the_process_that_has_the_call(
    database_url: str, rows: Rows, tmp_path: Path
) -> None:
    service = ServiceProcess("mcp_server", "MCP_PORT", tmp_path / "log", DATABASE_URL=database_url, MCP_WORKERS="2")
    service.start()
    try:
        service.wait_until_all_serve(2)
        for _ in range(6):  # which process gets which of the two is for the kernel to say
            with locked(database_url):
                async with (
                    httpx2.AsyncClient(base_url=service.url, verify=False, trust_env=False) as one,
                    httpx2.AsyncClient(base_url=service.url, verify=False, trust_env=False) as other,
                ):
                    waiting = asyncio.create_task(send(one, call("add_task", {"title": "milk"}, version=LEGACY)))
                    await until(lambda: waits(rows))
                    await send(other, cancelled(1))
                    answer = (await asyncio.wait_for(waiting, 3)).json()
            assert answer["result"]["isError"]
    finally:
        assert service.end() == 0
    assert rows.tasks() == []
