"""Whose connection it is, so that at `LIMIT_CONNECTIONS` one user's make room before those of the others."""

import asyncio
import socket
import struct
from typing import Any, Protocol

from starlette.types import Scope

from common.server.address_turns import end_address_turn

BACKEND = ""
"""The owner of the backend's connections to the other services, which serve all users."""
_KEY = "todo.connection"
_DISCARD = struct.pack("ii", 1, 0)  # for SO_LINGER: closing discards what the client has not read yet


class OwnedConnection(Protocol):
    owner: str | None
    """The user of its last request; None if no request had a valid token."""
    client: tuple[str, int] | None
    """The peer, also if it is a proxy: `client` of a scope is then whom the proxy names."""
    transport: asyncio.Transport


def add_connection(scope: Scope, connection: OwnedConnection) -> None:
    """Lets `set_owner` find the connection, also where middleware has copied the scope."""
    scope[_KEY] = connection


def set_owner(scope: Scope, user_id: str) -> None:
    """Tells whose request it is, which so needs no turn of its address any more."""
    end_address_turn(scope)
    connection: Any = scope.get(_KEY)
    if connection is not None:  # not in an application that is called without a server
        connection.owner = user_id


def get_peer(scope: Scope) -> str | None:
    """Returns the address that the connection comes from; None in an application that is called without a server."""
    connection: OwnedConnection | None = scope.get(_KEY)
    return connection.client[0] if connection is not None and connection.client is not None else None


def cut_off(scope: Scope) -> None:
    """Closes the connection of a request at once, with what its client has not read yet."""
    connection: OwnedConnection | None = scope.get(_KEY)
    if connection is not None:
        connection.transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _DISCARD)
        connection.transport.abort()
