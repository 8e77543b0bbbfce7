"""Runs a backend with other settings in the process of the test; it uses the shared services."""

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from backend.app import create_app
from backend.model.providers import resolve
from backend.settings import BackendSettings
from backend.tools.connectors import configuration
from tests.serving import serve
from tests.support.stack import Services
from tests.support.users import User


@dataclass(frozen=True)
class Address:
    url: str


@dataclass(frozen=True)
class LocalBackend:
    """Has the attributes of a stack that `User` needs."""

    services: Services
    url: str

    @property
    def backends(self) -> list[Address]:
        return [Address(self.url)]


@asynccontextmanager
async def local_backend(
    services: Services, keep_alive_seconds: float = 15, /, **environment: str
) -> AsyncIterator[LocalBackend]:
    """Runs a backend with these environment variables changed; an empty one is not set."""
    # The test shares the event loop, so the lag of the loop says nothing about the backend.
    variables = {**services.backend_environment(), "LIMIT_LAG_SECONDS": "60", **environment}
    settings = BackendSettings.model_validate({name.lower(): value for name, value in variables.items() if value})
    servers = configuration.read_servers(settings.mcp_servers_file, os.environ) if settings.mcp_servers_file else []
    app = create_app(
        settings, resolve(settings), servers=configuration.list_enabled(servers), keep_alive_seconds=keep_alive_seconds
    )
    async with serve(app, limits=settings) as url:
        yield LocalBackend(services, url)


@asynccontextmanager
async def user_at(services: Services, user: User | None = None, /, **environment: str) -> AsyncIterator[User]:
    """Yields the user, or a new one, at a backend with these environment variables changed."""
    async with local_backend(services, **environment) as backend, User(backend, user and user.name) as there:
        yield there
