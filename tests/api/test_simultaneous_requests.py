"""How many requests of one user a backend works on at the same time."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

import httpx2
import pytest

from common.server.address_turns import AT_ONCE
from tests.api.test_routes import BODIES, ROUTES, with_unknown_ids
from tests.scripted_model import ScriptedModel
from tests.support.answers import HANGS
from tests.support.backends import LocalBackend, local_backend
from tests.support.stack import Services
from tests.support.stored import Stored
from tests.support.users import User
from tests.waiting import WAIT_SECONDS, until

SENTENCE = "Too many of your requests are being worked on at the same time."
USAGE = "token_usage"  # a table that only /usage reads
SESSION = {("POST", "/session"), ("DELETE", "/session"), ("POST", "/links/take")}
"""A user can sign in and out at any time, and link a device."""


def create_client(user: User) -> httpx2.AsyncClient:
    headers = {"Authorization": f"Bearer {user.token}"}
    limits = httpx2.Limits(max_connections=200)
    return httpx2.AsyncClient(
        base_url=user.url, headers=headers, verify=False, trust_env=False, timeout=WAIT_SECONDS, limits=limits
    )


@asynccontextmanager
async def hold_turns(user: User, stored: Stored, count: int) -> AsyncIterator[None]:
    """Has so many requests of the user worked on until the block ends."""
    with stored.lock_table(USAGE):
        slow = [asyncio.create_task(user.runs.http.get("/usage")) for _ in range(count)]
        await until(lambda: stored.has_waiting_statements(count=count))
        yield
    assert {response.status_code for response in await asyncio.gather(*slow)} == {200}


@pytest.fixture
async def backend(services: Services) -> AsyncIterator[LocalBackend]:
    url = services.backend_environment()["DATABASE_URL"]
    unlimited = f"{url}{'&' if '?' in url else '?'}options=-c%20statement_timeout%3D0"  # for `hold_turns`
    async with local_backend(services, LIMIT_REQUESTS_AT_ONCE="2", DATABASE_URL=unlimited) as backend:
        yield backend


async def test_many_requests_at_once_wait_for_their_turn(backend: LocalBackend) -> None:
    async with User(backend) as user, create_client(user) as http:
        responses = await asyncio.gather(*(http.get("/chats") for _ in range(40)))
        assert {response.status_code for response in responses} == {200}


@pytest.mark.long(seconds=15)
async def test_every_route_with_a_user_waits_for_a_turn(backend: LocalBackend, stored: Stored) -> None:
    """A route has a user if it answers 401 without a token."""
    async with User(backend) as eve, User(backend) as ada, create_client(eve) as http, AsyncExitStack() as stack:
        nobody = await stack.enter_async_context(httpx2.AsyncClient(base_url=backend.url, timeout=WAIT_SECONDS))

        async def send(client: httpx2.AsyncClient, route: tuple[str, str]) -> httpx2.Response:
            method, path = route
            return await client.request(method, with_unknown_ids(path), json=BODIES.get(route))

        with_user = [
            route for route in ROUTES if route not in SESSION and (await send(nobody, route)).status_code == 401
        ]
        assert len(with_user) > 30
        async with hold_turns(eve, stored, 2):
            responses = await asyncio.gather(*(send(http, route) for route in with_user))
            assert (await ada.runs.http.get("/chats")).status_code == 200, "others are served"
        for route, response in zip(with_user, responses, strict=True):
            assert response.status_code == 429, (route, response.text)
            assert response.json()["error"].startswith(SENTENCE)
            assert response.headers["retry-after"] == "1"
        assert (await eve.runs.http.get("/chats")).status_code == 200


@pytest.mark.long(seconds=12)
async def test_the_calendar_waits_for_a_turn_of_its_user(backend: LocalBackend, stored: Stored) -> None:
    async with User(backend) as user:
        url = (await user.runs.http.post("/calendar")).json()["url"]
        async with httpx2.AsyncClient(timeout=WAIT_SECONDS) as nobody:
            async with hold_turns(user, stored, 2):
                assert (await nobody.get(url)).status_code == 429
            assert (await nobody.get(url)).status_code == 200


@pytest.mark.parametrize("path", ["/chatkit", "/tasks", "/chats/x/branch", "/memory"])
async def test_requests_whose_bodies_are_slow_hold_no_turn(path: str, backend: LocalBackend) -> None:
    end = asyncio.Event()
    pieces = list[int]()

    async def send_slowly() -> AsyncIterator[bytes]:
        while not end.is_set():
            yield b" "
            pieces.append(1)
            await asyncio.sleep(0.05)
        yield b"oops"

    headers = {"Content-Type": "application/json", "Idempotency-Key": "key"}
    async with User(backend) as user, create_client(user) as http:
        slow = [asyncio.create_task(http.post(path, content=send_slowly(), headers=headers)) for _ in range(4)]
        await until(lambda: len(pieces) >= 20)
        responses = await asyncio.gather(*(http.get("/chats") for _ in range(4)))
        assert {response.status_code for response in responses} == {200}
        end.set()
        assert {response.status_code for response in await asyncio.gather(*slow)} == {400}


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


@pytest.mark.parametrize("method", ["GET", "DELETE"])
async def test_sessions_that_are_looked_up_hold_no_turn_of_their_address(
    backend: LocalBackend, stored: Stored, method: str
) -> None:
    """Else one user's requests, which wait for each other, hold up all users behind the same router."""
    async with User(backend) as eve, User(backend) as ada, create_client(eve) as http:
        cookie = (await http.post("/session")).headers["set-cookie"].partition(";")[0]
        http.headers = {"Cookie": cookie, "Sec-Fetch-Site": "same-origin"}
        with stored.lock_table("sessions"):
            sent = [asyncio.create_task(http.request(method, "/session")) for _ in range(AT_ONCE)]
            await until(lambda: stored.has_waiting_statements(count=AT_ONCE))
            assert (await ada.runs.http.get("/session")).status_code == 200
        assert {response.status_code for response in await asyncio.gather(*sent)} <= {200, 204}
