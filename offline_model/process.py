import logging
import os
from functools import partial

from common.server.limits import ClientLimits
from common.server.serving import ServedApplication, serve
from common.telemetry import logs
from offline_model.app import create_app
from offline_model.settings import OfflineSettings

logger = logging.getLogger("offline_model")

_CONVERSATION = 4  # times the limit of other services, because a request contains the whole conversation


def serve_model(settings: OfflineSettings, limits: ClientLimits) -> None:
    logs.configure("INFO", "text", quiet=["uvicorn"])
    limits = limits.model_copy(update={"limit_request_bytes": _CONVERSATION * limits.limit_request_bytes})
    serve(
        partial(_create, settings),
        limits,
        prefix="OFFLINE",
        host=settings.offline_host,
        port=settings.offline_port,
        grace_seconds=1,
    )


def _create(settings: OfflineSettings, address: str) -> ServedApplication:
    return ServedApplication(
        create_app(settings),
        on_end=_end,
        on_ready=partial(logger.info, "offline model running on %s", address),
    )


def _end() -> None:
    """Ends at once: an open stream has nothing to save."""
    logging.shutdown()
    os._exit(0)
