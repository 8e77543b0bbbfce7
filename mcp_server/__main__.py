import logging
import signal
import socket
import sys

import uvicorn

from mcp_server.server import create_app
from mcp_server.settings import Settings, SettingsInvalid, read_settings

log = logging.getLogger("mcp_server")


def main() -> None:
    try:
        settings = read_settings()
    except SettingsInvalid as error:
        sys.exit(str(error))
    _configure_logging(settings)
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
    _Server(config).run(sockets=[listener])


class _Server(uvicorn.Server):
    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started and sockets:
            host, port = sockets[0].getsockname()[:2]
            log.info("MCP server listens on http://%s:%s/mcp", f"[{host}]" if ":" in host else host, port)
            log.warning("AUTH_MODE=none: every caller is believed to be who it says it is")


def _bind(settings: Settings) -> socket.socket:
    """A socket that does not listen yet: connections are refused until the server is warm."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            settings.mcp_host, settings.mcp_port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
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
    for name in ("mcp", "uvicorn"):
        logging.getLogger(name).setLevel(logging.WARNING)


if __name__ == "__main__":
    main()
