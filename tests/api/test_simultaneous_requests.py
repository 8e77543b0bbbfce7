"""How many requests of one user a backend works on at the same time."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack

import httpx2
import pytest

from tests.api.test_routes import BODIES, ROUTES, with_unknown_ids
from tests.scripted_model import ScriptedModel
from tests.support.answers import HANGS
from tests.support.backends import LocalBackend, local_backend
from tests.support.stack import Services
from tests.support.stored import Stored
from tests.support.users import User
from tests.waiting import WAIT_SECONDS, until

SENTENCE = "Too many of your requests are being worked on at the same time."
SESSION = {("POST", "/session"), ("DELETE", "/session")}
"""A user can sign in and out at any time."""


def create_client(user: User) -> httpx2.AsyncClient:
    headers = {"Authorization": f"Bearer {user.token}"}
    limits = httpx2.Limits(max_connections=200)
    return httpx2.AsyncClient(
        base_url=user.url, headers=headers, verify=False, trust_env=False, timeout=WAIT_SECONDS, limits=limits
    )


class SlowRequests:
    """Requests whose bodies are sent until `end` is called: they are worked on for long."""

    def __init__(self, user: User) -> None:
        self._user = user
        self._pieces = 0
        self._end = asyncio.Event()
        self._tasks = list[asyncio.Task[httpx2.Response]]()

    async def start(self, count: int) -> None:
        headers = {"Content-Type": "application/json"}
        for _ in range(count):
            request = self._user.runs.http.post("/chatkit", content=self._send(), headers=headers)
            self._tasks.append(asyncio.create_task(request))
        await until(lambda: self._pieces >= 3 * count)

    async def _send(self) -> AsyncIterator[bytes]:
        while not self._end.is_set():
            yield b" "
            self._pieces += 1
            await asyncio.sleep(0.3)
        yield b"{}"

    async def end(self) -> None:
        self._end.set()
        assert {response.status_code for response in await asyncio.gather(*self._tasks)} == {400}


@pytest.fixture
async def backend(services: Services) -> AsyncIterator[LocalBackend]:
    async with local_backend(services, LIMIT_REQUESTS_AT_ONCE="2") as backend:
        yield backend


async def test_many_requests_at_once_wait_for_their_turn(backend: LocalBackend) -> None:
    async with User(backend) as user, create_client(user) as http:
        responses = await asyncio.gather(*(http.get("/chats") for _ in range(40)))
        assert {response.status_code for response in responses} == {200}


@pytest.mark.long(seconds=15)
async def test_every_route_with_a_user_waits_for_a_turn(backend: LocalBackend) -> None:
    """A route has a user if it answers 401 without a token."""
    async with User(backend) as eve, User(backend) as ada, create_client(eve) as http, AsyncExitStack() as stack:
        nobody = await stack.enter_async_context(httpx2.AsyncClient(base_url=backend.url, timeout=WAIT_SECONDS))
        slow = SlowRequests(eve)
        await slow.start(2)

        async def send(client: httpx2.AsyncClient, route: tuple[str, str]) -> httpx2.Response:
            method, path = route
            return await client.request(method, with_unknown_ids(path), json=BODIES.get(route))

        with_user = [
            route for route in ROUTES if route not in SESSION and (await send(nobody, route)).status_code == 401
        ]
        assert len(with_user) > 30
        responses = await asyncio.gather(*(send(http, route) for route in with_user))
        for route, response in zip(with_user, responses, strict=True):
            assert response.status_code == 429, (route, response.text)
            assert response.json()["error"].startswith(SENTENCE)
            assert response.headers["retry-after"] == "1"
        assert (await ada.runs.http.get("/chats")).status_code == 200, "others are served"
        await slow.end()
        assert (await eve.runs.http.get("/chats")).status_code == 200


@pytest.mark.long(seconds=12)
async def test_the_calendar_waits_for_a_turn_of_its_user(backend: LocalBackend) -> None:
    async with User(backend) as user:
        url = (await user.runs.http.post("/calendar")).json()["url"]
        slow = SlowRequests(user)
        await slow.start(2)
        async with httpx2.AsyncClient(timeout=WAIT_SECONDS) as nobody:
            assert (await nobody.get(url)).status_code == 429
            await slow.end()
            assert (await nobody.get(url)).status_code == 200


async def test_open_streams_and_awaited_answers_hold_no_turn(
    backend: LocalBackend, model: ScriptedModel, stored: Stored
) -> None:
    await model.script(HANGS, HANGS, HANGS)
    async with User(backend) as user, create_client(user) as http, AsyncExitStack() as stack:
        for chat in ("one", "two"):
            await stack.enter_async_context(user.runs.interact(chat, "count"))
        body = {"threadId": "three", "messages": [{"role": "user", "content": "count"}]}
        awaited = asyncio.create_task(http.post("/chat", json=body))
        await until(lambda: stored.run_statuses(user.name) == ["running"] * 3)
        responses = await asyncio.gather(*(http.get("/chats") for _ in range(10)))
        assert {response.status_code for response in responses} == {200}
        for chat in (await user.runs.get_chats())["chats"]:
            run = (await http.get(f"/chats/{chat['chat_id']}")).json()["leaf"]
            assert (await http.post(f"/chats/{chat['chat_id']}/interactions/{run}/cancel")).status_code == 200
        await awaited
