"""What ends is known in every process within a second: two backends and two tool servers behind PgBouncer."""

import asyncio
import base64
import re
import socket
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import AsyncExitStack, ExitStack, suppress
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from typing import Any

import httpx2
import psycopg
import pytest

from common.database import advisory_locks
from tests.api.test_oauth import Flow
from tests.logins import as_admin, as_owner
from tests.mcp.wire import call, send
from tests.processes import ServiceProcess
from tests.scale.pooler import run_pgbouncer
from tests.scripted_model import ScriptedModel
from tests.serving import http_client
from tests.support.accounts import PASSWORD, AccountStack, hash_password, new_name
from tests.support.commands import todo
from tests.support.script import PAUSING
from tests.support.stack import CLOCK, Services
from tests.support.stored import Stored
from tests.tokens import MCP_TOKEN_SECRET
from tests.waiting import until

pytestmark = pytest.mark.long(seconds=20)

PAGE = "https://todo.example"
CHAT = "groceries"
FILE, FILE_BYTES = f"/chats/{CHAT}/files/large.bin", 9_500_000
KINDS = ("session", "device", "token", "client")
MOST_SECONDS = 3.0  # a second, on a machine that is not busy
SIGN_IN = {"AUTH_MODE": "password", "MCP_TOKEN_SECRET": MCP_TOKEN_SECRET}


@dataclass(frozen=True)
class Processes:
    services: Services
    backends: list[ServiceProcess]
    tool_servers: list[ServiceProcess]


@pytest.fixture(scope="module")
def processes(services: Services, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Processes]:
    directory = tmp_path_factory.mktemp("ended_sessions")
    others = {name: value for name, value in services.backend_environment().items() if not name.startswith("AUTH_")}
    with run_pgbouncer(services.database_url) as pooled_url, ExitStack() as cleanup:
        shared = {
            **SIGN_IN,
            **CLOCK,
            "DATABASE_URL": pooled_url,
            "LISTEN_DATABASE_URL": services.database_url,
            "DATABASE_PREPARED": "off",
            "BACKEND_URL": PAGE,
        }
        backend = {**others, **shared, "LIMIT_CALENDAR_READS_PER_MINUTE": "100000"}
        tool_servers = [
            ServiceProcess("mcp_server", "MCP_PORT", directory / f"mcp-{n}.log", **shared) for n in range(1, 3)
        ]
        backends = [
            ServiceProcess("backend", "BACKEND_PORT", directory / f"backend-{n}.log", **backend) for n in range(1, 3)
        ]
        for service in (*tool_servers, *backends):
            service.environment["MCP_URL"] = f"{tool_servers[0].url}/mcp"
            service.start()
            cleanup.callback(service.end)
        for service in (*tool_servers, *backends):
            service.wait_until_ready()
        yield Processes(services, backends, tool_servers)


@pytest.fixture
def stored(processes: Processes) -> Iterator[Stored]:
    with Stored(processes.services.database_url) as stored:
        yield stored


@dataclass(frozen=True, eq=False)
class Credential:
    """What is sent to backends in `headers`, if they accept it, and to tool servers as `token`, if they do."""

    kind: str
    id: str
    headers: Mapping[str, str] = field(default_factory=dict)
    token: str | None = None

    def at(self, service: ServiceProcess) -> dict[str, str]:
        return {**self.headers, "Origin": service.url}


