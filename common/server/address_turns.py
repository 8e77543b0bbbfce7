"""Lets the requests of one client address that are not known to be a user's be worked on a few at a time."""

from contextlib import suppress
from ipaddress import IPv6Address, ip_address

from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from common.fair_shares import FairQueue, QueueTimeout, Release, ShareExceeded

AT_ONCE = 2
_MAX_WAITING = 500  # requests of one address, as many as it may have connections by default
_WAIT_SECONDS = 10.0
_KEY = "todo.address_turn"
_SENTENCE = "Too many requests without a valid sign-in come from your address. Try again in a moment."


class AddressTurns:
    """Each request waits for a turn of its address, which ends when its user is known or its response begins.

    So one address, whatever number of connections it has, holds the event loop for `most` short steps at a time,
    between which users are served.
    """

    def __init__(self, app: ASGIApp, most: int | None) -> None:
        """`most` is None for any number."""
        self._app = app
        self._queue = FairQueue(None, most, most_waiting=_MAX_WAITING, timeout_seconds=_WAIT_SECONDS)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        try:
            release = await self._queue.take(get_network(scope["client"][0] if scope.get("client") else ""))
        except (ShareExceeded, QueueTimeout):
            response = JSONResponse({"error": _SENTENCE}, 429, {"Retry-After": "1"})
            await response(scope, receive, send)
            return

        async def send_after_turn(message: Message) -> None:
            release()  # else a client that reads slowly would keep it
            await send(message)

        try:
            await self._app({**scope, _KEY: release}, receive, send_after_turn)
        finally:
            release()


def end_address_turn(scope: Scope) -> None:
    """Ends the turn of a request whose user is known, and who has a share of their own."""
    release: Release | None = scope.get(_KEY)
    if release is not None:
        release()


def get_network(host: str) -> str:
    """Returns a client's address; of IPv6 its first half, as each client has all addresses of such a network."""
    with suppress(ValueError):
        address = ip_address(host)
        if isinstance(address, IPv6Address) and address.ipv4_mapped is None:
            return address.exploded[:19]
    return host
