"""What a client may send over one connection, and how long it may take."""

import asyncio
import json
import socket
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Self

import pytest
from starlette.responses import Response
from starlette.types import Message, Receive, Scope, Send

from common.server.connection_owner import set_owner
from common.server.limits import ClientLimits
from common.telemetry.logs import AT_ONCE
from tests import abuse
from tests.processes import ServiceProcess, run_service
from tests.scripted_model import ScriptedModel
from tests.serving import http_client, serve
from tests.support.port_attacks import attack
from tests.support.stack import Services, Stack
from tests.support.users import User
from tests.waiting import until

pytestmark = pytest.mark.long

SETTINGS = {
    "AUTH_MODE": "none",  # so that a body is read
    "LIMIT_CONNECTIONS": "6",
    "LIMIT_HEADERS": "10",
    "LIMIT_HEADER_BYTES": "4000",
    "LIMIT_REQUEST_BYTES": "10000",
    "READ_TIMEOUT_SECONDS": "4",
    "WRITE_TIMEOUT_SECONDS": "4",
    "IDLE_TIMEOUT_SECONDS": "4",
    "TRUSTED_PROXIES": "10.0.0.7",
}
GET = b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n"
HEAD = b"POST /chatkit HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
CHUNKED = HEAD + b"Transfer-Encoding: chunked\r\n\r\n"


class Wire:
    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer

    async def send(self, *pieces: bytes) -> None:
        for piece in pieces:
            self.writer.write(piece)
            await self.writer.drain()

    async def rest(self) -> bytes:
        """All that comes until the other side closes."""
        async with asyncio.timeout(120):
            return await self.reader.read()


Connect = Callable[[], Awaitable[Wire]]


@pytest.fixture(scope="module")
def backend(services: Services, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServiceProcess]:
    log: Path = tmp_path_factory.mktemp("connections") / "backend.log"
    settings = {**services.backend_environment(), **SETTINGS}
    yield from run_service(ServiceProcess("backend", "BACKEND_PORT", log, **settings))


@pytest.fixture
async def connect(backend: ServiceProcess) -> AsyncIterator[Connect]:
    opened: list[asyncio.StreamWriter] = []

    async def connect() -> Wire:
        reader, writer = await asyncio.open_connection("127.0.0.1", backend.port, limit=2**20)
        opened.append(writer)
        return Wire(reader, writer)

    yield connect
    sockets = [backend.find_socket(writer.get_extra_info("sockname")[1]) for writer in opened]
    for writer in opened:
        writer.transport.abort()  # what is not sent yet need not be
    # As long as the backend has them open, they count against the next test's.
    await until(lambda: not any(map(backend.has_open, sockets)))


def check_rejected(answer: bytes, status: int) -> None:
    """One answer with this status, a sentence, and the end of the connection."""
    answer = answer.replace(b"HTTP/1.1 100 Continue\r\n\r\n", b"")
    head, _, body = answer.partition(b"\r\n\r\n")
    assert head.startswith(f"HTTP/1.1 {status} ".encode()), answer[:300]
    assert b"connection: close" in head
    assert json.loads(body)["error"].endswith(".")


TOO_MUCH = {
    "a long line": (HEAD + b"X: ", b"a" * 5_000_000, 431),
    "a long name": (HEAD, b"a" * 5_000_000, 431),
    "a long address": (b"GET /", b"a" * 5_000_000, 431),
    "many headers": (HEAD, b"X: y\r\n" * 500_000, 431),
    "many large headers": (HEAD, (b"X: " + b"y" * 1_000 + b"\r\n") * 5_000, 431),
    "a length": (HEAD, b"Content-Length: 10001\r\n\r\n", 413),
    "a length with Expect": (HEAD, b"Expect: 100-continue\r\nContent-Length: 10001\r\n\r\n", 413),
    "one chunk": (CHUNKED, b"2711\r\n" + b"x" * 10_001, 413),
    "small chunks": (CHUNKED, b"1\r\nx\r\n" * 800_000, 413),
    "a chunk's extension": (CHUNKED, b"1;" + b"x" * 5_000_000, 413),
    "a trailer": (CHUNKED, b"0\r\nX: " + b"x" * 5_000_000, 413),
}


@pytest.mark.parametrize(("head", "more", "status"), TOO_MUCH.values(), ids=TOO_MUCH)
async def test_too_much(connect: Connect, head: bytes, more: bytes, status: int) -> None:
    """It is rejected while it arrives; who has sent it reads why."""
    wire = await connect()
    sending = asyncio.create_task(wire.send(head + more))
    check_rejected(await wire.rest(), status)
    sending.cancel()


