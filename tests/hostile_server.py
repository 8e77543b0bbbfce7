"""MCP servers that send too much: `python -m tests.hostile_server KIND` over standard output, or `PORT` over HTTP.

Over HTTP the kind is the path.
"""

import asyncio
import gzip
import itertools
import json
import sys
from collections.abc import Callable, Iterable, Iterator
from typing import Any

Json = dict[str, Any]
Chunks = Iterable[bytes]

MEGABYTE = b"x" * 1_000_000
HUGE = 500  # megabytes
TOOL: Json = {"name": "say", "description": "Says it.", "inputSchema": {"type": "object"}}


def _dump(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()


def _answer(message: Json, result: bytes = b"") -> bytes:
    return b'{"jsonrpc":"2.0","id":%s,"result":%s}' % (_dump(message["id"]), result or _dump(_results(message)))


def _results(message: Json) -> Json:
    match message["method"]:
        case "initialize":
            capabilities = {"tools": {}}
            server = {"name": "hostile", "version": "1"}
            return {"protocolVersion": "2025-06-18", "capabilities": capabilities, "serverInfo": server}
        case "tools/call":
            return {"content": [{"type": "text", "text": "said"}]}
        case _:
            return {"tools": [TOOL]}


def _around(message: Json, head: bytes, middle: Chunks, tail: bytes) -> Iterator[bytes]:
    """Yields an answer whose result has something long in the middle."""
    yield b'{"jsonrpc":"2.0","id":%s,"result":%s' % (_dump(message["id"]), head)
    yield from middle
    yield tail + b"}"


def _in_description(message: Json, middle: Chunks) -> Iterator[bytes]:
    head = b'{"tools":[{"name":"say","inputSchema":{"type":"object"},"description":"'
    return _around(message, head, middle, b'"}]}')


def _in_tool(message: Json, middle: Chunks) -> Iterator[bytes]:
    return _around(message, b'{"tools":[{"name":"say","inputSchema":{"type":"object"},', middle, b"}]}")


def _list_many(message: Json, count: int) -> Iterator[bytes]:
    tools = (b'{"name":"t%d","inputSchema":{"type":"object"}},' % number for number in range(count))
    return _around(message, b'{"tools":[', tools, _dump(TOOL) + b"]}")


def _page(message: Json) -> Iterator[bytes]:
    yield _answer(message, _dump({"tools": [TOOL], "nextCursor": f"after {message['id']}"}))


def _notify(method: str, count: int = 1_000_000) -> Iterator[bytes]:
    params = {"progressToken": 1, "progress": 1, "level": "info", "data": "x" * 20}
    line = _dump({"jsonrpc": "2.0", "method": method, "params": params}) + b"\n"
    return itertools.repeat(line, count)


LISTS: dict[str, Callable[[Json], Chunks]] = {
    "long description": lambda message: _in_description(message, itertools.repeat(MEGABYTE, HUGE)),
    "description without end": lambda message: _in_description(message, itertools.repeat(MEGABYTE)),
    "escaped description": lambda message: _in_description(message, itertools.repeat(b"\\u00e9" * 10_000, 10_000)),
    "100,000 tools": lambda message: _list_many(message, 100_000),
    "2,000 tools": lambda message: _list_many(message, 2_000),
    "pages without end": _page,
    "deep": lambda message: _in_tool(message, [b'"annotations":' + b"[" * 1_000_000]),
    "many lists": lambda message: _in_tool(message, [b'"_meta":{"a":[', b"[]," * 300_000, b"1]}"]),
    "numbers": lambda message: _in_tool(message, [b'"_meta":{"a":[', b"1," * 450_000, b"1]}"]),
    "icons": lambda message: _in_tool(message, [b'"icons":[', b"{}," * 15_000, b"{}]"]),
    "progress": lambda message: _notify("notifications/progress"),
    "logging": lambda message: _notify("notifications/message"),
}
"""What is sent for the list of tools; each is a line, or several."""
RESULTS: dict[str, Callable[[Json], Chunks]] = {
    "long result": lambda message: _around(
        message, b'{"content":[{"type":"text","text":"', itertools.repeat(MEGABYTE, HUGE), b'"}]}'
    ),
    "many parts": lambda message: _around(
        message, b'{"content":[', [b'{"type":"text","text":""},' * 15_000], b'{"type":"text","text":""}]}'
    ),
    "structured": lambda message: _around(
        message, b'{"content":[],"structuredContent":{"a":[', [b"[]," * 600_000], b"1]}}"
    ),
}
GREETINGS: dict[str, Callable[[Json], Chunks]] = {
    "long instructions": lambda message: _around(
        message,
        _dump(_results(message))[:-1] + b',"instructions":"',
        itertools.repeat(MEGABYTE, HUGE),
        b'"}',
    )
}
OVER_HTTP = ("comments", "gzip", "headers", "interim answers", "redirects", "listening", "events")
OVER_PIPES = ("errors", "blank lines", "no messages")


def _respond(kind: str, message: Json) -> Chunks:
    behaviours = {"tools/list": LISTS, "tools/call": RESULTS, "initialize": GREETINGS}
    if (behave := behaviours.get(message["method"], {}).get(kind)) is not None:
        return behave(message)
    if message["method"] == "server/discover":
        error = {"code": -32601, "message": "Method not found"}
        return [_dump({"jsonrpc": "2.0", "id": message["id"], "error": error})]
    return [_answer(message)]


def speak_over_pipes(kind: str) -> None:
    for line in sys.stdin.buffer:
        message = json.loads(line)
        if "id" not in message:
            continue
        if message["method"] == "tools/list" and kind in OVER_PIPES:
            stream = sys.stderr.buffer if kind == "errors" else sys.stdout.buffer
            text = {"errors": b"an error\n", "blank lines": b"\n", "no messages": b"{]\n"}[kind]
            for _ in range(5 if kind == "errors" else 1):
                stream.write(text * 1_000_000)
            stream.flush()
        for chunk in _respond(kind, message):
            sys.stdout.buffer.write(chunk)
        sys.stdout.buffer.write(b"\n")
        sys.stdout.buffer.flush()


async def speak_over_http(port: int) -> None:
    server = await asyncio.start_server(_serve, "127.0.0.1", port)
    async with server:
        await server.serve_forever()


async def _serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while True:
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
            line, _, rest = head.partition("\r\n")
            method, path, _ = line.split(" ")
            headers = dict(one.lower().split(": ", 1) for one in rest.strip().split("\r\n"))
            body = await reader.readexactly(int(headers.get("content-length", 0)))
            await _respond_over_http(writer, method, path, json.loads(body) if body else {})
    except (asyncio.IncompleteReadError, ConnectionError):
        writer.close()


async def _respond_over_http(writer: asyncio.StreamWriter, method: str, path: str, message: Json) -> None:
    kind = path.removeprefix("/").replace("%20", " ")
    is_list = message.get("method") == "tools/list"
    if method == "GET" and kind == "listening":
        await _send(writer, "text/event-stream", _notify_as_events(10_000_000))
    elif method != "POST":
        await _send_head(writer, "405 Method Not Allowed", {"content-length": "0"})
    elif "id" not in message:
        await _send_head(writer, "202 Accepted", {"content-length": "0"})
    elif is_list and kind in OVER_HTTP:
        await _send_special(writer, kind, path, message)
    elif kind in ("progress", "logging") and is_list:
        events = (b"data: " + line + b"\n" for line in _respond(kind, message))
        await _send(writer, "text/event-stream", events)
    else:
        await _send(writer, "application/json", _respond(kind, message))


async def _send_special(writer: asyncio.StreamWriter, kind: str, path: str, message: Json) -> None:
    match kind:
        case "comments":
            await _send(writer, "text/event-stream", itertools.repeat(b":\n" * 10_000))
        case "events":
            await _send(writer, "text/event-stream", itertools.repeat(b"data:\n\n" * 10_000))
        case "gzip":
            bomb = gzip.compress(b"".join(_in_description(message, [MEGABYTE * 200])))
            await _send(writer, "application/json", [bomb], **{"content-encoding": "gzip"})
        case "headers":
            writer.write(b"HTTP/1.1 200 OK\r\n")
            for number in itertools.count():
                await _write(writer, b"X-%d: %s\r\n" % (number, MEGABYTE[:1_000]))
        case "interim answers":
            while True:
                await _write(writer, b"HTTP/1.1 103 Early Hints\r\n\r\n" * 10_000)
        case "redirects":
            await _send_head(writer, "307 Temporary Redirect", {"location": path, "content-length": "1000000"})
            writer.write(MEGABYTE)
            await writer.drain()
        case _:
            await _send(writer, "application/json", [_answer(message)])


def _notify_as_events(count: int) -> Iterator[bytes]:
    return (b"data: " + line + b"\n" for line in _notify("notifications/message", count))


async def _write(writer: asyncio.StreamWriter, data: bytes) -> None:
    if writer.transport.is_closing():
        raise ConnectionResetError
    writer.write(data)
    if writer.transport.get_write_buffer_size() > 65_536:
        await writer.drain()


async def _send_head(writer: asyncio.StreamWriter, status: str, headers: dict[str, str]) -> None:
    lines = [f"HTTP/1.1 {status}", *(f"{name}: {value}" for name, value in headers.items()), "", ""]
    writer.write("\r\n".join(lines).encode())
    await writer.drain()


async def _send(writer: asyncio.StreamWriter, content_type: str, chunks: Chunks, **headers: str) -> None:
    """Sends a body in chunks: all small ones of a moment in one."""
    sent = {"content-type": content_type, "transfer-encoding": "chunked", "mcp-session-id": "one", **headers}
    await _send_head(writer, "200 OK", sent)
    for chunk in chunks:
        await _write(writer, b"%x\r\n%s\r\n" % (len(chunk), chunk))
    writer.write(b"0\r\n\r\n")
    await writer.drain()


if __name__ == "__main__":
    if sys.argv[1].isdigit():
        asyncio.run(speak_over_http(int(sys.argv[1])))
    else:
        speak_over_pipes(sys.argv[1])
