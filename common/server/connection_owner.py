"""Whose connection it is, so that at `LIMIT_CONNECTIONS` one user's make room before those of the others."""

from typing import Any, Protocol

from starlette.types import Scope

from common.server.address_turns import end_address_turn

BACKEND = ""
"""The owner of the backend's connections to the other services, which serve all users."""
_KEY = "todo.connection"


class OwnedConnection(Protocol):
    owner: str | None
    """The user of its last request; None if no request had a valid token."""


def add_connection(scope: Scope, connection: OwnedConnection) -> None:
    """Lets `set_owner` find the connection, also where middleware has copied the scope."""
    scope[_KEY] = connection


def set_owner(scope: Scope, user_id: str) -> None:
    """Tells whose request it is, which so needs no turn of its address any more."""
    end_address_turn(scope)
    connection: Any = scope.get(_KEY)
    if connection is not None:  # not in an application that is called without a server
        connection.owner = user_id