async def test_just_not_too_much(connect: Connect) -> None:
    wire = await connect()
    headers = b"X: y\r\n" * 6 + b"Z: " + b"z" * 3_500 + b"\r\n"
    await wire.send(HEAD + headers + b"Content-Length: 10000\r\n\r\n" + b"x" * 10_000)
    assert (await wire.reader.readline()).startswith(b"HTTP/1.1 400")


# What a proxy in front may read as another request, or as two.
AMBIGUOUS = {
    "no HTTP": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n",
    "two lengths": HEAD + b"Content-Length: 5\r\nContent-Length: 6\r\n\r\nabcdef",
    "a list of lengths": HEAD + b"Content-Length: 5, 5\r\n\r\nabcde",
    "a signed length": HEAD + b"Content-Length: +5\r\n\r\nabcde",
    "a length and chunks": HEAD + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "chunks and a length": HEAD + b"Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n",
    "chunks not last": HEAD + b"Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n",
    "an unknown coding": HEAD + b"Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n",
    "a space before the colon": HEAD + b"Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n",
    "a folded line": HEAD + b"Transfer-Encoding:\r\n chunked\r\n\r\n0\r\n\r\n",
    "a chunk's size in another spelling": CHUNKED + b"0x1\r\na\r\n0\r\n\r\n",
    "LF alone": HEAD + b"X: y\nContent-Length: 0\r\n\r\n",
    "CR alone": HEAD + b"X: y\rContent-Length: 0\r\n\r\n",
    "LF alone at the end": HEAD + b"Content-Length: 0\n\n",
    "LF alone after a chunk's size": CHUNKED + b"1\na\r\n0\r\n\r\n",
    "two hosts": HEAD + b"HOST: other\r\n\r\n",
}


@pytest.mark.parametrize("sent", AMBIGUOUS.values(), ids=AMBIGUOUS)
async def test_ambiguous_request(connect: Connect, sent: bytes) -> None:
    """Nothing that follows it is answered."""
    wire = await connect()
    await wire.send(sent + GET)
    answer = await wire.rest()
    check_rejected(answer, 400)
    assert answer.count(b"HTTP/1.1") == 1


async def test_requests_that_wait_for_no_answer(connect: Connect) -> None:
    wire = await connect()
    await wire.send(GET * 20_000)
    assert (await wire.rest()).count(b"HTTP/1.1 200") == 2


async def test_upgrade(connect: Connect) -> None:
    wire = await connect()
    await wire.send(GET[:-2] + b"Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: eA==\r\n\r\nframes")
    assert (await wire.rest()).startswith(b"HTTP/1.1 200")


async def test_silent_clients(connect: Connect) -> None:
    """And one that sends a byte now and then, all at the same time."""
    late = (b"GET / HT", HEAD + b"X", HEAD + b"Content-Length: 5\r\n\r\nab", HEAD)
    wires = {sent: await connect() for sent in (b"", GET, *late)}
    for sent, wire in wires.items():
        await wire.send(sent)

    async def drip() -> None:
        while True:
            await asyncio.sleep(0.2)
            await wires[HEAD].send(b"a")

    dripping = asyncio.create_task(drip())
    answers = dict(zip(wires, await asyncio.gather(*(wire.rest() for wire in wires.values())), strict=True))
    dripping.cancel()
    assert answers[b""] == b""
    assert answers[GET].startswith(b"HTTP/1.1 200")
    for sent in late:
        check_rejected(answers[sent], 408)


async def test_number_of_connections(connect: Connect) -> None:
    """A new one takes the place of one that only waits."""
    silent = [await connect() for _ in range(6)]
    await silent[0].send(HEAD)
    for _ in range(3):
        wire = await connect()
        await wire.send(GET)
        assert (await wire.reader.readline()).startswith(b"HTTP/1.1 200")
    assert await silent[1].rest() == b""


