import asyncio
import logging
import socket
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from agents import set_tracing_disabled
from agents.tracing import set_trace_processors
from fastapi import FastAPI

from backend.commands import check as check_command
from backend.model.providers import ModelEndpoint
from backend.settings import SHUTDOWN_SECONDS, Settings, renamed_settings
from backend.tools.connectors.connector import Connector
from common import process, workers
from common.database import PoolerFound, require_direct_address
from common.environment import stop_misconfigured
from common.telemetry import logs
from common.watchdog import watchdog

if TYPE_CHECKING:
    from backend.runs.executor import Executor

logger = logging.getLogger("backend")

QUIET = ("httpcore2", "httpx2", "openai", "openai.agents", "mcp", "uvicorn", "chatkit")  # loggers of libraries


def main() -> None:
    """Checks the configuration, configures the log and serves until it is stopped.

    Ends with status 78 if it cannot work.
    """
    settings, endpoint, servers = check_command.run()
    logs.configure(settings.log_level, settings.log_format, quiet=QUIET)
    for sentence in renamed_settings():
        logger.warning(sentence)
    try:
        asyncio.run(require_direct_address(settings.process_database_url))
    except PoolerFound as error:
        stop_misconfigured(str(error))
    process.serve(
        settings,
        partial(_serve, settings, endpoint, servers),
        app="backend.app",
        grace_seconds=_grace_seconds(settings) + SHUTDOWN_SECONDS,
        announce=partial(_announce, settings, endpoint),
    )


def _serve(
    settings: Settings,
    endpoint: ModelEndpoint,
    servers: Sequence[Connector],
    listener: socket.socket,
    on_ready: Callable[[], None],
) -> None:
    """Serves in this process, on an open socket."""
    from backend.app import create_app

    # Whatever keys are in the environment, no prompt is uploaded to anyone but the model's provider.
    set_trace_processors([])
    set_tracing_disabled(True)
    _Server(create_app(settings, endpoint, servers=servers), settings, on_ready).run(sockets=[listener])


class _Server(workers.Server):
    """uvicorn waits for open streams before it ends the application; the runs behind them must be told to end."""

    def __init__(self, app: FastAPI, settings: Settings, on_ready: Callable[[], None]) -> None:
        super().__init__(
            app,
            settings,
            grace_seconds=_grace_seconds(settings),
            drain_seconds=settings.drain_seconds,
            trusted_proxies=settings.trusted_proxies,
            on_ready=on_ready,
        )
        self._app = app

    async def serve(self, sockets: list[socket.socket] | None = None) -> None:
        """Serves until a signal ends it; a watchdog ends the process if its event loop hangs."""
        self._loop = asyncio.get_running_loop()
        async with watchdog():
            await super().serve(sockets)

    def is_busy(self) -> bool:
        """Whether runs are executed here, so that the process is not replaced yet."""
        return (executor := self._executor) is not None and bool(executor.live)

    def end(self) -> None:
        """Begins to interrupt all runs, as their open streams would not end otherwise; called from a signal handler."""
        if (executor := self._executor) is not None:
            self._loop.call_soon_threadsafe(executor.interrupt_all)

    @property
    def _executor(self) -> "Executor | None":
        """The executor of this process's runs; None until the application has started."""
        services = getattr(self._app.state, "services", None)
        return services and services.runs.executor


def _announce(settings: Settings, endpoint: ModelEndpoint, address: str) -> None:
    """Logs the address, the model and its provider.

    Warns if the model is the offline one, and if there is no sign-in.
    """
    logger.info("backend listens on %s", address)
    logger.info("model: %s on %s", endpoint.model, endpoint.profile.name)
    if endpoint.profile.name == "offline":
        logger.warning(
            "no model key is set, so the offline model answers by simple rules; set CEREBRAS_API_KEY to use an AI"
        )
    process.warn_of_callers(
        settings, logger, "there is no sign-in: anyone who can reach this address can see and change all tasks"
    )


def _grace_seconds(settings: Settings) -> int:
    """How long open streams may take to end: a tool in flight finishes."""
    return int(settings.tool_wait_seconds) + 5
