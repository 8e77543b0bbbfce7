"""Run an ASGI app on a real socket in the running event loop."""

import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import uvicorn


@asynccontextmanager
async def serve(app: Any, *, lifespan: str = "on") -> AsyncIterator[str]:
    """The base URL of the app, on a free port of 127.0.0.1."""
    config = uvicorn.Config(app, lifespan=lifespan, log_config=None, timeout_graceful_shutdown=5)  # pyright: ignore[reportArgumentType]
    config.load()
    server = uvicorn.Server(config)
    server.lifespan = config.lifespan_class(config)
    # asyncio turns Nagle's delay off only for a socket that names its protocol.
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP) as listener:
        listener.bind(("127.0.0.1", 0))
        await server.startup(sockets=[listener])  # not serve(), which takes over the signals and looks every 0.1 s
        assert not server.should_exit, "the application did not start"
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            await server.shutdown(sockets=[listener])
