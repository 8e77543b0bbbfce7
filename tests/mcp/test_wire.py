"""What a client may rely on beneath the tools: ids, batches, what is announced, and how a call is cancelled."""

import asyncio
import json
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import httpx2
import pytest

from tests.mcp.calls import Tools
from tests.mcp.conftest import NewTools
from tests.mcp.servers import own
from tests.mcp.wire import LEGACY, MODERN, call, cancelled, request, result, send
from tests.support.stored import Stored
from tests.waiting import until

both = pytest.mark.parametrize("version", [MODERN, LEGACY])


async def send_changed(
    http: httpx2.AsyncClient, made: httpx2.Request, change: Callable[[dict[str, Any]], Any]
) -> httpx2.Response:
    """Send the request with another body than a client library would make."""
    return await send_bytes(http, made, json.dumps(change(json.loads(made.content))).encode())


async def send_bytes(http: httpx2.AsyncClient, made: httpx2.Request, body: bytes) -> httpx2.Response:
    headers = [(name, value) for name, value in made.headers.raw if name.lower() not in (b"host", b"content-length")]
    return await http.post("/mcp", content=body, headers=headers)


def adding(tools: Tools, version: str) -> httpx2.Request:
    return call("add_task", {"title": "milk"}, version=version, token=tools.token)


def assert_invalid(response: httpx2.Response) -> None:
    assert response.status_code == 400
    answer = response.json()
    assert (answer["id"], answer["error"]["code"]) == (None, -32600)
    assert answer["error"]["message"]


@both
@pytest.mark.parametrize("wrong", [None, 1.5, True, [], {}])
async def test_an_id_that_is_none(tools: Tools, version: str, wrong: object) -> None:
    assert_invalid(await send_changed(tools.http, adding(tools, version), lambda message: message | {"id": wrong}))
    assert await tools.tasks() == []


@both
@pytest.mark.parametrize("right", ["", "a", 0, -1, 2**60])
async def test_an_id_comes_back(http: httpx2.AsyncClient, version: str, right: object) -> None:
    made = request("tools/list", version=version)
    response = await send_changed(http, made, lambda message: message | {"id": right})
    assert (response.status_code, response.json()["id"]) == (200, right)


@pytest.mark.parametrize("version", [MODERN, LEGACY, "2025-03-26"])
async def test_a_batch_is_rejected(tools: Tools, version: str) -> None:
    assert_invalid(await send_changed(tools.http, adding(tools, version), lambda message: [message, message]))
    assert await tools.tasks() == []


@both
@pytest.mark.parametrize(("value", "rejected"), [([[]] * 1_000, True), ("[" * 10_000, False), (10**100, True)])
async def test_a_body_that_takes_long_to_read_is_rejected_unread(
    tools: Tools, version: str, value: object, rejected: bool
) -> None:
    def with_more(message: dict[str, Any]) -> dict[str, Any]:
        message["params"]["_meta"] = message["params"].get("_meta", {}) | {"more": value}
        return message

    response = await send_changed(tools.http, adding(tools, version), with_more)
    if rejected:
        assert_invalid(response)
    assert len(await tools.tasks()) == (not rejected)


@both
async def test_a_body_in_another_encoding(tools: Tools, version: str) -> None:
    made = adding(tools, version)
    response = await send_bytes(tools.http, made, made.content.decode().encode("utf-16"))
    assert response.status_code == 400
    assert "UTF-8" in response.json()["error"]["message"]
    assert await tools.tasks() == []


async def test_only_tools_are_announced(http: httpx2.AsyncClient) -> None:
    me = {"protocolVersion": LEGACY, "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
    for made in (request("initialize", me, version=LEGACY), request("server/discover")):
        assert (await send(http, made)).json()["result"]["capabilities"] == {"tools": {}}


@both
async def test_a_client_that_disconnects_changes_nothing(tools: Tools, stored: Stored, version: str) -> None:
    with stored.lock_table("tasks"):
        left = asyncio.create_task(send(tools.http, adding(tools, version)))
        await until(stored.has_waiting_statements)
        left.cancel()
        with suppress(asyncio.CancelledError):
            await left
        await until(lambda: not stored.has_waiting_statements())  # although the table is locked still
    assert (await tools.add("bread"))["id"] == 1
    assert await tools.titles() == ["bread"]


async def test_a_cancelled_call_changes_nothing(tools: Tools, stored: Stored) -> None:
    with stored.lock_table("tasks"):
        waiting = asyncio.create_task(send(tools.http, adding(tools, LEGACY)))
        await until(stored.has_waiting_statements)
        for other in (7, 1):
            assert not waiting.done()
            assert (await send(tools.http, cancelled(other, token=tools.token))).status_code == 202
        answer = (await asyncio.wait_for(waiting, 60)).json()
    assert answer["result"]["isError"]
    assert await tools.tasks() == []


async def test_two_calls_with_the_cancelled_id_go_on(tools: Tools, stored: Stored) -> None:
    with stored.lock_table("tasks"):
        calls = [asyncio.create_task(send(tools.http, adding(tools, LEGACY))) for _ in range(2)]
        await until(lambda: stored.has_waiting_statements(count=2))
        assert (await send(tools.http, cancelled(1, token=tools.token))).status_code == 202
    for answer in await asyncio.gather(*calls):
        result(answer)
    assert len(await tools.tasks()) == 2


async def test_nobody_cancels_the_call_of_another(
    guarded_http: httpx2.AsyncClient, new_tools: NewTools, stored: Stored
) -> None:
    tools, other = new_tools(), new_tools()
    user = f"{tools.user} b"
    with stored.lock_table("tasks"):
        made = call("add_task", {"title": "milk"}, version=LEGACY, token=own(sub=user))
        hers = asyncio.create_task(send(guarded_http, made))
        await until(stored.has_waiting_statements)
        assert (await send(guarded_http, cancelled(1, token=other.token))).status_code == 202
        # Her name and the id, divided otherwise.
        assert (await send(guarded_http, cancelled("b 1", token=tools.token))).status_code == 202
        assert (await send(guarded_http, cancelled(1))).status_code == 401
        assert not hers.done()
    result(await hers)
    assert stored.titles(user) == ["milk"]


async def test_letters_are_sent_as_they_are(tools: Tools) -> None:
    """Not as JSON's escapes of them, which would double a list of tasks in Chinese."""
    response = await send(tools.http, call("add_task", {"title": "\u725b\u5976"}, token=tools.token))
    assert "\u725b\u5976".encode() in response.content
    assert rb"\u" not in response.content
