"""What a client may send over one connection, and how long it may take, by an application that does next to nothing."""

import asyncio
import hashlib
import json
import logging
import random
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from service.workers import ClientLimits
from tests.serving import serve

pytestmark = pytest.mark.long

LIMITS = ClientLimits(
    limit_connections=6,
    limit_headers=10,
    limit_header_bytes=4_000,
    limit_request_bytes=10_000,
    read_timeout_seconds=1.5,
    write_timeout_seconds=1.5,
    idle_timeout_seconds=3.0,
)
HEAD = b"POST / HTTP/1.1\r\nHost: localhost\r\n"
GET = b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"


class Service:
    """Answers with the length of the body; /stream answers for ever, /early before it has read anything.

    Of a body for /digest the answer is a hash, and it is read in turns with other work.
    """

    def __init__(self) -> None:
        self.seen: list[Any] = []
        self.sent = 0
        self.left = asyncio.Event()
        self.go_on = asyncio.Event()

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        self.seen.append(scope)
        if scope["path"] == "/wait":
            await self.go_on.wait()
        length, more = 0, scope["path"] != "/early"
        digest = hashlib.sha256()
        while more:
            message = await receive()
            if message["type"] == "http.disconnect":
                self.left.set()
                return
            length, more = length + len(message["body"]), message["more_body"]
            if scope["path"] == "/digest":
                digest.update(message["body"])
                await asyncio.sleep(0.003)
        await send({"type": "http.response.start", "status": 200, "headers": []})
        if scope["path"] == "/stream":
            listening = asyncio.create_task(receive())
            while not listening.done():
                await send({"type": "http.response.body", "body": b"x" * 10_000, "more_body": True})
                self.sent += 10_000
                await asyncio.sleep(0)
            self.left.set()
        answer = digest.hexdigest() if scope["path"] == "/digest" else str(length)
        await send({"type": "http.response.body", "body": answer.encode()})


class Wire:
    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer

    async def send(self, *pieces: bytes) -> None:
        for piece in pieces:
            self.writer.write(piece)
            await self.writer.drain()

    async def rest(self, *, within: float = 6) -> bytes:
        """All that comes until the other side closes."""
        async with asyncio.timeout(within):
            return await self.reader.read()


Connect = Callable[[], Awaitable[Wire]]


@asynccontextmanager
async def connecting(service: Service, **limits: Any) -> AsyncIterator[Connect]:
    opened: list[asyncio.StreamWriter] = []
    async with serve(service, lifespan="off", limits=LIMITS.model_copy(update=limits)) as url:

        async def connect() -> Wire:
            reader, writer = await asyncio.open_connection("127.0.0.1", int(url.rpartition(":")[2]), limit=2**20)
            opened.append(writer)
            return Wire(reader, writer)

        try:
            yield connect
        finally:
            for writer in opened:
                writer.close()


@pytest.fixture
def service() -> Service:
    return Service()


@pytest.fixture
async def connect(service: Service) -> AsyncIterator[Connect]:
    async with connecting(service) as connect:
        yield connect


def refusal(answer: bytes, status: int) -> str:
    """The sentence of an answer with this status and nothing after it."""
    head, _, body = answer.partition(b"\r\n\r\n")
    assert head.startswith(f"HTTP/1.1 {status} ".encode()), answer[:300]
    assert b"connection: close" in head
    return json.loads(body)["error"]


CHUNKED = HEAD + b"Transfer-Encoding: chunked\r\n\r\n"
INVALID = "This is not a valid HTTP request."
TOO_MUCH = {
    "a long line": (HEAD + b"X: ", b"a" * 5_000_000, 431, "larger than 4,000 bytes"),
    "a long name": (HEAD, b"a" * 5_000_000, 431, "larger than 4,000 bytes"),
    "a long address": (b"GET /", b"a" * 5_000_000, 431, "larger than 4,000 bytes"),
    "many headers": (HEAD, b"X: y\r\n" * 500_000, 431, "more than 10 headers"),
    "many large headers": (HEAD, (b"X: " + b"y" * 1_000 + b"\r\n") * 5_000, 431, "larger than 4,000 bytes"),
    "a length": (HEAD, b"Content-Length: 10001\r\n\r\n", 413, "larger than 10,000 bytes"),
    "a length with consent": (HEAD, b"Expect: 100-continue\r\nContent-Length: 10001\r\n\r\n", 413, "10,000 bytes"),
    "one chunk": (CHUNKED, b"2711\r\n" + b"x" * 10_001, 413, "larger than 10,000 bytes"),
    "small chunks": (CHUNKED, b"1\r\nx\r\n" * 800_000, 413, "larger than 10,000 bytes"),
    "a chunk's extension": (CHUNKED, b"1;" + b"x" * 5_000_000, 413, "larger than 10,000 bytes"),
    "a trailer": (CHUNKED, b"0\r\nX: " + b"x" * 5_000_000, 413, "larger than 10,000 bytes"),
    "many trailers": (CHUNKED, b"0\r\n" + b"X: y\r\n" * 800_000, 413, "larger than 10,000 bytes"),
}


