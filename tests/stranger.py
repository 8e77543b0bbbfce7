"""All that somebody without a token can do to the users at once: `python -m tests.stranger BACKEND MCP SECONDS`.

The attacker is a separate process with `CONNECTIONS` connections from one address to each service, on each of which it
sends the next request as soon as it has the response. It prints how many responses of each status it got.
"""

import asyncio
import itertools
import json
import random
import re
import sys
from collections import Counter, defaultdict
from urllib.parse import urlsplit

CONNECTIONS = 250
ADDRESS = "127.0.0.2"  # of this machine, but not that of the users
_PAUSE_SECONDS = 0.05  # after a closed connection
_LENGTH = re.compile(rb"\r\ncontent-length: (\d+)", re.IGNORECASE)
_SIGN_IN = b"POST /session HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\nOrigin: %s\r\n%s\r\n"
_CALL = b"POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n%s\r\n%s"
_BACKEND_PATHS = ("/", "/metrics", "/ready", "/health", "/session", "/page.js", "/openapi.json", "/widget", "/nothing")
_MCP_PATHS = ("/metrics", "/ready", "/health", "/.well-known/oauth-protected-resource/mcp")

statuses: dict[str, Counter[str]] = defaultdict(Counter)


def _forge() -> bytes:
    return f"Authorization: Bearer {'.'.join(random.randbytes(60).hex() for _ in range(3))}\r\n".encode()


def _get(path: str, headers: bytes = b"") -> bytes:
    return b"GET %s HTTP/1.1\r\nHost: localhost\r\n%s\r\n" % (path.encode(), headers)


def _list_requests(url: str, *, is_backend: bool) -> list[tuple[str, bytes]]:
    """Returns the name and the bytes of each request, with tokens that were never sent before."""
    if not is_backend:
        call = b'{"jsonrpc": "2.0", "id": 1, "method": "tools/list"}'
        return [
            *((path, _get(path)) for path in _MCP_PATHS),
            ("refused list", _get("/list?view=all", _forge())),
            ("refused call", _CALL % (len(call), _forge(), call)),
        ]
    return [
        *((path, _get(path)) for path in _BACKEND_PATHS),
        ("refused list", _get("/tasks?view=all", _forge())),
        ("sign-in", _SIGN_IN % (url.encode(), _forge())),
    ]


async def _repeat(url: str, offset: int, *, is_backend: bool) -> None:
    address = urlsplit(url)
    while True:
        try:
            reader, writer = await asyncio.open_connection(
                address.hostname, address.port, limit=2**20, local_addr=(ADDRESS, 0)
            )
            for turn in itertools.count(offset):
                requests = _list_requests(url, is_backend=is_backend)
                name, request = requests[turn % len(requests)]
                writer.write(request)
                head = await reader.readuntil(b"\r\n\r\n")
                statuses[name][head[9:12].decode()] += 1
                if length := _LENGTH.search(head):
                    await reader.readexactly(int(length[1]))
                elif b"chunked" in head:
                    await reader.readuntil(b"0\r\n\r\n")
        except (OSError, EOFError) as error:
            statuses["connection"][type(error).__name__] += 1
            await asyncio.sleep(_PAUSE_SECONDS)


async def _attack(backend: str, mcp: str, seconds: float) -> None:
    print("started", flush=True)  # noqa: T201 - read by the test
    async with asyncio.timeout(seconds), asyncio.TaskGroup() as group:
        for offset in range(CONNECTIONS):
            group.create_task(_repeat(backend, offset, is_backend=True))
            group.create_task(_repeat(mcp, offset, is_backend=False))


def main() -> None:
    backend, mcp, seconds = sys.argv[1:]
    try:
        asyncio.run(_attack(backend, mcp, float(seconds)))
    except TimeoutError:
        print(json.dumps({name: dict(counts) for name, counts in statuses.items()}))  # noqa: T201


if __name__ == "__main__":
    main()
