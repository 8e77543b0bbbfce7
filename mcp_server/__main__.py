import asyncio
import logging
import signal
import socket
import sys

import uvicorn

from database import create_engine, schema
from mcp_server.server import create_app
from mcp_server.settings import Settings, SettingsInvalid, read_settings

log = logging.getLogger("mcp_server")


def main() -> None:
    try:
        settings = read_settings()
    except SettingsInvalid as error:
        sys.exit(str(error))
    _configure_logging(settings)
    _refuse_an_open_database(settings)
    listener = _bind(settings)
    config = uvicorn.Config(
        create_app(settings),
        log_config=None,
        access_log=False,
        server_header=False,
        lifespan="on",
        timeout_graceful_shutdown=10,
    )
    # uvicorn stops gracefully on both signals, then raises them again for the handlers it found.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    signal.signal(signal.SIGINT, lambda *_: sys.exit(0))
    _Server(config, unchecked=settings.auth_mode == "none").run(sockets=[listener])


class _Server(uvicorn.Server):
    def __init__(self, config: uvicorn.Config, *, unchecked: bool) -> None:
        super().__init__(config)
        self._unchecked = unchecked

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started and sockets:
            host, port = sockets[0].getsockname()[:2]
            log.info("MCP server listens on http://%s:%s/mcp", f"[{host}]" if ":" in host else host, port)
            if self._unchecked:
                log.warning("AUTH_MODE=none: every caller is believed to be who it says it is")


def _refuse_an_open_database(settings: Settings) -> None:
    """One that is away or not migrated yet may come: /ready tells."""

    async def exposure() -> str | None:
        engine = create_engine(settings.database_url.get_secret_value())
        try:
            return await schema.exposure(engine)
        finally:
            await engine.dispose()

    if reason := asyncio.run(exposure()):
        sys.exit(reason)


def _bind(settings: Settings) -> socket.socket:
    """A socket that does not listen yet: connections are refused until the server is warm."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            settings.mcp_host,
            settings.mcp_port,
            type=socket.SOCK_STREAM,
            proto=socket.IPPROTO_TCP,  # asyncio turns Nagle's delay off only for a socket that names it
            flags=socket.AI_PASSIVE,
        )[0]
        listener = socket.socket(family, kind, protocol)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
    except OSError as error:
        sys.exit(
            f"Cannot listen on {settings.mcp_host} port {settings.mcp_port} ({error.strerror}): "
            "set MCP_HOST and MCP_PORT to an address of this machine and a free port."
        )
    return listener


def _configure_logging(settings: Settings) -> None:
    logging.basicConfig(
        level=settings.log_level, stream=sys.stderr, format="%(asctime)s %(levelname)s %(name)s: %(message)s"
    )
    # FastMCP brings a console of its own.
    logging.getLogger("fastmcp").handlers.clear()
    logging.getLogger("fastmcp").propagate = True
    # errors.py logs what goes wrong in a tool; FastMCP would add tracebacks that quote the tasks.
    logging.getLogger("fastmcp.server.server").setLevel(logging.CRITICAL)
    for name in ("httpcore2", "httpx2", "mcp", "uvicorn"):
        logging.getLogger(name).setLevel(logging.WARNING)


if __name__ == "__main__":
    main()