@pytest.mark.parametrize(("head", "more", "status", "sentence"), TOO_MUCH.values(), ids=TOO_MUCH)
async def test_what_is_too_much_is_refused_while_it_arrives(
    connect: Connect, service: Service, head: bytes, more: bytes, status: int, sentence: str
) -> None:
    wire = await connect()
    await wire.send(head)
    sending = asyncio.create_task(wire.send(more))
    assert sentence in refusal(await wire.rest(), status)
    sending.cancel()
    if status == 431:
        assert service.seen == []


async def test_what_is_just_not_too_much_is_served(connect: Connect) -> None:
    wire = await connect()
    chunks = b"".join(b"%x\r\n%b\r\n" % (size, b"x" * size) for size in (1, 9_000, 999))
    await wire.send(
        HEAD + b"X: y\r\n" * 7 + b"Z: " + b"z" * 3_600 + b"\r\nContent-Length: 10000\r\n\r\n", b"x" * 10_000
    )
    await wire.send(CHUNKED, chunks + b"0\r\nAuthorization: Bearer late\r\n\r\n")
    answers = b""
    while answers.count(b"10000\r\n0\r\n") < 2:
        answers += await wire.reader.read(1000)


async def test_a_trailer_is_no_header(connect: Connect, service: Service) -> None:
    wire = await connect()
    await wire.send(CHUNKED + b"0\r\nAuthorization: Bearer late\r\n\r\n")
    await wire.reader.readuntil(b"0\r\n\r\n")
    assert b"authorization" not in dict(service.seen[0]["headers"])


async def test_what_is_no_http_gets_a_sentence(connect: Connect) -> None:
    wire = await connect()
    await wire.send(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03")
    assert refusal(await wire.rest(), 400) == INVALID


# What a proxy in front may read as another request, or as two.
AMBIGUOUS = {
    "two lengths": (b"Content-Length: 5\r\nContent-Length: 6\r\n\r\nabcdef", INVALID),
    "a list of lengths": (b"Content-Length: 5, 5\r\n\r\nabcde", INVALID),
    "a signed length": (b"Content-Length: +5\r\n\r\nabcde", INVALID),
    "a length and chunks": (b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", INVALID),
    "chunks and a length": (b"Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n", INVALID),
    "chunks not last": (b"Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n", INVALID),
    "a coding nobody knows": (b"Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n", INVALID),
    "a space before the colon": (b"Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n", INVALID),
    "a folded line": (b"Transfer-Encoding:\r\n chunked\r\n\r\n0\r\n\r\n", INVALID),
    "a chunk's size in another spelling": (b"Transfer-Encoding: chunked\r\n\r\n0x1\r\na\r\n0\r\n\r\n", INVALID),
    "LF alone": (b"X: y\nContent-Length: 0\r\n\r\n", INVALID),
    "CR alone": (b"X: y\rContent-Length: 0\r\n\r\n", INVALID),
    "LF alone at the end": (b"Content-Length: 0\n\n", INVALID),
    "LF alone after a chunk's size": (b"Transfer-Encoding: chunked\r\n\r\n1\na\r\n0\r\n\r\n", INVALID),
    "two hosts": (b"HOST: other\r\n\r\n", "The request has more than one Host header: send one."),
}


@pytest.mark.parametrize(("rest", "sentence"), AMBIGUOUS.values(), ids=AMBIGUOUS)
async def test_what_could_be_read_as_another_request_is_refused_with_all_that_follows(
    connect: Connect, service: Service, rest: bytes, sentence: str
) -> None:
    wire = await connect()
    await wire.send(HEAD + rest + b"GET /smuggled HTTP/1.1\r\nHost: localhost\r\n\r\n")
    assert refusal(await wire.rest(), 400) == sentence
    assert "/smuggled" not in [scope["path"] for scope in service.seen]


async def test_requests_that_do_not_wait_for_answers_are_not_kept(connect: Connect, service: Service) -> None:
    wire = await connect()
    await wire.send(GET * 20_000)
    answers = await wire.rest()
    assert answers.count(b"HTTP/1.1 200") == len(service.seen) == 2
    assert answers.endswith(b"0\r\n\r\n")


async def test_an_upgrade_is_answered_as_a_plain_request(connect: Connect, caplog: pytest.LogCaptureFixture) -> None:
    wire = await connect()
    await wire.send(GET[:-2] + b"Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: eA==\r\n\r\nframes")
    assert (await wire.rest()).startswith(b"HTTP/1.1 200")
    assert caplog.text == ""


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        (b"", None),
        (b"\r\n\r\n", None),
        (b"GET / HT", 408),
        (HEAD + b"X", 408),
        (HEAD + b"Content-Length: 5\r\n\r\nab", 408),
        (HEAD + b"Content-Length: 5\r\nExpect: 100-continue\r\n\r\n", 408),
        (GET, 200),
    ],
)
async def test_who_falls_silent_is_not_waited_for(connect: Connect, sent: bytes, status: int | None) -> None:
    wire = await connect()
    began = asyncio.get_running_loop().time()
    await wire.send(sent)
    answer = (await wire.rest()).replace(b"HTTP/1.1 100 Continue\r\n\r\n", b"")
    took = asyncio.get_running_loop().time() - began
    assert 1.4 < took < 2.6 if status == 408 else 2.9 < took < 4.1
    if status == 408:
        assert refusal(answer, 408) == "The request was not whole after 1.5 seconds."
    else:
        assert answer.startswith(b"HTTP/1.1 200" if status else b"")
        assert status or answer == b""


