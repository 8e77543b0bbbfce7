"""All that one signed-in user can do to the others at once: `python -m tests.unfair_user BACKEND MCP SECONDS`.

The attacker is a separate process. It reads the user's tokens from its input, two lines: those for the backend and
those for the MCP server, separated by blanks. It prints how many responses of each status it got for each attack.
"""

import asyncio
import json
import random
import socket
import sys
from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from itertools import count
from urllib.parse import urlsplit

import httpx2

_WORDS = " ".join(f"nowhere{number}" for number in range(20))
_JUNK = "a-" * 500
_CHAT = "attack"
_MESSAGE = "<漢字" * 2_000
_SLOW_READERS = 60  # of each token
_AT_ONCE = 24  # requests of each attack and token

statuses: dict[str, Counter[str]] = defaultdict(Counter)


class Attacker:
    def __init__(self, backend: str, mcp: str, tokens: tuple[str, str]) -> None:
        self._address = urlsplit(backend)
        self._token = tokens[0]
        self._backend, self._mcp = (
            httpx2.AsyncClient(
                base_url=url,
                headers={"Authorization": f"Bearer {token}"},
                timeout=60,
                verify=False,  # it is http
                trust_env=False,
                limits=httpx2.Limits(max_connections=200),
            )
            for url, token in zip((backend, mcp), tokens, strict=True)
        )
        self._chats = count()

    async def search_tool(self) -> httpx2.Response:
        call = {"name": "list_tasks", "arguments": {"query": _WORDS}}
        headers = {
            "accept": "application/json, text/event-stream",
            "mcp-protocol-version": "2025-06-18",
        }
        body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call}
        return await self._mcp.post("/mcp", json=body, headers=headers)

    async def search_page(self) -> httpx2.Response:
        return await self._backend.get("/tasks", params={"view": "all", "query": _WORDS[:190]})

    async def preview(self) -> httpx2.Response:
        text = random.choice((_JUNK[:100], _JUNK[:500], _JUNK))
        return await self._backend.get("/tasks/preview", params={"mode": "date", "text": text})

    async def open_conversation(self) -> httpx2.Response:
        return await self._backend.get(f"/chats/{_CHAT}", params={"limit": 100})

    async def export(self) -> httpx2.Response:
        return await self._backend.get(f"/chats/{_CHAT}/log")

    async def say(self) -> httpx2.Response:
        chat = f"attack-{id(self)}-{next(self._chats) % 50}"
        return await self._backend.post(f"/chats/{chat}/interactions", json={"user_message": _MESSAGE})

    async def forge(self) -> httpx2.Response:
        return await self._backend.get("/chats", headers={"Authorization": f"Bearer {random.random()}"})

    async def send_large_body(self) -> httpx2.Response:
        body = json.dumps({"text": "x" * 100, "rest": ["tomorrow " * 13] * 900})
        return await self._backend.post("/tasks", content=body, headers={"Content-Type": "application/json"})

    async def close(self) -> None:
        await self._backend.aclose()
        await self._mcp.aclose()

    async def prepare(self) -> None:
        for _ in range(24):
            await self._backend.post(f"/chats/{_CHAT}/interactions", json={"user_message": _MESSAGE})

    async def read_slowly(self) -> None:
        """Asks for a long response and reads a byte each second, over a small window."""
        loop = asyncio.get_running_loop()
        with socket.socket() as connection:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2_048)
            connection.setblocking(False)
            await loop.sock_connect(connection, (self._address.hostname, self._address.port))
            request = (
                f"GET /chats/{_CHAT}/log HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {self._token}\r\n\r\n"
            )
            await loop.sock_sendall(connection, request.encode())
            received = await loop.sock_recv(connection, 32)
            statuses["read_slowly"][received[9:12].decode() or "closed"] += 1
            while received:
                await asyncio.sleep(1)
                received = await loop.sock_recv(connection, 1)


async def _repeat(name: str, act: Callable[[], Awaitable[httpx2.Response | None]]) -> None:
    while True:
        try:
            response = await act()
            if response is not None:
                statuses[name][str(response.status_code)] += 1
        except (httpx2.HTTPError, OSError) as error:
            statuses[name][type(error).__name__] += 1
            await asyncio.sleep(0.2)
        else:
            await asyncio.sleep(0.01)


async def _attack(backend: str, mcp: str, tokens: Sequence[tuple[str, str]], seconds: float) -> None:
    attackers = [Attacker(backend, mcp, pair) for pair in tokens]
    await attackers[0].prepare()
    print("started", flush=True)  # noqa: T201 - read by the test
    async with AsyncExitStack() as stack, asyncio.timeout(seconds), asyncio.TaskGroup() as group:
        for one in attackers:
            stack.push_async_callback(one.close)
        for one in attackers:
            for act in (
                *(one.search_tool, one.search_page, one.preview, one.open_conversation, one.export, one.say),
                *(one.forge, one.send_large_body),
            ):
                for _ in range(_AT_ONCE):
                    group.create_task(_repeat(act.__name__, act))
            for _ in range(_SLOW_READERS):
                group.create_task(_repeat("read_slowly", one.read_slowly))


def main() -> None:
    backend, mcp, seconds = sys.argv[1:]
    pairs = zip(*(sys.stdin.readline().split() for _ in range(2)), strict=True)
    try:
        asyncio.run(_attack(backend, mcp, [*pairs], float(seconds)))
    except TimeoutError:
        print(json.dumps({name: dict(counts) for name, counts in statuses.items()}))  # noqa: T201


if __name__ == "__main__":
    main()
