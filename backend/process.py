import logging
import secrets
import socket
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING

import psycopg
from agents import set_tracing_disabled
from agents.tracing import set_trace_processors
from fastapi import FastAPI

from backend.commands import check as check_command
from backend.conversation.runs import abandoned
from backend.conversation.runs.abandoned import Abandoned
from backend.model.providers import Endpoint
from backend.settings import Settings
from backend.tools.connectors.server import Server
from service import process, workers
from service.telemetry import logs

if TYPE_CHECKING:
    from backend.doors.parts import Parts

logger = logging.getLogger("backend")

QUIET = ("httpcore2", "httpx2", "openai", "openai.agents", "mcp", "uvicorn", "chatkit")  # loggers of libraries


def main(name: str | None = None, ended: Sequence[Abandoned] = ()) -> None:
    """Serve under a name that no other service has; `ended` are turns that one of that name left when it died."""
    settings, endpoint, servers = check_command.run()
    logs.configure(settings.log_level, settings.log_format, quiet=QUIET)
    process.serve(
        settings,
        partial(_serve, settings, endpoint, servers),
        app="backend.app",
        grace_seconds=_grace_seconds(settings) + settings.lease_seconds,
        announce=partial(_announce, settings, endpoint, ended),
        name=name or secrets.token_hex(8),
        after_death=partial(_end_turns_of, settings),
    )


def _end_turns_of(settings: Settings, dead: str) -> None:
    """What a worker left running holds its conversations no longer."""
    try:
        _report(abandoned.end_runs_of([dead], settings.database_url.get_secret_value()))
    except psycopg.Error as error:
        logger.warning("turns of the process before are not ended yet: %s", type(error).__name__)


def _report(ended: Iterable[Abandoned]) -> None:
    from backend.turn import reports

    for run in ended:
        reports.turn_abandoned(run)


def _serve(
    settings: Settings,
    endpoint: Endpoint,
    servers: Sequence[Server],
    worker: str,
    listener: socket.socket,
    on_ready: Callable[[], None],
) -> None:
    """One worker."""
    from backend.app import create_app

    # Whatever keys are in the environment, no prompt is uploaded to anyone but the model's provider.
    set_trace_processors([])
    set_tracing_disabled(True)
    _Server(create_app(settings, endpoint, worker=worker, servers=servers), settings, on_ready).run(sockets=[listener])


class _Server(workers.Server):
    """uvicorn waits for open streams before it ends the application; the turns behind them must be told to end."""

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

    def is_busy(self) -> bool:
        return (parts := self._parts) is not None and parts.turns.count > 0

    def end(self) -> None:
        if (parts := self._parts) is not None:
            parts.turns.shut_down()

    @property
    def _parts(self) -> "Parts | None":
        return getattr(self._app.state, "parts", None)


def _announce(settings: Settings, endpoint: Endpoint, ended: Iterable[Abandoned], address: str) -> None:
    logger.info("backend listens on %s", address)
    _report(ended)
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