@pytest.mark.parametrize("most", ["alice", ""])
async def test_the_user_who_has_most_connections_makes_room(most: str) -> None:
    """Also if others have waited longer, and if it is those without a valid token who have most."""

    async def app(scope: Scope, _: Receive, send: Send) -> None:
        if user := dict(scope["headers"]).get(b"user", b"").decode():
            set_owner(scope, user)
        await Response()(scope, _, send)

    async def connect_as(user: str) -> Wire:
        wire = Wire(*await asyncio.open_connection("127.0.0.1", int(url.rpartition(":")[2])))
        assert (await ask(wire, user)).startswith(b"HTTP/1.1 200")
        return wire

    async def ask(wire: Wire, user: str) -> bytes:
        await wire.send(b"GET / HTTP/1.1\r\nHost: localhost\r\n" + f"User: {user}\r\n\r\n".encode())
        return await wire.reader.readuntil(b"\r\n\r\n")

    async with serve(app, lifespan="off", limits=ClientLimits(limit_connections=6)) as url:
        wires = {user: [await connect_as(user) for _ in range(count)] for user, count in (("bob", 1), (most, 5))}
        carol = await connect_as("carol")
        assert await wires[most][0].rest() == b""
        for wire, user in ((wires["bob"][0], "bob"), (carol, "carol")):
            assert (await ask(wire, user)).startswith(b"HTTP/1.1 200")
            wire.writer.close()
        for wire in wires[most]:
            wire.writer.close()


async def test_users_take_turns_with_the_pieces_of_large_requests() -> None:
    """Else somebody with many connections holds up the files that others upload."""
    received, meanwhile = Counter[str](), 0

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        nonlocal meanwhile
        user, before = dict(scope["headers"]).get(b"user", b"").decode(), received[""]
        if user:
            set_owner(scope, user)
        message: Message = {"more_body": True}
        while message.get("more_body"):
            message = await receive()
            received[user] += len(message.get("body", b""))
        if user:
            meanwhile = received[""] - before
        await Response()(scope, receive, send)

    async def send_without_end() -> None:
        body = b"1000\r\n" + b"x" * 0x1000 + b"\r\n"
        wire = Wire(*await asyncio.open_connection("127.0.0.1", port))
        await wire.send(b"POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n")
        try:
            while True:
                await wire.send(body)
        finally:
            wire.writer.transport.abort()

    limits = ClientLimits(limit_request_bytes=2**30, read_timeout_seconds=600)
    async with serve(app, lifespan="off", limits=limits) as url:
        port = int(url.rpartition(":")[2])
        sending = [asyncio.create_task(send_without_end()) for _ in range(20)]
        await until(lambda: received[""] > 1_000_000)
        alice = Wire(*await asyncio.open_connection("127.0.0.1", port))
        await alice.send(
            b"POST / HTTP/1.1\r\nHost: localhost\r\nUser: alice\r\nContent-Length: 40000\r\n\r\n" + b"x" * 40_000
        )
        assert (await alice.reader.readline()).startswith(b"HTTP/1.1 200")
        alice.writer.close()
        for each in sending:
            each.cancel()
        await asyncio.gather(*sending, return_exceptions=True)
    assert received["alice"] == 40_000
    assert meanwhile < 4 * 40_000


async def test_requests_that_arrive_at_once_are_begun_one_after_the_other() -> None:
    """Else the requests of one client's connections hold up all users together, although each of them is short."""
    current_round, rounds = 0, Counter[int]()

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        rounds[current_round] += 1
        await Response()(scope, receive, send)

    async with serve(app, lifespan="off") as url:
        port = int(url.rpartition(":")[2])
        wires = [Wire(*await asyncio.open_connection("127.0.0.1", port)) for _ in range(50)]
        for wire in wires:
            wire.writer.write(GET)
        while sum(rounds.values()) < len(wires):
            current_round += 1
            await asyncio.sleep(0)
        for wire in wires:
            assert (await wire.reader.readline()).startswith(b"HTTP/1.1 200")
            wire.writer.close()
    assert max(rounds.values()) <= 2


FILE_BYTES = 3_000_000
CLIENT_BUFFER_BYTES = 4_096  # of what the client's kernel takes before the client reads it


@pytest.fixture
async def file_path(backend: ServiceProcess) -> str:
    """The path of a file that is larger than what all buffers hold."""
    async with http_client(backend.url) as http:
        chat = (await http.post("/conversations", json={"title": "Files"})).json()["id"]
        path = f"/chats/{chat}/files/large.bin"
        (await http.put(path, content=b"\0" * FILE_BYTES)).raise_for_status()
    return path


