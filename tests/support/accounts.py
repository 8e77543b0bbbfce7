"""Users with accounts at services in AUTH_MODE=password, signed in without the form, and their passwords."""

import itertools
import os
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from argon2 import PasswordHasher

from tests.processes import ServiceProcess
from tests.support.stack import CLOCK, Services
from tests.support.stored import Stored
from tests.tokens import MCP_TOKEN_SECRET, OWN_ISSUER, mint_token

PASSWORD = "correct horse battery"
_HASHER = PasswordHasher(time_cost=3, memory_cost=65_536, parallelism=1)
_numbers = itertools.count(1)


@cache
def hash_password(password: str) -> str:
    """Returns a hash as the backend makes it."""
    return _HASHER.hash(password)


@dataclass(frozen=True)
class AccountStack:
    """A backend and an MCP server where users have accounts."""

    backend: ServiceProcess
    mcp: ServiceProcess

    @property
    def url(self) -> str:
        return self.backend.url

    @property
    def resource(self) -> str:
        return f"{self.mcp.url}/mcp"


@contextmanager
def run_account_stack(services: Services, directory: Path, **environment: str) -> Iterator[AccountStack]:
    sign_in = {"AUTH_MODE": "password", "MCP_TOKEN_SECRET": MCP_TOKEN_SECRET, **CLOCK}
    shared = {"DATABASE_URL": services.database_url, **sign_in}
    mcp = ServiceProcess("mcp_server", "MCP_PORT", directory / "mcp.log", **shared)
    others = {name: value for name, value in services.backend_environment().items() if not name.startswith("AUTH_")}
    backend = ServiceProcess("backend", "BACKEND_PORT", directory / "backend.log", **others | shared | environment)
    for service in (mcp, backend):
        service.environment |= {"BACKEND_URL": backend.url, "MCP_URL": f"{mcp.url}/mcp", **environment}
    with ExitStack() as cleanup:
        for service in (mcp, backend):
            service.start()
            cleanup.callback(service.end)
        for service in (mcp, backend):
            service.wait_until_ready()
        yield AccountStack(backend, mcp)


def new_name() -> str:
    return f"account-{os.getpid()}-{next(_numbers)}"


def sign_in(stored: Stored, user: str) -> str:
    """Inserts a session of the user and returns the page's cookie for it, as `Identity.create_cookie` makes it."""
    session_id = f"session-of-{user}-{next(_numbers)}"
    stored.add_session(user, session_id)
    expires = int(time.time()) + 3_600
    claims = {"sub": user, "iss": OWN_ISSUER, "aud": "todo-assistant/session", "exp": expires}
    return f"todo_session={mint_token(MCP_TOKEN_SECRET, **claims, jti=session_id, scope='all')}"
