import asyncio
import logging
import os
from collections.abc import Sequence
from functools import partial

from starlette.types import ASGIApp

from backend.commands import check as check_command
from backend.liveness import PoolerFound, require_direct_address
from backend.model.providers import ModelEndpoint
from backend.settings import BackendSettings
from backend.tools.connectors.configuration import Connector
from common import process
from common.environment import stop_misconfigured
from common.model_building import defer_model_building
from common.server.serving import ServedApplication
from common.telemetry import logs

logger = logging.getLogger("backend")

QUIET = ("httpcore2", "httpx2", "openai", "openai.agents", "mcp", "uvicorn", "chatkit")  # loggers of libraries


def main() -> None:
    """Serves until it is stopped; ends with status 78 if the configuration cannot work."""
    settings, endpoint, servers = check_command.run()
    logs.configure(settings.log_level, settings.log_format, quiet=QUIET)
    try:
        asyncio.run(require_direct_address(settings.process_database_url))
    except PoolerFound as error:
        stop_misconfigured(str(error))
    process.check_database(settings)
    process.run_service(
        settings,
        partial(_create, settings, endpoint, servers),
        grace_seconds=int(settings.tool_wait_seconds) + 5,  # a tool in flight finishes
        announce=partial(_announce, settings, endpoint),
        workers=settings.backend_workers,
    )


def _create(settings: BackendSettings, endpoint: ModelEndpoint, servers: Sequence[Connector], address: str) -> ASGIApp:
    # Here, so that of several workers' processes their supervisor does without the Agents SDK.
    with defer_model_building():
        from agents import set_trace_provider, set_tracing_disabled
        from agents.tracing.provider import DefaultTraceProvider

    from backend.app import create_app

    logs.configure(settings.log_level, settings.log_format, quiet=QUIET)
    # Whatever keys are in the environment, no prompt is uploaded to anyone but the model's provider. A provider of our
    # own has no processors; the SDK's would first make the client that uploads.
    set_trace_provider(DefaultTraceProvider())
    set_tracing_disabled(True)
    app = create_app(settings, endpoint, servers=servers)
    return ServedApplication(
        app,
        drain_seconds=settings.drain_seconds,
        is_busy=lambda: bool(app.state.services.runs.executor.live),
        # uvicorn waits for open streams before it ends the application; the runs behind them must be told to end.
        on_end=lambda: app.state.services.runs.executor.interrupt_all(),
        on_ready=lambda: logger.info("backend listens on %s (process %d)", address, os.getpid()),
    )


def _announce(settings: BackendSettings, endpoint: ModelEndpoint) -> None:
    logger.info("model: %s on %s", endpoint.model, endpoint.profile.name)
    if endpoint.profile.name == "offline":
        logger.warning(
            "no model key is set, so the offline model answers by simple rules; set CEREBRAS_API_KEY to use an AI"
        )
    process.warn_about_auth(
        settings, logger, "there is no sign-in: anyone who can reach this address can see and change all tasks"
    )