class SlowReader:
    """Reads a response at its own speed."""

    def __init__(self, backend: ServiceProcess, path: str) -> None:
        self._socket = socket.socket()
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, CLIENT_BUFFER_BYTES)
        self._socket.connect(("127.0.0.1", backend.port))
        self._socket.sendall(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
        self._socket.setblocking(False)
        self._backend = backend
        self._link = backend.find_socket(self._socket.getsockname()[1])
        self.bytes = 0

    @property
    def is_open(self) -> bool:
        return self._backend.has_open(self._link)

    async def read(self, size: int) -> None:
        piece = await asyncio.get_running_loop().sock_recv(self._socket, size)
        self.bytes += len(piece)

    async def read_while(self, condition: Callable[[], bool], *, bytes_per_second: int) -> None:
        start, before = time.monotonic(), self.bytes
        while condition():
            if self.bytes - before < bytes_per_second * (time.monotonic() - start):
                with suppress(ConnectionResetError):
                    await self.read(max(bytes_per_second // 4, 1))
            await asyncio.sleep(0.1)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()


@pytest.mark.parametrize("bytes_per_second", [1, 200])
async def test_client_that_reads_too_slowly(backend: ServiceProcess, file_path: str, bytes_per_second: int) -> None:
    with SlowReader(backend, file_path) as reader:
        async with asyncio.timeout(120):
            await reader.read_while(lambda: reader.is_open, bytes_per_second=bytes_per_second)
        assert reader.bytes < 10_000


async def test_client_that_reads_slowly(backend: ServiceProcess, file_path: str) -> None:
    """Gets all of the file if it reads eight times as fast as it has to."""
    end = time.monotonic() + 3 * float(SETTINGS["WRITE_TIMEOUT_SECONDS"])
    with SlowReader(backend, file_path) as reader:
        await reader.read_while(lambda: time.monotonic() < end, bytes_per_second=8_000)
        assert reader.bytes < FILE_BYTES // 10
        async with asyncio.timeout(120):
            while reader.bytes < FILE_BYTES:
                await reader.read(65_536)


async def test_stream_in_which_nothing_happens(backend: ServiceProcess, model: ScriptedModel) -> None:
    await model.script({"text": "Fine.", "hold_after": 0})
    path, received = "/chats/idle/interactions", ""
    async with (
        http_client(backend.url) as http,
        http.stream("POST", path, json={"user_message": "hello"}) as response,
    ):
        await model.received_requests(1)
        await asyncio.sleep(2 * float(SETTINGS["WRITE_TIMEOUT_SECONDS"]))
        await model.release()
        async for piece in response.aiter_text():
            received += piece
    assert "Fine." in received


async def test_number_of_connections_whose_clients_read_nothing(
    connect: Connect, backend: ServiceProcess, file_path: str
) -> None:
    """They cannot keep others out, although their responses are not complete."""
    with ExitStack() as stack:
        for _ in range(int(SETTINGS["LIMIT_CONNECTIONS"])):
            await stack.enter_context(SlowReader(backend, file_path)).read(1)
        wire = await connect()
        await wire.send(GET)
        assert (await wire.reader.readline()).startswith(b"HTTP/1.1 200")


async def test_proxy_that_is_not_trusted(backend: ServiceProcess) -> None:
    async with http_client(backend.url) as http:
        answer = await http.get("/health", headers={"X-Forwarded-Proto": "https"})
    assert "strict-transport-security" not in answer.headers


async def test_log_of_rejected_requests(connect: Connect, backend: ServiceProcess) -> None:
    """A few lines for many."""
    before = len(backend.log_text.splitlines())
    for _ in range(100):
        wire = await connect()
        await wire.send(b"nonsense\r\n\r\n")
        await wire.rest()
        wire.writer.close()
    assert len(backend.log_text.splitlines()) - before <= AT_ONCE + 3


SECONDS = 0.4
LOG_CHARACTERS = 20_000  # for an attack, and for each message of the user
ATTACKS = [("backend", name) for name in abuse.ABUSES] + [
    ("mcp_server", "chunks of one byte"),
    ("mcp_server", "half a body"),
]


@pytest.mark.parametrize(("attacked", "name"), ATTACKS)
async def test_users_are_served(stack: Stack, user: User, model: ScriptedModel, attacked: str, name: str) -> None:
    service = stack.backends[0] if attacked == "backend" else stack.services.mcp
    log, messages = len(service.log_text), 0
    async with attack(service.port, attacked, name, SECONDS, service) as attacking:
        while not messages or not attacking.done():
            answer = await user.chatkit.say("add milk")
            assert answer.error is None
            messages += 1
    assert len(service.log_text) < log + LOG_CHARACTERS * (1 + messages)