class Person:
    """A user with an account, an answer that pauses and a large file, signed in at the first backend."""

    def __init__(self, processes: Processes, stored: Stored) -> None:
        self.processes, self.stored = processes, stored
        self.name = new_name()
        self.run = ""
        self._clients = AsyncExitStack()

    async def __aenter__(self) -> "Person":
        self.stored.add_password(self.name, hash_password(PASSWORD))
        self.http = await self.open_client(self.processes.backends[0])
        self.page = await self.sign_in()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._clients.aclose()

    async def open_client(self, service: ServiceProcess) -> httpx2.AsyncClient:
        return await self._clients.enter_async_context(http_client(service.url))

    async def send(self, method: str, path: str, **options: Any) -> httpx2.Response:
        """Sends a request of the page."""
        response = await self.http.request(method, path, headers=self.page.at(self.processes.backends[0]), **options)
        assert response.is_success, response.text
        self.http.cookies.clear()
        return response

    async def sign_in(self) -> Credential:
        body, own = {"name": self.name, "password": PASSWORD}, {"Origin": self.processes.backends[0].url}
        return self._note_cookie("session", await self.http.post("/session", json=body, headers=own))

    async def make(self, kind: str) -> Credential:
        match kind:
            case "session":
                return await self.sign_in()
            case "device":
                code = (await self.send("POST", "/links")).json()["address"].partition("#link=")[2]
                own = {"Origin": self.processes.backends[0].url}
                return self._note_cookie(
                    "device", await self.http.post("/links/take", json={"code": code}, headers=own)
                )
            case "token":
                body = {"name": "a program", "scopes": ["chat", "tasks"]}
                made = (await self.send("POST", "/tokens", json=body)).json()
                headers = {"Authorization": f"Bearer {made['token']}"}
                return Credential("token", made["id"], headers, made["token"])
            case _:
                made = await self._allow_client()
                return Credential("client", self._find_newest("client"), token=made["access_token"])

    async def _allow_client(self) -> dict[str, Any]:
        stack = AccountStack(self.processes.backends[0], self.processes.tool_servers[0])
        flow = Flow(stack, self.stored, self.name, self.page.headers["Cookie"])
        self._clients.push_async_callback(flow.http.aclose)
        flow.client_id = (await flow.register()).json()["client_id"]
        return await flow.tokens()

    def _note_cookie(self, kind: str, response: httpx2.Response) -> Credential:
        assert response.status_code == 200, response.text
        self.http.cookies.clear()
        cookie = response.headers["set-cookie"].partition(";")[0]
        return Credential(kind, self._find_newest(kind), {"Cookie": cookie})

    def _find_newest(self, kind: str) -> str:
        rows = [row for row in self.stored.rows_of(self.name, "sessions") if row["kind"] == kind]
        return max(rows, key=lambda row: row["created_at"])["id"]

    async def end(self, credential: Credential) -> None:
        """Ends it at the first backend: a session by its own sign-out, all else on the page."""
        if credential.kind == "session":
            own = credential.at(self.processes.backends[0])
            assert (await self.http.delete("/session", headers=own)).status_code == 204
        else:
            paths = {"device": "sessions", "token": "tokens", "client": "clients"}
            await self.send("DELETE", f"/{paths[credential.kind]}/{credential.id}")

    def when_ended(self, credential: Credential) -> float:
        """Returns Unix time by the clock of the database, which is that of this machine."""
        [row] = [row for row in self.stored.rows_of(self.name, "sessions") if row["id"] == credential.id]
        return datetime.fromisoformat(row["ended_at"]).timestamp()

    async def begin_answer(self) -> None:
        body = {"user_message": "count"}
        headers = self.page.at(self.processes.backends[0])
        async with self.http.stream("POST", f"/chats/{CHAT}/interactions", json=body, headers=headers) as response:
            received = ""
            async for piece in response.aiter_text():
                received += piece
                if "answer_delta" in received:
                    break
        found = re.search(r'"interaction_id": ?"([^"]+)"', received)
        assert found, received
        self.run = found[1]


@pytest.fixture
async def model(processes: Processes, stored: Stored) -> AsyncIterator[ScriptedModel]:
    async with ScriptedModel(processes.services.model.url) as model:
        await model.script(PAUSING)
        yield model
    await until(lambda: not stored.is_run_running())


@pytest.fixture
async def person(processes: Processes, stored: Stored, model: ScriptedModel) -> AsyncIterator[Person]:
    async with Person(processes, stored) as person:
        await person.send("POST", "/tasks", json={"title": "dentist", "due": "2026-11-27"})
        await person.begin_answer()
        await person.send("PUT", FILE, content=bytes(FILE_BYTES))
        yield person


