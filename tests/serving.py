"""Run an ASGI app on a real socket in the running event loop."""

import asyncio
import socket
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any, Literal

import uvicorn

from common.workers import THIS_MACHINE, ClientLimits, create_config


@asynccontextmanager
async def serve(
    app: Any,
    *,
    lifespan: Literal["on", "off"] = "on",
    limits: ClientLimits | None = None,
    trusted_proxies: Sequence[str] = THIS_MACHINE,
    port: int = 0,
) -> AsyncIterator[str]:
    """The base URL of the app, on this port of 127.0.0.1, or on a free one."""
    server = uvicorn.Server(
        create_config(
            lambda: app,
            limits or ClientLimits(),
            grace_seconds=5,
            lifespan=lifespan,
            trusted_proxies=trusted_proxies,
        )
    )
    server.config.load()
    server.lifespan = server.config.lifespan_class(server.config)
    # asyncio turns Nagle's delay off only for a socket that names its protocol.
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP) as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(("127.0.0.1", port))
        await server.startup(sockets=[listener])  # not serve(), which takes over the signals and looks every 0.1 s
        assert not server.should_exit, "the application did not start"
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            await _stop(server, listener)


async def _stop(server: uvicorn.Server, listener: socket.socket) -> None:
    """As `shutdown`, which waits 0.1 s in any case for connections that are open: clients have mostly closed theirs."""
    for _ in range(20):
        if not server.server_state.connections and not server.server_state.tasks:
            for listening in server.servers:
                listening.close()
            await server.lifespan.shutdown()
            return
        await asyncio.sleep(0.001)
    await server.shutdown(sockets=[listener])