async def test_who_sends_a_byte_now_and_then_is_not_waited_for(connect: Connect) -> None:
    wire = await connect()

    async def drip() -> None:
        await wire.send(HEAD)
        while True:
            await wire.send(b"a")
            await asyncio.sleep(0.2)

    dripping = asyncio.create_task(drip())
    assert "not whole" in refusal(await wire.rest(within=3.5), 408)
    dripping.cancel()


async def test_who_sends_all_before_reading_reads_why_it_was_refused(service: Service) -> None:
    async with connecting(service, read_timeout_seconds=10) as connect:
        wire = await connect()
        await wire.send(HEAD + b"Content-Length: 3000000\r\n\r\n")
        for _ in range(30):
            await wire.send(b"x" * 100_000)
            await asyncio.sleep(0.1)
        assert "larger than 10,000 bytes" in refusal(await wire.rest(), 413)


async def test_who_never_ends_sending_what_was_refused_is_cut_off(service: Service) -> None:
    async with connecting(service, read_timeout_seconds=3) as connect:
        wire = await connect()
        await wire.send(HEAD + b"Content-Length: 3000000000\r\n\r\n")
        began = asyncio.get_running_loop().time()
        with pytest.raises(ConnectionError):
            async with asyncio.timeout(10):
                while True:
                    await wire.send(b"x" * 1_000)
                    await asyncio.sleep(0.05)
        assert asyncio.get_running_loop().time() - began > 2.5


async def test_an_application_that_was_given_half_a_body_hears_that_it_ends(connect: Connect, service: Service) -> None:
    wire = await connect()
    await wire.send(HEAD + b"Content-Length: 500\r\n\r\n", b"x" * 100)
    await asyncio.wait_for(service.left.wait(), 3)


async def test_what_comes_after_an_early_answer_is_counted_too(connect: Connect) -> None:
    wire = await connect()
    await wire.send(CHUNKED.replace(b"POST /", b"POST /early"))
    await wire.reader.readuntil(b"0\r\n\r\n")
    sending = asyncio.create_task(wire.send(b"2711\r\n" + b"x" * 10_001 + b"\r\n"))
    assert await wire.rest(within=1) == b""
    sending.cancel()


@pytest.mark.parametrize("chunks", [1, 100])
async def test_a_large_body_arrives_as_it_was_sent(service: Service, chunks: int) -> None:
    """Though it comes faster than it is read, and is held up by both what reads it and what shares the process."""
    body = random.Random(1).randbytes(4_000_000)
    size = len(body) // chunks
    parts = [b"%x\r\n" % size + body[at : at + size] + b"\r\n" for at in range(0, len(body), size)]
    async with connecting(service, limit_request_bytes=5_000_000, read_timeout_seconds=30) as connect:
        wires = [await connect() for _ in range(3)]
        head = b"POST /digest HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n"
        await asyncio.gather(*(wire.send(head, *parts, b"0\r\n\r\n") for wire in wires))
        for wire in wires:
            assert (await wire.rest(within=30)).endswith(hashlib.sha256(body).hexdigest().encode() + b"\r\n0\r\n\r\n")