class Watch:
    """Uses a credential at every process for all that it opens, and tells when each use has come to its end."""

    def __init__(self, person: Person, *credentials: Credential) -> None:
        self.person, self.credentials = person, credentials
        self.uses: dict[tuple[Credential, str], asyncio.Task[float]] = {}
        self._cleanup = AsyncExitStack()

    async def __aenter__(self) -> "Watch":
        """Returns when everything is open."""
        try:
            await self._open()
        except BaseException:
            await self.__aexit__()
            raise
        return self

    async def _open(self) -> None:
        await self._hold_tasks()
        for credential in self.credentials:
            for number, backend in enumerate(self.person.processes.backends, 1):
                if credential.headers:
                    await self._use_backend(credential, backend, f"backend {number}")
            for number, tools in enumerate(self.person.processes.tool_servers, 1):
                if credential.token is not None:
                    await self._use_tools(credential, credential.token, tools, f"tool server {number}")
        calls = sum(what.startswith("waiting call") for _, what in self.uses)
        await until(lambda: not calls or self.person.stored.has_waiting_statements(count=calls))
        assert not [what for (_, what), use in self.uses.items() if use.done()]

    async def __aexit__(self, *_: object) -> None:
        for use in self.uses.values():
            use.cancel()
        await asyncio.gather(*self.uses.values(), return_exceptions=True)
        await self._cleanup.aclose()

    async def measure(self) -> dict[tuple[str, str], float]:
        """Waits until every use has ended; returns the seconds since the end of its credential, by kind and use."""
        ends = dict(zip(self.uses, await asyncio.gather(*self.uses.values()), strict=True))
        began = {each: self.person.when_ended(each) for each in self.credentials}
        figures = {(each.kind, what): end - began[each] for (each, what), end in ends.items()}
        for (kind, what), seconds in figures.items():
            print(f"{kind:8} {what:32} {seconds:6.3f} s")  # noqa: T201 - the figures, with `-s`
        assert max(figures.values()) < MOST_SECONDS, figures
        return figures

    async def _hold_tasks(self) -> None:
        """Lets calls that would change tasks of the user wait."""
        url = as_admin(self.person.processes.services.database_url)
        holder = await self._cleanup.enter_async_context(await psycopg.AsyncConnection.connect(url))
        await holder.execute(f"SELECT {advisory_locks.TASKS}", {"user": self.person.name})

    async def _use_backend(self, credential: Credential, backend: ServiceProcess, name: str) -> None:
        http, headers = await self.person.open_client(backend), credential.at(backend)
        await self._repeat(credential, f"requests at {name}", partial(http.get, "/tasks/counts", headers=headers))
        if credential.kind == "token":
            password = base64.b64encode(f"ada:{credential.token}".encode()).decode()
            basic = {"Authorization": f"Basic {password}"}
            await self._repeat(credential, f"calendar at {name}", partial(http.get, "/calendar.ics", headers=basic))
        path = f"/chats/{CHAT}/interactions/{self.person.run}/events"
        events = await self._cleanup.enter_async_context(http.stream("GET", path, headers=headers))
        pieces, received = events.aiter_text(), ""
        while "answer_delta" not in received:
            received += await anext(pieces)
        self._add(credential, f"stream at {name}", _read_to_the_end(pieces))
        self._add(credential, f"download at {name}", await self._open_download(backend, headers))

    async def _use_tools(self, credential: Credential, token: str, tools: ServiceProcess, name: str) -> None:
        http = await self.person.open_client(tools)
        bearer = {"Authorization": f"Bearer {token}"}
        await self._repeat(credential, f"requests at {name}", partial(http.get, "/counts", headers=bearer))
        await self._repeat(credential, f"calls at {name}", lambda: send(http, call("list_tasks", {}, token=token)))

        async def wait() -> float:
            response = await send(http, call("add_task", {"title": "late"}, token=token))
            assert (response.status_code, response.json()["error_description"][:21]) == (401, "This token was ended.")
            return time.time()

        self._add(credential, f"waiting call at {name}", wait())

    async def _repeat(
        self, credential: Credential, what: str, request: Callable[[], Awaitable[httpx2.Response]]
    ) -> None:
        """Repeats a request, which is served once before this returns, until it is refused."""
        assert (response := await request()).status_code == 200, response.text

        async def is_refused() -> bool:
            response = await request()
            assert response.status_code in (200, 401), response.text
            return response.status_code == 401

        async def end() -> float:
            await until(is_refused)
            return time.time()

        self._add(credential, what, end())

    async def _open_download(self, backend: ServiceProcess, headers: Mapping[str, str]) -> Any:
        """Reads the beginning of the file, and then nothing until the server has closed the connection."""
        client = self._cleanup.enter_context(socket.socket())
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2_048)
        client.connect(("127.0.0.1", backend.port))
        lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        client.sendall(f"GET {FILE} HTTP/1.1\r\nHost: 127.0.0.1:{backend.port}\r\n{lines}\r\n".encode())
        client.setblocking(False)
        loop = asyncio.get_running_loop()
        beginning = await loop.sock_recv(client, 1_024)
        assert beginning.startswith(b"HTTP/1.1 200"), beginning
        link = backend.find_socket(client.getsockname()[1])
        assert backend.has_open(link)

        async def end() -> float:
            await until(lambda: not backend.has_open(link))
            ended, received = time.time(), 0
            with suppress(ConnectionResetError):
                while piece := await loop.sock_recv(client, 1_000_000):
                    received += len(piece)
            assert received < 16_000, "which is in the kernel of the client, and not what the server has buffered"
            return ended

        return end()

    def _add(self, credential: Credential, what: str, end: Any) -> None:
        self.uses[credential, what] = asyncio.create_task(end)


