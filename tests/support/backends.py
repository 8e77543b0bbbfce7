"""Backends with settings of their own, in the process of the test, over the services that all tests share."""

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


@dataclass(frozen=True)
class Address:
    url: str


@dataclass(frozen=True)
class LocalBackend:
    """What `User` needs of a stack."""

    services: Services
    url: str

    @property
    def backends(self) -> list[Address]:
        return [Address(self.url)]


@asynccontextmanager
async def local_backend(
    services: Services, keep_alive_seconds: float = 15, /, **environment: str
) -> AsyncIterator[LocalBackend]:
    """A backend whose settings differ in these variables; an empty one is as if it were not set."""
    # The event loop is also that of the test: how late it is says nothing.
    variables = {**services.backend_environment(), "LIMIT_LAG_SECONDS": "60", **environment}
    settings = BackendSettings.model_validate({name.lower(): value for name, value in variables.items() if value})
    servers = configuration.read_servers(settings.mcp_servers_file, os.environ) if settings.mcp_servers_file else []
    app = create_app(
        settings, resolve(settings), servers=configuration.usable(servers), keep_alive_seconds=keep_alive_seconds
    )
    async with serve(app, limits=settings) as url:
        yield LocalBackend(services, url)
