"""An HTTP server on loopback that records requests and answers with any bytes, also such as are no HTTP."""

import asyncio
import socket
import ssl
import struct
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field

Answer = Callable[["Received", asyncio.StreamWriter], Awaitable[None]]


@dataclass(frozen=True)
class Received:
    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes


def respond(status: int, *lines: str, body: bytes = b"") -> Answer:
    async def answer(_: Received, writer: asyncio.StreamWriter) -> None:
        head = "\r\n".join([f"HTTP/1.1 {status} Said", f"content-length: {len(body)}", *lines])
        writer.write(f"{head}\r\n\r\n".encode() + body)

    return answer


async def hang(_: Received, writer: asyncio.StreamWriter) -> None:
    await writer.wait_closed()


async def reset(_: Received, writer: asyncio.StreamWriter) -> None:
    connection: socket.socket = writer.get_extra_info("socket")
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()


async def close(_: Received, writer: asyncio.StreamWriter) -> None:
    writer.close()


async def dribble(_: Received, writer: asyncio.StreamWriter) -> None:
    """Sends a head that never ends, a character at a time."""
    writer.write(b"HTTP/1.1 201 Created\r\nx: ")
    while not writer.is_closing():
        writer.write(b"x")
        await writer.drain()
        await asyncio.sleep(0.01)


async def announce(_: Received, writer: asyncio.StreamWriter) -> None:
    """Sends interim answers without end."""
    while not writer.is_closing():
        writer.write(b"HTTP/1.1 103 Early Hints\r\n\r\n")
        await writer.drain()


async def send_endless_body(_: Received, writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 201 Created\r\ntransfer-encoding: chunked\r\n\r\n")
    while not writer.is_closing():
        writer.write(b"10000\r\n" + b"x" * 0x10000 + b"\r\n")
        await writer.drain()


async def send_huge_headers(_: Received, writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 201 Created\r\n")
    for number in range(10_000):
        writer.write(b"x-%d: " % number + b"x" * 1_000 + b"\r\n")
        await writer.drain()


async def send_no_http(_: Received, writer: asyncio.StreamWriter) -> None:
    writer.write(b"220 mail.example ESMTP\r\n" * 10)
    writer.close()


@dataclass
class HttpServer:
    port: int = 0
    answer: Answer = field(default_factory=lambda: respond(201))
    received: list[Received] = field(default_factory=list)

    @property
    def origin(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    async def handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError, asyncio.IncompleteReadError):
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
            first, *lines = head.split("\r\n")[:-2]
            method, path, _ = first.split(" ")
            headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines)}
            body = await reader.readexactly(int(headers.get("content-length", "0")))
            self.received.append(Received(method, path, headers, body))
            await self.answer(self.received[-1], writer)
            await writer.drain()
            writer.close()
            await writer.wait_closed()


@asynccontextmanager
async def serve_http(tls: ssl.SSLContext | None = None) -> AsyncIterator[HttpServer]:
    server = HttpServer()
    connections = set[asyncio.Task[None]]()

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        connections.add(task)
        try:
            await server.handle(reader, writer)
        finally:
            writer.transport.abort()
            connections.discard(task)

    listener = await asyncio.start_server(handle, "127.0.0.1", 0, ssl=tls)
    server.port = listener.sockets[0].getsockname()[1]
    try:
        yield server
    finally:
        listener.close()
        for task in [*connections]:
            task.cancel()
        await asyncio.gather(*connections, return_exceptions=True)
        await asyncio.sleep(0)  # the event loop closes what was aborted
