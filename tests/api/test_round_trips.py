"""How often a message of each API asks the database, the tool server and the model."""

from collections import Counter
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from statistics import median
from typing import Any
from uuid import uuid4

import httpx2
import pytest

from tests.scripted_model import ScriptedModel
from tests.support.answers import find_thread
from tests.support.backends import user_at
from tests.support.database_proxy import DatabaseProxy, database_proxy
from tests.support.script import add_task, call, calls
from tests.support.stack import Stack
from tests.support.users import User
from todo_client.chatkit import user_input

pytestmark = pytest.mark.long

MESSAGES = 5  # of which the median is taken, as a message that takes long is also stored while it grows
CHAT = "counted"

CreateBody = Callable[[str, dict[str, str]], dict[str, Any]]
"""Creates the body of a message for the conversation with this ChatKit id, with an idempotency key if one is given."""


@dataclass(frozen=True)
class Api:
    """How a message is sent; `look_ups` are the round trips that find the conversation by its id or name."""

    path: str
    create_body: CreateBody
    look_ups: int = 1


def say_in_chatkit(thread: str, metadata: dict[str, str]) -> dict[str, Any]:
    params = {"thread_id": thread, "input": user_input("hello")}
    return {"type": "threads.add_user_message", "params": params, "metadata": metadata}


SAID = [{"role": "user", "content": "hello"}]
APIS: dict[str, Api] = {
    "ChatKit": Api("/chatkit", say_in_chatkit, look_ups=0),
    "plain messages": Api("/chatkit", lambda thread, _: {"message": "hello", "conversation_id": thread}),
    "run API": Api(f"/chats/{CHAT}/interactions", lambda *_: {"user_message": "hello"}),
    "one JSON answer": Api("/chat", lambda *_: {"messages": SAID, "threadId": CHAT}),
    "AI SDK": Api("/chat/stream", lambda *_: {"messages": SAID, "id": CHAT}),
}
KEYED = [name for name in APIS if name != "plain messages"]


@dataclass
class Counted:
    user: User
    model: ScriptedModel
    proxy: DatabaseProxy
    requests: Counter[str]
    """To the tool server: calls, and what is read of their changes."""

    async def measure(self, api: Api, *script: dict[str, Any], keyed: bool = False) -> list[float]:
        """Returns the median round trips and requests to the tool server and the model of a message."""
        await self.model.script(*script)
        await self.user.runs.say(CHAT, "hello")
        thread = await find_thread(self.user, CHAT)
        counted: list[tuple[int, int, int]] = []
        for _ in range(MESSAGES):
            await self.model.reset()
            await self.model.script(*script)
            key = uuid4().hex
            headers, metadata = ({"Idempotency-Key": key}, {"idempotency_key": key}) if keyed else ({}, {})
            before, tools = self.proxy.round_trips, self.requests.total()
            body = api.create_body(thread, metadata)
            response = await self.user.runs.http.post(api.path, json=body, headers=headers)
            assert response.status_code == 200, response.text
            requests = len(await self.model.finished_requests())
            counted.append((self.proxy.round_trips - before, self.requests.total() - tools, requests))
        return [median(column) for column in zip(*counted, strict=True)]


@pytest.fixture
async def counted(stack: Stack, model: ScriptedModel, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Counted]:
    monkeypatch.setattr("backend.app.SWEEP_SECONDS", 3600)  # a sweep makes round trips, too
    monkeypatch.setattr("common.database.ended_sessions.LOOK_SECONDS", 3600)
    requests, send, tool_server = Counter[str](), httpx2.AsyncClient.send, httpx2.URL(stack.services.mcp.url)

    async def count(client: httpx2.AsyncClient, request: httpx2.Request, **options: Any) -> httpx2.Response:
        if (request.url.host, request.url.port) == (tool_server.host, tool_server.port):
            requests[f"{request.method} {request.url.path}"] += 1
        return await send(client, request, **options)

    monkeypatch.setattr(httpx2.AsyncClient, "send", count)
    async with database_proxy(stack.services.database_url) as proxy:
        settings = {"DATABASE_URL": proxy.url, "LISTEN_DATABASE_URL": stack.services.database_url}
        async with user_at(stack.services, **settings) as user:
            yield Counted(user, model, proxy, requests)


@pytest.mark.parametrize("name", APIS)
async def test_message_with_a_tool_call(name: str, counted: Counted) -> None:
    measured = await counted.measure(APIS[name], add_task("milk"), {"text": "Added."})
    assert measured == [4 + APIS[name].look_ups, 2, 2]


@pytest.mark.parametrize("name", KEYED)
async def test_idempotency_key_takes_one_more(name: str, counted: Counted) -> None:
    measured = await counted.measure(APIS[name], add_task("milk"), {"text": "Added."}, keyed=True)
    assert measured == [5 + APIS[name].look_ups, 2, 2]


@pytest.mark.parametrize("name", APIS)
async def test_message_without_a_tool_call(name: str, counted: Counted) -> None:
    assert await counted.measure(APIS[name], {"text": "Hello."}) == [2 + APIS[name].look_ups, 0, 1]


@pytest.mark.parametrize("step", [calls(call("list_tasks")), calls(call("complete_task", task_id=99))])
async def test_changes_are_read_only_after_a_call_that_changed_something(
    step: dict[str, Any], counted: Counted
) -> None:
    [_, requests, _] = await counted.measure(APIS["run API"], step, {"text": "Hello."})
    assert requests == 1, "the call alone"
