"""A server that answers each POST with bytes of our choice, over real sockets."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

EVENTS = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream; charset=utf-8\r\nTransfer-Encoding: chunked\r\n\r\n"
END = b"0\r\n\r\n"


@dataclass
class Server:
    url: str = ""
    heads: list[str] = field(default_factory=list)
    bodies: list[Any] = field(default_factory=list)
    left: asyncio.Event = field(default_factory=asyncio.Event)
    """The client closed the connection, or the answer was at its end."""


def chunk(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data)


def whole(status: int, body: bytes, kind: str = "application/json") -> bytes:
    return b"HTTP/1.1 %d X\r\nContent-Type: %b\r\nContent-Length: %d\r\n\r\n%b" % (
        status,
        kind.encode(),
        len(body),
        body,
    )


@asynccontextmanager
async def answering(*pieces: bytes, closes: bool = True) -> AsyncIterator[Server]:
    """Send these pieces as an answer; then close the connection, or wait for the client to do so."""
    server = Server()
    asked: set[asyncio.Task[None]] = set()

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        length = int(head.lower().partition("content-length: ")[2].partition("\r\n")[0])
        server.heads.append(head)
        server.bodies.append(json.loads(await reader.readexactly(length)))
        for piece in pieces:
            writer.write(piece)
            await writer.drain()
        if not closes:
            await reader.read()
        writer.close()
        await writer.wait_closed()
        server.left.set()

    def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked.add(asyncio.create_task(answer(reader, writer)))

    listening = await asyncio.start_server(connected, "127.0.0.1", 0)
    async with listening:
        server.url = f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}"
        yield server
    await asyncio.gather(*asked)
