"""Serves an ASGI app in the running event loop, or responses of a handler in threads; and the client of both."""

import asyncio
import socket
import threading
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Literal

import httpx2
import uvicorn

from common.server.limits import THIS_MACHINE, ClientLimits
from common.server.serving import create_config
from tests.waiting import WAIT_SECONDS


def http_client(url: str = "", **options: Any) -> httpx2.AsyncClient:
    """Returns a patient client without TLS: reading the root certificates takes longer than most tests."""
    limits = httpx2.Limits(max_connections=20)
    return httpx2.AsyncClient(
        base_url=url, verify=False, trust_env=False, timeout=WAIT_SECONDS, limits=limits, **options
    )


@asynccontextmanager
async def serve(
    app: Any,
    *,
    lifespan: Literal["on", "off"] = "on",
    limits: ClientLimits | None = None,
    trusted_proxies: Sequence[str] = THIS_MACHINE,
    port: int = 0,
) -> AsyncIterator[str]:
    """Yields the base URL of the app, which listens on 127.0.0.1 at this port, or at a free one."""
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
    # asyncio sets TCP_NODELAY only on sockets whose protocol is IPPROTO_TCP.
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP) as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(("127.0.0.1", port))
        await server.startup(sockets=[listener])  # not serve(), which handles signals and polls every 0.1 s
        assert not server.should_exit, "the application did not start"
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            await _stop(server, listener)


async def _stop(server: uvicorn.Server, listener: socket.socket) -> None:
    """Avoids the 0.1 s that `shutdown` always waits, as most clients have closed their connections."""
    for _ in range(20):
        if not server.server_state.connections and not server.server_state.tasks:
            for asyncio_server in server.servers:
                asyncio_server.close()
            await server.lifespan.shutdown()
            return
        await asyncio.sleep(0.001)
    await server.shutdown(sockets=[listener])


@contextmanager
def serve_in_threads(handler: type[BaseHTTPRequestHandler]) -> Iterator[str]:
    """Yields the base URL; requests are not logged."""

    class Silent(handler):
        def log_message(self, format: str, *args: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Silent) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}"
        finally:
            server.shutdown()
            thread.join()