async def test_some_requests_may_be_larger_and_take_longer(service: Service) -> None:
    class Files(ClientLimits):
        def largest_body(self, method: str, path: str) -> int:
            return 40_000 if (method, path) == ("POST", "/files/a") else super().largest_body(method, path)

    async with serve(service, lifespan="off", limits=Files(**LIMITS.model_dump())) as url:
        host, port = "127.0.0.1", int(url.rpartition(":")[2])
        for path, size, status in (("/files/a?x", 40_000, 200), ("/files/a", 40_001, 413), ("/a", 10_001, 413)):
            wire = Wire(*await asyncio.open_connection(host, port))
            head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: {size}\r\n\r\n"
            await wire.send(head.encode(), b"x" * size)
            answer = await wire.rest()
            assert answer.startswith(b"HTTP/1.1 %d " % status)
            assert status == 200 or f"larger than {40_000 if 'files' in path else 10_000:,} bytes".encode() in answer
            wire.writer.close()
        wire = Wire(*await asyncio.open_connection(host, port))
        await wire.send(b"POST /files/a HTTP/1.1\r\nHost: localhost\r\nContent-Length: 30000\r\n\r\nx")
        assert refusal(await wire.rest(within=12), 408) == "The request was not whole after 6 seconds."
        wire.writer.close()


async def test_a_slow_application_is_waited_for(connect: Connect, service: Service) -> None:
    wire = await connect()
    await wire.send(b"GET /wait HTTP/1.1\r\nHost: localhost\r\n\r\n")
    await asyncio.sleep(4)
    service.go_on.set()
    assert (await wire.reader.readline()).startswith(b"HTTP/1.1 200")


async def test_who_never_reads_stops_the_stream_and_is_left(connect: Connect, service: Service) -> None:
    wire = await connect()
    await wire.send(b"GET /stream HTTP/1.1\r\nHost: localhost\r\n\r\n")
    wire.writer.transport.pause_reading()  # pyright: ignore[reportAttributeAccessIssue]
    await asyncio.sleep(0.7)
    sent = service.sent
    await asyncio.sleep(0.3)
    assert service.sent == sent, "nothing is made that nobody takes"
    assert sent < 8_000_000
    await asyncio.wait_for(service.left.wait(), 3)


async def test_who_reads_slowly_is_waited_for(connect: Connect, service: Service) -> None:
    wire = await connect()
    await wire.send(b"GET /stream HTTP/1.1\r\nHost: localhost\r\n\r\n")
    got = 0
    for _ in range(15):
        got += len(await wire.reader.readexactly(400_000))
        await asyncio.sleep(0.2)
    assert got == 6_000_000


async def test_a_new_connection_takes_the_place_of_one_that_only_waits(connect: Connect) -> None:
    silent = [await connect() for _ in range(6)]
    await silent[0].send(HEAD)
    for _ in range(3):
        wire = await connect()
        await wire.send(GET)
        assert (await wire.reader.readline()).startswith(b"HTTP/1.1 200")
    assert await silent[1].rest(within=1) == b""


async def test_a_connection_too_many_is_told_so(connect: Connect, service: Service) -> None:
    busy = [await connect() for _ in range(6)]
    for wire in busy:
        await wire.send(b"GET /wait HTTP/1.1\r\nHost: localhost\r\n\r\n")
    await asyncio.sleep(0.1)
    refused = await connect()
    answer = await refused.rest(within=1)
    assert "6 connections" in refusal(answer, 503)
    assert b"\r\nretry-after: 5\r\n" in answer
    service.go_on.set()
    assert [(await wire.reader.readline())[:12] for wire in busy] == [b"HTTP/1.1 200"] * 6
    assert len(service.seen) == 6


async def test_the_log_has_a_line_of_it_and_not_one_for_each(
    connect: Connect, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO):
        for _ in range(200):
            wire = await connect()
            await wire.send(b"nonsense\r\n\r\n")
            await wire.rest()
            wire.writer.close()
    assert [record.getMessage() for record in caplog.records] == ["400 This is not a valid HTTP request. (1 times)"]
