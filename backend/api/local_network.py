"""With AUTH_MODE=none, serves linked devices at a private address, and nobody else there."""

import asyncio
import logging
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress

import psycopg
from starlette._utils import get_route_path
from starlette.requests import HTTPConnection
from starlette.routing import BaseRoute, Match
from starlette.types import ASGIApp, Receive, Scope, Send

from backend.accounts.links import has_local_devices
from backend.api.errors import ForeignOrigin, render_error
from backend.api.identity import DeviceNotLinked, Identity
from backend.errors import BackendError
from backend.settings import BackendSettings
from common.database import Database, DatabaseUnavailable
from common.server.edge import LOOPBACK, ForeignHost, remove_port, render_rejected
from common.server.listener import Listener
from common.server.private_address import find_private_address, render_host
from common.settings import is_loopback

logger = logging.getLogger(__name__)

_LOOK_SECONDS = 0.5
_UNUSED_LOOKS = 10  # in which a page on a phone learns that it is not linked any more, and the taking of a link ends
TAKE_LINK = "/links/take"
_OF_THIS_MACHINE = ("/health", "/ready", "/metrics")


class NoPhoneAddress(BackendError):
    """A phone cannot reach this server."""

    code, status = "no_phone_address", 409


class LocalNetwork:
    """Listens at the private address while the local user has a linked device, or a link for one.

    Each process of the backend does so by itself, as it finds in the database.
    """

    def __init__(self, app: ASGIApp, settings: BackendSettings) -> None:
        self._host, self._port = settings.device_host, settings.backend_port
        self._listener = Listener(app, settings, shared=settings.backend_workers > 1)
        self._lock = asyncio.Lock()
        self._problem = ""
        self._unused_looks = 0

    @asynccontextmanager
    async def watch(self, database: Database) -> AsyncIterator[None]:
        looking = asyncio.create_task(self._look_on(database))
        try:
            yield
        finally:
            looking.cancel()
            await self._listener.close()

    async def open(self) -> str:
        """Listens at the private address that this machine has now, and returns the URL. Raises `NoPhoneAddress`."""
        async with self._lock:
            self._unused_looks = 0
            host = find_private_address() if self._host in (None, "auto") else self._host
            if host is None:
                raise NoPhoneAddress("This computer has no private network address. Connect it to your network first.")
            if host != self._listener.host:
                try:
                    await self._listener.open(host, self._port)
                except OSError as error:
                    raise NoPhoneAddress(
                        f"Port {self._port} at {host} cannot be used ({error.strerror}). End the program that uses it, "
                        "or set BACKEND_PORT to another port or DEVICE_HOST to another address, and restart."
                    ) from None
                logger.info("linked devices are served on %s port %d", host, self._port)
            return f"http://{render_host(host)}:{self._port}"

    async def _look_on(self, database: Database) -> None:
        while True:
            with suppress(DatabaseUnavailable, psycopg.Error):  # it stays as it is
                await self._look(await has_local_devices(database))
            await asyncio.sleep(_LOOK_SECONDS)

    async def _look(self, has_devices: bool) -> None:
        if not has_devices:
            self._unused_looks += 1
            if self._unused_looks >= _UNUSED_LOOKS and self._listener.host is not None:
                async with self._lock:
                    await self._listener.close()
                logger.info("no linked devices are left: nothing listens beyond this machine")
            return
        problem = ""
        try:
            await self.open()
        except NoPhoneAddress as error:
            problem = str(error)
        if problem and problem != self._problem:
            logger.warning("linked devices cannot be served: %s", problem)
        self._problem = problem


class LinkedDevices:
    """Lets requests of other machines reach the page and the taking of a link, and, with the cookie of a linked device,
    what users may do.
    """

    def __init__(self, app: ASGIApp, *, identity: Identity, page: Sequence[BaseRoute]) -> None:
        self._app = app
        self._identity = identity
        self._page = page

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or self._identity.is_local(request := HTTPConnection(scope)):
            await self._app(scope, receive, send)
            return
        if _is_named_loopback(request):
            await render_rejected(ForeignHost())(scope, receive, send)
            return
        try:
            await self._check(request)
        except (DeviceNotLinked, ForeignOrigin) as error:
            await render_error(error)(scope, receive, send)
            return
        await self._app(scope, receive, send)

    async def _check(self, request: HTTPConnection) -> None:
        scope, path = request.scope, get_route_path(request.scope)
        if (scope["method"], path) == ("POST", TAKE_LINK):
            return
        if any(route.matches(scope)[0] is Match.FULL for route in self._page):
            return
        if path in _OF_THIS_MACHINE:
            raise DeviceNotLinked
        with suppress(DatabaseUnavailable, psycopg.Error):  # the route says so
            await self._identity.find_device(request, request.app.state.services.sessions)


def _is_named_loopback(request: HTTPConnection) -> bool:
    """Whether a request from elsewhere says that it was sent to this machine's loopback address."""
    server = request.scope.get("server")
    is_elsewhere = server is None or not is_loopback(server[0])
    return is_elsewhere and remove_port(request.headers.get("host", "").lower()) in LOOPBACK
