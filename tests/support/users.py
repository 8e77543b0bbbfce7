"""A user of a running stack, with a client for each API."""

import itertools
import os
from collections.abc import Sequence
from typing import Protocol, Self

from tests.chatkit_client import ChatKit
from tests.runs_client import Runs
from tests.support.stack import AUDIENCE, Services
from tests.tokens import IDP_SECRET, ISSUER, minted
from todo_client.page import Page

_numbers = itertools.count(1)


class HasUrl(Protocol):
    @property
    def url(self) -> str: ...


class Served(Protocol):
    """A stack, or a backend in the process of the test."""

    @property
    def services(self) -> Services: ...

    @property
    def backends(self) -> Sequence[HasUrl]: ...


class User:
    """Someone nobody else knows; `backend` says which process of the stack serves the clients."""

    def __init__(self, stack: Served, name: str | None = None, *, backend: int = 0) -> None:
        self.stack = stack
        self.name = name or f"user-{os.getpid()}-{next(_numbers)}"
        self.token = minted(IDP_SECRET, sub=self.name, iss=ISSUER, aud=AUDIENCE)
        self.url = stack.backends[backend].url
        headers = {"Authorization": f"Bearer {self.token}", "X-Time-Zone": "Europe/Berlin"}
        self.chatkit = ChatKit(self.url, headers=headers)
        self.runs = Runs(self.url, token=self.token)
        self.page = Page(self.url, token=self.token)

    @property
    def mcp_token(self) -> str:
        """For the task server, as the user's own MCP client would send it."""
        return minted(IDP_SECRET, sub=self.name, iss=ISSUER, aud=f"{self.stack.services.mcp.url}/mcp")

    def at(self, backend: int) -> "User":
        """The same user at another process."""
        return User(self.stack, self.name, backend=backend)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        for client in (self.chatkit, self.runs, self.page):
            await client.http.aclose()
