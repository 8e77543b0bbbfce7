"""Denial-of-service attacks on a port: `python -m tests.abuse SERVICE NAME PORT SECONDS [tls]`.

The attacker is a separate process, so that its own processor time is not part of the measurement.
"""

import json
import os
import socket
import ssl
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import count, cycle, repeat

CONNECTIONS = 30
MEGABYTE = 1_000_000
HOST = b"Host: localhost\r\n"
POST = (
    b"POST %b HTTP/1.1\r\n"
    + HOST
    + b"Accept: application/json, text/event-stream\r\nContent-Type: application/json\r\n"
)
GET = b"GET /health HTTP/1.1\r\n" + HOST + b"\r\n"
PATHS = {"backend": b"/chatkit", "mcp_server": b"/mcp", "offline_model": b"/v1/chat/completions"}

EACH_BODY = "a body of each kind"
BODY_SIZE = 128_000  # bytes; the whole request is then nearly as large as is allowed
Pieces = Iterator[bytes]
"""The bytes to send over one connection; they are sent again when it is closed."""


def nested(depth: int) -> bytes:
    return b"[" * depth + b"]" * depth


def render_body(path: bytes, value: bytes) -> bytes:
    """Returns a body that the service parses completely, with this JSON value in a field that accepts any."""
    if path == b"/mcp":
        call = b'{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "add_task", "arguments": %b}}'
        value = b'{"x": %b}' % value
    elif path == b"/chatkit":
        call = (
            b'{"type": "threads.create", "params": {"input": {"content": [{"type": "input_tag", "id": "i", "text": "t",'
            b'"data": {"x": %b}}], "attachments": [], "inference_options": {}}}}'
        )
    else:
        call = b'{"model": "m", "messages": [{"role": "user", "content": "hi"}], "x": %b}'
    return call % value


def render_request(path: bytes, value: bytes) -> bytes:
    body = render_body(path, value)
    return POST % path + b"Content-Length: %d\r\n\r\n" % len(body) + body


def create_values(size: int) -> dict[str, bytes]:
    """Returns JSON values of nearly this size that are slow to parse for different reasons."""
    return {
        "one text": b'"' + b"x" * size + b'"',
        "escapes": b'"' + b"\\u00e9" * (size // 6) + b'"',
        "escaped NULs": b'"' + b"\\\\u0000" * (size // 8) + b'"',
        "numbers": b"[" + b"1," * (size // 2) + b"1]",
        "empty lists": b"[" + b"[]," * (size // 3) + b"[]]",
        "empty objects": b"[" + b"{}," * (size // 3) + b"{}]",
        "short names": b"{" + b",".join(b'"%x":1' % n for n in range(size // 9)) + b"}",
        "digits": b"1" * 4000 + b"." + b"1" * (size - 4001),
        "a whole number": b"1" * size,
        "depth": nested(size // 2),
        "some depth": b"[" + b",".join(repeat(nested(100), size // 201)) + b"]",
    }


_connection_numbers = count()


def bodies_of_each_kind(path: bytes) -> Pieces:
    """Sends all kinds of values one after the other; each connection starts with a different one."""
    requests = deque(render_request(path, value) for value in create_values(BODY_SIZE).values())
    requests.rotate(next(_connection_numbers))
    return cycle(requests)


ABUSES: dict[str, Callable[[bytes], Pieces]] = {
    "a header line without end": lambda path: iter([POST % path + b"X: ", *repeat(b"a" * MEGABYTE, 150)]),
    "an address without end": lambda path: iter([b"GET /", *repeat(b"a" * MEGABYTE, 150)]),
    "headers without end": lambda path: iter([POST % path, *repeat(b"X: y\r\n" * 100_000, 100)]),
    "cookies": lambda path: iter([GET[:-2] + b"Cookie: " + b"a=b; " * 6_000 + b"\r\n\r\n"] * 1000),
    "a query of many parts": lambda path: iter([GET.replace(b"health", b"health?" + b"a=b&" * 9_000)] * 1000),
    "a body without end": lambda path: iter(
        [POST % path + b"Transfer-Encoding: chunked\r\n\r\n", *repeat(b"f4240\r\n" + b" " * MEGABYTE + b"\r\n", 150)]
    ),
    "chunks of one byte": lambda path: iter(
        [POST % path + b"Transfer-Encoding: chunked\r\n\r\n", *repeat(b"1\r\n \r\n" * 100_000, 100)]
    ),
    "trailers": lambda path: iter(
        [POST % path + b"Transfer-Encoding: chunked\r\n\r\n0\r\n", *repeat(b"X: y\r\n" * 100_000, 100)]
    ),
    "requests that wait for no answer": lambda path: repeat(GET * 10_000),
    "nonsense": lambda path: repeat(b"\x00" * MEGABYTE),
    "silence": lambda path: iter([]),
    "half a head": lambda path: iter([POST % path]),
    "half a body": lambda path: iter([POST % path + b"Content-Length: 130000\r\n\r\n" + b" " * 120_000]),
    "a body that is announced": lambda path: iter([POST % path + b"Content-Length: 9\r\nExpect: 100-continue\r\n\r\n"]),
    "answers that nobody reads": lambda path: repeat(GET.replace(b"/health", b"/metrics") * 2),
    "invented paths": lambda path: (GET.replace(b"health", b"invented/%d" % n) for n in range(10**9)),
    EACH_BODY: bodies_of_each_kind,
}


def connect(port: int, *, tls: bool) -> socket.socket:
    connection = socket.create_connection(("127.0.0.1", port))
    if tls:
        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        connection = context.wrap_socket(connection)
    connection.setblocking(False)
    return connection


def attack(service: str, name: str, port: int, seconds: float, *, tls: bool = False) -> dict[str, int]:
    """Attacks over many connections, which are reopened when they are closed; returns counts."""
    end = time.monotonic() + seconds
    opened = sent = served = 0
    connections: dict[socket.socket, tuple[Pieces, memoryview]] = {}
    # With complete bodies, each response is awaited; otherwise the service would soon stop reading.
    awaiting_response: set[socket.socket] = set()
    reads = "nobody reads" not in name
    while time.monotonic() < end:
        while len(connections) < CONNECTIONS:
            connection = connect(port, tls=tls)
            connections[connection] = (ABUSES[name](PATHS[service]), memoryview(b""))
            opened += 1
        idle = True
        for connection, (pieces, rest) in tuple(connections.items()):
            try:
                with suppress(BlockingIOError, ssl.SSLWantReadError):
                    while reads:
                        if not (response := connection.recv(65536)):
                            raise ConnectionResetError
                        served += response.count(b"HTTP/1.1 200")
                        awaiting_response.discard(connection)
                        idle = False
                if not rest and connection not in awaiting_response:
                    rest = memoryview(next(pieces, b""))
                    if name == EACH_BODY:
                        awaiting_response.add(connection)
                if rest:
                    size = connection.send(rest)
                    connections[connection] = (pieces, rest[size:])
                    sent += size
                    idle = False
            except (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError):
                connections[connection] = (pieces, rest)
            except OSError:
                connection.close()
                awaiting_response.discard(connection)
                del connections[connection]
                idle = False
        if idle:
            time.sleep(0.005)
    return {"opened": opened, "megabytes": sent // MEGABYTE, "served": served}


if __name__ == "__main__":
    os.nice(19)  # a real attacker would not use the processor of this machine
    print("started", flush=True)  # noqa: T201
    service, name, port, seconds, *tls = sys.argv[1:]
    print(json.dumps(attack(service, name, int(port), float(seconds), tls=bool(tls))))  # noqa: T201
