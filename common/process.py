"""How a service starts."""

import asyncio
import importlib
import logging
import sys
from collections.abc import Callable
from functools import partial
from typing import NoReturn

from common import workers
from common.environment import stop_misconfigured
from common.settings import ProcessSettings, ServiceSettings
from common.telemetry import worker_metrics
from common.tokens import unprotected


def serve(
    settings: ServiceSettings,
    work: workers.Work,
    *,
    app: str,
    grace_seconds: float,
    announce: Callable[[str], None],
) -> NoReturn:
    """Run a service that stands on the database, in as many processes as are set.

    `app` is the module that makes the application. `announce` is called with the address once it is served.
    """
    from common.database import schema  # here: not every service knows a database

    # A database that is away or not migrated yet may come: /ready tells.
    found = asyncio.run(schema.look_at(settings.database_url.get_secret_value()))
    if found.problem and found.exposed:
        stop_misconfigured(found.problem)
    if found.warning:
        logging.getLogger(app.partition(".")[0]).warning(found.warning)
    run(
        settings,
        work,
        app=app,
        grace_seconds=grace_seconds,
        announce=announce,
        count=settings.own("workers"),
    )


def run(
    settings: ProcessSettings,
    work: workers.Work,
    *,
    app: str,
    grace_seconds: float,
    announce: Callable[[str], None],
    count: int = 1,
) -> NoReturn:
    """Run `work` in so many processes; what keeps it from starting ends it with a sentence."""
    listener = workers.bind(settings.prefix, settings.own("host"), settings.own("port"))
    with worker_metrics.added_up(count):
        importlib.import_module(app)  # now, so that the workers share its memory
        status = workers.run(
            work,
            listener,
            count=count,
            grace_seconds=grace_seconds + settings.drain_seconds,
            on_ready=partial(announce, workers.address(listener)),
        )
    sys.exit(status)


def warn_of_callers(settings: ServiceSettings, logger: logging.Logger, unchecked: str) -> None:
    """Say what nobody checked means, or that the keys which check them can be forged."""
    if settings.auth_mode == "none":
        logger.warning("AUTH_MODE=none: %s", unchecked)
    elif settings.auth_jwks_url and (warning := unprotected(settings.auth_jwks_url)):
        logger.warning(warning)
