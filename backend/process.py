import asyncio
import gc
import importlib
import logging
import socket
import sys
from collections.abc import Callable
from functools import partial
from types import FrameType

import uvicorn
from agents import set_tracing_disabled
from agents.tracing import set_trace_processors
from fastapi import FastAPI

import workers
from backend.providers import Endpoint, ModelNotConfigured, resolve
from backend.settings import Settings, SettingsInvalid, read_settings
from database import schema
from telemetry import logs, worker_metrics

logger = logging.getLogger("backend")

# A turn makes thousands of objects that die with it: looking for cycles after every 700 finds next to none.
_COLLECT_AFTER = 50_000
_QUIET = ("httpx2", "httpx", "openai", "openai.agents", "mcp", "uvicorn", "chatkit")


def main() -> None:
    try:
        settings = read_settings()
        endpoint = resolve(settings)
    except (SettingsInvalid, ModelNotConfigured) as error:
        sys.exit(str(error))
    logs.configure(settings.log_level, settings.log_format, quiet=_QUIET)
    # One that is away or not migrated yet may come: /ready tells.
    if sentence := asyncio.run(schema.exposure_at(settings.database_url.get_secret_value())):
        sys.exit(sentence)
    listener = _bind(settings)
    with worker_metrics.added_up(settings.backend_workers):
        importlib.import_module("backend.app")  # now, so that the workers share its memory
        status = workers.run(
            partial(_serve, settings),
            listener,
            count=settings.backend_workers,
            grace_seconds=_grace_seconds(settings) + settings.lease_seconds,
            on_ready=partial(_announce, settings, endpoint, workers.address(listener)),
        )
    sys.exit(status)


def _serve(settings: Settings, listener: socket.socket, on_ready: Callable[[], None]) -> None:
    """One worker."""
    from backend.app import create_app

    # Whatever keys are in the environment, no prompt is uploaded to anyone but the model's provider.
    set_trace_processors([])
    set_tracing_disabled(True)
    app = create_app(settings)
    config = uvicorn.Config(
        app,
        log_config=None,
        access_log=False,
        server_header=False,
        lifespan="on",
        timeout_graceful_shutdown=_grace_seconds(settings),
    )
    _Server(config, app, on_ready).run(sockets=[listener])


class _Server(workers.Server):
    """uvicorn waits for open streams before it ends the application; the turns behind them must be told to end."""

    def __init__(self, config: uvicorn.Config, app: FastAPI, on_ready: Callable[[], None]) -> None:
        super().__init__(config, on_ready)
        self._app = app

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        # What exists now lives as long as the process: collections need not walk it.
        gc.collect()
        gc.freeze()
        gc.set_threshold(_COLLECT_AFTER)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        if (parts := getattr(self._app.state, "parts", None)) is not None:
            parts.turns.shut_down()
        super().handle_exit(sig, frame)


def _announce(settings: Settings, endpoint: Endpoint, address: str) -> None:
    logger.info("backend listens on %s", address)
    logger.info("model: %s on %s", endpoint.model, endpoint.profile.name)
    if endpoint.profile.name == "offline":
        logger.warning("no model key is set: the offline model answers by rules; set CEREBRAS_API_KEY for a real one")
    if settings.auth_mode == "none":
        logger.warning("AUTH_MODE=none: everyone who reaches this address is the one local person")


def _grace_seconds(settings: Settings) -> int:
    """How long open streams may take to end: a tool in flight finishes."""
    return int(settings.tool_wait_seconds) + 5


def _bind(settings: Settings) -> socket.socket:
    try:
        return workers.bind(settings.backend_host, settings.backend_port)
    except workers.CannotListen as error:
        sys.exit(
            f"Cannot listen on {settings.backend_host} port {settings.backend_port} ({error}): "
            "set BACKEND_HOST and BACKEND_PORT to an address of this machine and a free port."
        )
