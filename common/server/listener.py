"""A further address at which a process that already serves listens, and which can be closed while it goes on."""

import asyncio
from email.utils import formatdate
from typing import Any

from starlette.types import ASGIApp
from uvicorn.server import ServerState

from common.server.limits import ClientLimits
from common.server.serving import bind, create_config

_GRACE_SECONDS = 1.0


class Listener:
    """It has connections of its own, so that its clients cannot use up those of the first address.

    No proxy is trusted here: nothing but the connection says where a request comes from.
    """

    def __init__(self, app: ASGIApp, limits: ClientLimits, *, shared: bool) -> None:
        """`shared`: several processes listen at the same address, each by itself."""
        self._config = create_config(lambda: app, limits, grace_seconds=1, trusted_proxies=(), lifespan="off")
        self._shared = shared
        self._server: asyncio.Server | None = None
        self._state = ServerState()
        self.host: str | None = None
        """The address while it is open."""

    async def open(self, host: str, port: int) -> None:
        """Begins to listen there, and nowhere else. Raises `OSError`."""
        await self.close()
        if not self._config.loaded:
            self._config.load()
        socket = bind(host, port, shared=self._shared)
        try:
            self._server = await asyncio.get_running_loop().create_server(self._create_connection, sock=socket)
        except OSError:
            socket.close()
            raise
        self.host = host

    def _create_connection(self) -> asyncio.Protocol:
        connection: Any = self._config.http_protocol_class
        self._state.default_headers = [(b"date", formatdate(usegmt=True).encode())]  # uvicorn's server sets it, too
        return connection(config=self._config, server_state=self._state, app_state={})

    async def close(self) -> None:
        """Stops listening, and closes the connections once their responses are sent, or after a second."""
        server, self._server, self.host = self._server, None, None
        if server is None:
            return
        server.close()
        for connection in [*self._state.connections]:
            connection.shutdown()
        if self._state.tasks:
            await asyncio.wait(self._state.tasks, timeout=_GRACE_SECONDS)
        for task in self._state.tasks:
            task.cancel()
