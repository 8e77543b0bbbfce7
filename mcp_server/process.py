import logging
import os
from functools import partial

from starlette.types import ASGIApp

from common import process
from common.model_building import defer_model_building
from common.server.serving import ServedApplication
from common.telemetry import logs
from mcp_server.commands import check as check_command
from mcp_server.settings import McpSettings

log = logging.getLogger("mcp_server")

_GRACE_SECONDS = 10


def main() -> None:
    settings = check_command.run()
    logs.configure(settings.log_level, settings.log_format, quiet=["uvicorn"])
    process.check_database(settings)
    unchecked = "there is one user, and every caller acts as that user"
    process.run_service(
        settings,
        partial(_create_app, settings),
        grace_seconds=_GRACE_SECONDS,
        announce=lambda: process.warn_about_auth(settings, log, unchecked),
        workers=settings.mcp_workers,
    )


def _create_app(settings: McpSettings, address: str) -> ASGIApp:
    # Here, so that of several workers' processes their supervisor does without FastMCP.
    with defer_model_building():
        from common.tool_server.overrides import configure_logs
    from mcp_server.server import create_app

    configure_logs(settings.log_level, settings.log_format)
    return ServedApplication(
        create_app(settings),
        drain_seconds=settings.drain_seconds,
        on_ready=lambda: log.info("MCP server listens on %s/mcp (process %d)", address, os.getpid()),
    )
