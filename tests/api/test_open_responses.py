"""How many responses of a user may be open at the same time, and what those that nobody reads cost."""

import asyncio
import socket
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import AsyncExitStack, ExitStack
from types import SimpleNamespace
from typing import cast

import httpx2
import psycopg
import pytest

from bench.seed import add_tasks
from tests.api.test_routes import BODIES, ROUTES, with_unknown_ids
from tests.logins import as_admin
from tests.processes import ServiceProcess, run_service
from tests.scripted_model import ScriptedModel
from tests.support.answers import HANGS, start_run
from tests.support.backends import local_backend
from tests.support.fixtures import NewUser
from tests.support.port_attacks import memory_mb
from tests.support.script import says
from tests.support.stack import Services, Stack
from tests.support.users import HasBackends, User
from tests.waiting import until

CHAT = "groceries"
CODE = "You have too many responses open."


def check_rejected(response: httpx2.Response) -> None:
    assert response.status_code == 429, response.text
    assert response.json()["error"].startswith(CODE)
    assert response.headers["retry-after"] == "5"


async def test_every_route_with_a_user(stack: Stack, model: ScriptedModel) -> None:
    await model.script(HANGS)
    async with (
        local_backend(stack.services, LIMIT_OPEN_RESPONSES="2") as backend,
        User(backend) as user,
        User(backend) as other,
        User(backend) as nobody,
    ):
        feed = (await user.runs.http.post("/calendar")).json()["url"].partition(backend.url)[2]
        run = await start_run(user, CHAT, "hello")
        del nobody.runs.http.headers["Authorization"]
        async with AsyncExitStack() as open_streams:
            for _ in range(2):
                events = user.runs.http.stream("GET", f"/chats/{CHAT}/interactions/{run}/events")
                await open_streams.enter_async_context(events)
            limited = 0
            for method, route in ROUTES:
                path, body = with_unknown_ids(route), BODIES.get((method, route), {"text": "hello", "title": "hello"})
                is_for_users = (await nobody.runs.http.request(method, path, json=body)).status_code == 401
                if is_for_users and route not in ("/session", "/links/take"):  # which sign in
                    check_rejected(await user.runs.http.request(method, path, json=body))
                    limited += 1
            assert limited > 30
            check_rejected(await nobody.runs.http.get(feed))
            assert (await other.runs.http.get("/chats")).status_code == 200

        async def is_served() -> bool:
            return (await user.runs.http.get("/chats")).status_code == 200

        await until(is_served)
        assert (await nobody.runs.http.get(feed)).status_code == 200
        await user.runs.cancel(CHAT, run)


MESSAGES, CLIENTS = 24, 505
MESSAGE = "漢字<" * 2_600
LONG_DESCRIPTIONS = "UPDATE tasks SET description = repeat('漢', 4000) WHERE user_id = ANY(%s)"
LONG_ANSWERS = "UPDATE entries SET text = repeat('Fine. ', 20000) WHERE user_id = %s AND kind = 'assistant_message'"
GROWTH_MB = 200
REQUEST_SECONDS = 10.0  # on a busy machine; the attacker asks for all at once


@pytest.fixture
def backend(services: Services, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServiceProcess]:
    log = tmp_path_factory.mktemp("open_responses") / "backend.log"
    yield from run_service(ServiceProcess("backend", "BACKEND_PORT", log, **services.backend_environment()))


def open_response(token: str, port: int, path: str) -> socket.socket:
    """Requests a response that nobody reads; what has been sent of it is in the kernel's buffer."""
    client = socket.socket()
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2_048)
    client.connect(("127.0.0.1", port))
    client.sendall(f"GET {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\n\r\n".encode())
    client.setblocking(False)
    return client


async def read_status(client: socket.socket) -> str:
    try:
        return (await asyncio.get_running_loop().sock_recv(client, 32))[9:12].decode() or "closed"
    except ConnectionResetError:
        return "closed"


@pytest.mark.long
async def test_responses_of_the_task_server(stack: Stack, user: User, new_user: NewUser) -> None:
    port, path = stack.services.mcp.port, f"/tasks?ids={','.join(map(str, range(1, 201)))}"
    other = new_user()
    for each in (user, other):
        add_tasks(as_admin(stack.database_url), each.name, 200)
    with psycopg.connect(as_admin(stack.database_url)) as connection:
        connection.execute(LONG_DESCRIPTIONS, [[user.name, other.name]])
    with ExitStack() as clients:
        opened = [clients.enter_context(open_response(user.mcp_token, port, path)) for _ in range(40)]
        assert Counter(await asyncio.gather(*map(read_status, opened))) == {"200": 32, "429": 8}
        with open_response(other.mcp_token, port, path) as of_other:
            assert await read_status(of_other) == "200"


@pytest.mark.long
@pytest.mark.parametrize("path", [f"/chats/{CHAT}/log", f"/chats/{CHAT}?limit=100&brief=true"])
async def test_responses_that_nobody_reads(
    backend: ServiceProcess, services: Services, model: ScriptedModel, path: str
) -> None:
    """They cost little memory, which is free again later, and others are served."""
    await model.script(*[says("Fine.")] * MESSAGES)
    at_backend = cast(HasBackends, SimpleNamespace(services=services, backends=[backend]))
    async with User(at_backend) as user, User(at_backend) as other:
        for _ in range(MESSAGES):
            await user.runs.say(CHAT, MESSAGE)
        with psycopg.connect(as_admin(services.database_url)) as connection:
            connection.execute(LONG_ANSWERS, [user.name])
        before, seconds = memory_mb(backend), list[float]()
        with ExitStack() as clients:
            opened = [clients.enter_context(open_response(user.token, backend.port, path)) for _ in range(CLIENTS)]
            reading = asyncio.gather(*map(read_status, opened))
            for _ in range(20):
                start = time.monotonic()
                (await other.runs.http.get("/chats")).raise_for_status()
                seconds.append(time.monotonic() - start)
                await asyncio.sleep(0.05)
            statuses = Counter(await reading)
            during = memory_mb(backend)
        figures = f"{path}: {before} -> {during} MB, {max(seconds):.2f} s, {statuses}"
        print(figures)  # noqa: T201
        assert during - before < GROWTH_MB, figures
        assert max(seconds) < REQUEST_SECONDS, figures
        assert statuses["429"] > CLIENTS // 2, figures
        await until(lambda: memory_mb(backend) - before < GROWTH_MB // 2)