async def _read_to_the_end(pieces: AsyncIterator[str]) -> float:
    async for piece in pieces:
        assert "eight" not in piece
    return time.time()


async def check_open(person: Person, *credentials: Credential) -> None:
    """At every process that accepts them."""
    for credential in credentials:
        for backend in person.processes.backends if credential.headers else ():
            async with http_client(backend.url) as http:
                assert (await http.get("/tasks/counts", headers=credential.at(backend))).status_code == 200
        for tools in person.processes.tool_servers if credential.token else ():
            async with http_client(tools.url) as http:
                bearer = {"Authorization": f"Bearer {credential.token}"}
                assert (await http.get("/counts", headers=bearer)).status_code == 200


@pytest.mark.parametrize("kind", KINDS)
async def test_ended_credential_is_known_in_every_process(person: Person, kind: str) -> None:
    others = [await person.make(other) for other in KINDS]
    async with Watch(person, await person.make(kind)) as watch:
        [credential] = watch.credentials
        await person.end(credential)
        figures = await watch.measure()
    uses = {"session": 6, "device": 6, "token": 14, "client": 6}
    assert len(figures) == uses[kind]
    await check_open(person, person.page, *others)
    assert person.stored.titles(person.name) == ["dentist"], "the call that waited has changed nothing"


async def test_disabled_account_is_known_in_every_process(person: Person, processes: Processes, stored: Stored) -> None:
    """What each of its credentials has opened ends, and it opens nothing more; other users go on."""
    async with Person(processes, stored) as other:
        others = [other.page, await other.make("token"), await other.make("client")]
        async with Watch(person, *[await person.make(kind) for kind in KINDS]) as watch:
            settings = {**SIGN_IN, "MIGRATION_DATABASE_URL": as_owner(processes.services.database_url)}
            done = await asyncio.to_thread(partial(todo, "user", "disable", person.name, **settings))
            assert done.returncode == 0, done.stderr
            await watch.measure()
        await check_open(other, *others)
    for backend in processes.backends:
        async with http_client(backend.url, headers={"Origin": backend.url}) as http:
            body = {"name": person.name, "password": PASSWORD}
            assert (await http.post("/session", json=body)).status_code in (401, 403)
