"""Run an ASGI app on a real socket in the running event loop."""

import asyncio
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any

import uvicorn


@asynccontextmanager
async def serve(app: Any, *, lifespan: str = "on") -> AsyncIterator[str]:
    """The base URL of the app, on a free port of 127.0.0.1."""
    config = uvicorn.Config(app, lifespan=lifespan, log_config=None, timeout_graceful_shutdown=5)  # pyright: ignore[reportArgumentType]
    server = _Server(config)
    # asyncio turns Nagle's delay off only for a socket that names its protocol.
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP) as listener:
        listener.bind(("127.0.0.1", 0))
        serving = asyncio.create_task(server.serve(sockets=[listener]))
        while not server.started:
            await asyncio.sleep(0.001)
            if serving.done():
                await serving
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            server.should_exit = True
            await serving


class _Server(uvicorn.Server):
    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave the signals to pytest."""
        yield
