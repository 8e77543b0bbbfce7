import asyncio
import importlib
import logging
import socket
import sys
from collections.abc import Callable
from functools import partial

import uvicorn

import workers
from database import schema
from mcp_server.settings import Settings, SettingsInvalid, read_settings
from telemetry import logs, worker_metrics

log = logging.getLogger("mcp_server")

_GRACE_SECONDS = 10


def main() -> None:
    try:
        settings = read_settings()
    except SettingsInvalid as error:
        sys.exit(str(error))
    _configure_logging(settings)
    # One that is away or not migrated yet may come: /ready tells.
    if sentence := asyncio.run(schema.exposure_at(settings.database_url.get_secret_value())):
        sys.exit(sentence)
    listener = _bind(settings)
    with worker_metrics.added_up(settings.mcp_workers):
        importlib.import_module("mcp_server.server")  # now, so that the workers share its memory
        status = workers.run(
            partial(_serve, settings),
            listener,
            count=settings.mcp_workers,
            grace_seconds=_GRACE_SECONDS + 5,
            on_ready=partial(_announce, settings, workers.address(listener)),
        )
    sys.exit(status)


def _serve(settings: Settings, listener: socket.socket, on_ready: Callable[[], None]) -> None:
    """One worker."""
    from mcp_server.server import create_app

    config = uvicorn.Config(
        create_app(settings),
        log_config=None,
        access_log=False,
        server_header=False,
        lifespan="on",
        timeout_graceful_shutdown=_GRACE_SECONDS,
    )
    workers.Server(config, on_ready).run(sockets=[listener])


def _announce(settings: Settings, address: str) -> None:
    log.info("MCP server listens on %s/mcp", address)
    if settings.auth_mode == "none":
        log.warning("AUTH_MODE=none: every caller is believed to be who it says it is")


def _bind(settings: Settings) -> socket.socket:
    try:
        return workers.bind(settings.mcp_host, settings.mcp_port)
    except workers.CannotListen as error:
        sys.exit(
            f"Cannot listen on {settings.mcp_host} port {settings.mcp_port} ({error}): "
            "set MCP_HOST and MCP_PORT to an address of this machine and a free port."
        )


def _configure_logging(settings: Settings) -> None:
    logs.configure(settings.log_level, settings.log_format, quiet=("httpcore2", "httpx2", "mcp", "uvicorn"))
    # FastMCP brings a console of its own.
    logging.getLogger("fastmcp").handlers.clear()
    logging.getLogger("fastmcp").propagate = True
    # errors.py logs what goes wrong in a tool; FastMCP would add tracebacks that quote the tasks.
    logging.getLogger("fastmcp.server.server").setLevel(logging.CRITICAL)
