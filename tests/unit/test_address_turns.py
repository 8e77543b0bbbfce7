"""Requests of one client address of which no user is known wait for each other."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from starlette.types import Message, Receive, Scope, Send

from common.server.address_turns import AT_ONCE, AddressTurns
from common.server.connection_owner import set_owner

Begun = list[str]


async def pass_loop() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


class Server:
    """Sends `steps` of each request's path, then waits until `finish` is set; knows which requests have begun."""

    def __init__(self, most: int | None = AT_ONCE) -> None:
        self.begun, self.statuses, self.finish = Begun(), list[int](), asyncio.Event()
        self._turns = AddressTurns(self._respond, most)

    async def _respond(self, scope: Scope, _: Receive, send: Send) -> None:
        self.begun.append(scope["client"][0])
        if scope["path"] == "/known":
            set_owner(scope, "alice")
        if scope["path"] == "/begun":
            await send({"type": "http.response.start", "status": 200, "headers": []})
        await self.finish.wait()

    async def request(self, address: str, path: str = "/") -> None:
        async def receive() -> Message:
            raise AssertionError

        async def send(message: Message) -> None:
            if message["type"] == "http.response.start":
                self.statuses.append(message["status"])

        await self._turns({"type": "http", "path": path, "client": (address, 1)}, receive, send)


@pytest.fixture
async def requests() -> Any:
    async with asyncio.TaskGroup() as group:
        servers: list[Server] = []

        def start(server: Server, *sent: tuple[str, str]) -> None:
            servers.append(server)
            for address, path in sent:
                group.create_task(server.request(address, path))

        yield start
        for server in servers:
            server.finish.set()


Start = Callable[..., None]


async def test_only_some_of_an_address_are_worked_on_at_once(requests: Start) -> None:
    server = Server()
    requests(server, *[("192.0.2.1", "/")] * 5, ("192.0.2.2", "/"))
    await pass_loop()
    assert server.begun == ["192.0.2.1"] * AT_ONCE + ["192.0.2.2"]
    server.finish.set()
    await pass_loop()
    assert server.begun.count("192.0.2.1") == 5


@pytest.mark.parametrize("path", ["/known", "/begun"])
async def test_a_turn_ends_when_the_user_is_known_or_the_response_begins(requests: Start, path: str) -> None:
    server = Server()
    requests(server, *[("192.0.2.1", path)] * 5)
    await pass_loop()
    assert len(server.begun) == 5


async def test_ipv6_addresses_of_one_network_share(requests: Start) -> None:
    server = Server()
    near = [(f"2001:db8::{n}", "/") for n in range(1, 5)]
    requests(server, *near, ("2001:db8:0:1::1", "/"), ("::ffff:192.0.2.1", "/"))
    await pass_loop()
    assert server.begun == [address for address, _ in near[:AT_ONCE]] + ["2001:db8:0:1::1", "::ffff:192.0.2.1"]


async def test_without_a_limit_nobody_waits(requests: Start) -> None:
    server = Server(None)
    requests(server, *[("192.0.2.1", "/")] * 50)
    await pass_loop()
    assert len(server.begun) == 50


async def test_too_many_that_wait_are_rejected(requests: Start) -> None:
    server = Server()
    requests(server, *[("192.0.2.1", "/")] * (AT_ONCE + 501))
    await pass_loop()
    assert server.statuses == [429]
