"""A user of a running stack, with a client for each API."""

import itertools
import os
from collections.abc import Sequence
from typing import Any, Protocol, Self

from tests.chatkit_client import ChatKit
from tests.runs_client import Runs
from tests.support.stack import AUDIENCE, Services
from tests.tokens import IDP_SECRET, ISSUER, mint_token
from tests.waiting import until

_numbers = itertools.count(1)


class HasUrl(Protocol):
    @property
    def url(self) -> str: ...


class HasBackends(Protocol):
    """A stack or a local backend."""

    @property
    def services(self) -> Services: ...

    @property
    def backends(self) -> Sequence[HasUrl]: ...


class User:
    """A user with a client for each API; `backend` is the index of the backend that they use."""

    def __init__(self, stack: HasBackends, name: str | None = None, *, backend: int = 0) -> None:
        self.stack = stack
        self.name = name or f"user-{os.getpid()}-{next(_numbers)}"
        self.token = self.mint_token()
        self.url = stack.backends[backend].url
        headers = {"Authorization": f"Bearer {self.token}", "X-Time-Zone": "Europe/Berlin"}
        self.chatkit = ChatKit(self.url, headers=headers)
        self.runs = Runs(self.url, token=self.token)

    def mint_token(self, **claims: Any) -> str:
        """Creates an access token for the backend, with other claims if some are given."""
        return mint_token(IDP_SECRET, **{"sub": self.name, "iss": ISSUER, "aud": AUDIENCE, **claims})

    @property
    def mcp_token(self) -> str:
        """An access token for the MCP server, as the user's MCP client would send it."""
        return mint_token(IDP_SECRET, sub=self.name, iss=ISSUER, aud=f"{self.stack.services.mcp.url}/mcp")

    def at(self, backend: int) -> "User":
        """Returns the same user with clients of another backend."""
        return User(self.stack, self.name, backend=backend)

    async def wait_for_file(self, chat: str, path: str) -> None:
        async def is_there() -> bool:
            return (await self.runs.http.get(f"/chats/{chat}/files/{path}")).status_code == 200

        await until(is_there)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        for client in (self.chatkit, self.runs):
            await client.http.aclose()
