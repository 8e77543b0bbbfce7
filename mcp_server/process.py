import asyncio
import logging
import socket
from collections.abc import Callable
from functools import partial

from common import process, workers
from common.database import PoolerFound, require_direct_address
from common.environment import stop_misconfigured
from common.tool_server import logs
from mcp_server.commands import check as check_command
from mcp_server.settings import Settings

log = logging.getLogger("mcp_server")

_GRACE_SECONDS = 10


def main() -> None:
    settings = check_command.run()
    logs.configure(settings.log_level, settings.log_format)
    try:
        asyncio.run(require_direct_address(settings.process_database_url))
    except PoolerFound as error:
        stop_misconfigured(str(error))
    process.serve(
        settings,
        partial(_serve, settings),
        app="mcp_server.server",
        grace_seconds=_GRACE_SECONDS + 5,
        announce=partial(_announce, settings),
    )


def _serve(settings: Settings, listener: socket.socket, on_ready: Callable[[], None]) -> None:
    """One worker."""
    from mcp_server.server import create_app

    server = workers.Server(
        create_app(settings),
        settings,
        grace_seconds=_GRACE_SECONDS,
        drain_seconds=settings.drain_seconds,
        trusted_proxies=settings.trusted_proxies,
        on_ready=on_ready,
    )
    server.run(sockets=[listener])


def _announce(settings: Settings, address: str) -> None:
    log.info("MCP server listens on %s/mcp", address)
    process.warn_of_callers(settings, log, "there is one user, and every caller acts as that user")
