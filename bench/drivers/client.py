"""An HTTP client that costs the measuring side as little as possible: no parsing beyond where an answer ends."""

import asyncio
import json
import time
from collections.abc import Mapping
from typing import Any

from bench.drivers.load import Timing


class Answer(Exception):
    """What was not expected."""


class _Exchange(asyncio.Protocol):
    """One request at a time on one connection."""

    def connection_made(self, transport: Any) -> None:
        self.transport: asyncio.Transport = transport
        self.done: asyncio.Future[None] | None = None
        self.event = asyncio.Event()

    def begin(self, request: bytes) -> asyncio.Future[None]:
        self.received = bytearray()
        self.body_at = self.length = 0
        self.first = 0.0
        self.event.clear()
        self.done = asyncio.get_running_loop().create_future()
        self.transport.write(request)
        return self.done

    def data_received(self, data: bytes) -> None:
        self.received += data
        if not self.body_at and not self._read_head():
            return
        if not self.first and len(self.received) > self.body_at:
            self.first = time.perf_counter()
            self.event.set()
        size = len(self.received) - self.body_at
        complete = size >= self.length if self.length else self.received.endswith(b"0\r\n\r\n")
        if complete and self.done and not self.done.done():
            self.done.set_result(None)

    def _read_head(self) -> bool:
        end = self.received.find(b"\r\n\r\n")
        if end < 0:
            return False
        self.body_at = end + 4
        head = bytes(self.received[:end]).lower()
        if b"content-length: " in head:
            self.length = int(head.partition(b"content-length: ")[2].partition(b"\r\n")[0])
        return True

    def connection_lost(self, exc: Exception | None) -> None:
        if self.done and not self.done.done():
            self.done.set_exception(Answer("the connection was closed in the middle of an answer"))


class Client:
    """Keeps as many connections to one server as there were calls at once."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._idle: list[_Exchange] = []

    async def post(self, path: str, body: Any, headers: Mapping[str, str] | None = None) -> tuple[Timing, bytes]:
        """The timing and the body as it came, chunked or not; raises `Answer` when it is not a 200."""
        return await self._done(_request("POST", path, body, headers or {}))

    async def _done(self, request: bytes) -> tuple[Timing, bytes]:
        exchange = await self._connection()
        began = time.perf_counter()
        await exchange.begin(request)
        ended = time.perf_counter()
        self._idle.append(exchange)
        if not exchange.received.startswith(b"HTTP/1.1 200"):
            raise Answer(exchange.received[:500].decode(errors="replace"))
        timing = Timing(exchange.first - began, ended - began)
        return timing, bytes(exchange.received[exchange.body_at :])

    async def get(self, path: str, headers: Mapping[str, str] | None = None) -> tuple[Timing, bytes]:
        """As `post`."""
        return await self._done(_request("GET", path, None, headers or {}))

    async def glance(
        self, method: str, path: str, body: Any = None, headers: Mapping[str, str] | None = None
    ) -> tuple[Timing, bytes]:
        """What comes first of an answer that goes on; then the connection is closed."""
        exchange = await self._connection()
        began = time.perf_counter()
        done = exchange.begin(_request(method, path, body, headers or {}))
        done.add_done_callback(lambda done: done.cancelled() or done.exception())
        await exchange.event.wait()
        exchange.transport.abort()
        if not exchange.received.startswith(b"HTTP/1.1 200"):
            raise Answer(exchange.received[:500].decode(errors="replace"))
        first = exchange.first - began
        return Timing(first, first), bytes(exchange.received[exchange.body_at :])

    async def hold(self, path: str, body: Any) -> asyncio.Future[None]:
        """Returns when the answer has begun, with what tells of its end."""
        exchange = await self._connection()
        done = exchange.begin(_request("POST", path, body, {}))
        await exchange.event.wait()
        return done

    async def open(self, count: int) -> None:
        """Make idle connections that have had one answer each."""
        exchanges = [await self._connection() for _ in range(count)]
        for exchange in exchanges:
            await exchange.begin(b"GET /health HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n")
        self._idle += exchanges

    def close(self) -> None:
        while self._idle:
            self._idle.pop().transport.close()

    async def _connection(self) -> _Exchange:
        while self._idle:
            if not (exchange := self._idle.pop()).transport.is_closing():
                return exchange
        loop = asyncio.get_running_loop()
        _, exchange = await loop.create_connection(_Exchange, "127.0.0.1", self._port)
        return exchange


def _request(method: str, path: str, body: Any, headers: Mapping[str, str]) -> bytes:
    content = b"" if body is None else json.dumps(body).encode()
    of_body = {"content-type": "application/json", "content-length": len(content)} if content else {}
    fields = {"host": "127.0.0.1", **of_body, **headers}
    head = "".join(f"{name}: {value}\r\n" for name, value in fields.items())
    return f"{method} {path} HTTP/1.1\r\n{head}\r\n".encode() + content
