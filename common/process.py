"""How a service starts."""

import asyncio
import logging
from collections.abc import Callable
from typing import NoReturn

from starlette.types import ASGIApp

from common import workers
from common.environment import stop_misconfigured
from common.settings import ProcessSettings, ServiceSettings
from common.telemetry import worker_metrics
from common.tokens import unprotected


def serve(
    settings: ServiceSettings,
    create_app: Callable[[str], ASGIApp],
    *,
    grace_seconds: int,
    announce: Callable[[], None],
) -> NoReturn:
    """Runs a service that stands on the database, in as many processes as are set; see `run`."""
    from common.database import schema  # here: not every service knows a database

    # A database that is away or not migrated yet may come: /ready tells.
    found = asyncio.run(schema.look_at(settings.database_url.get_secret_value()))
    if found.problem and found.exposed:
        stop_misconfigured(found.problem)
    if found.warning:
        logging.getLogger(settings.prefix.lower()).warning(found.warning)
    run(settings, create_app, grace_seconds=grace_seconds, announce=announce, count=settings.own("workers"))


def run(
    settings: ProcessSettings,
    create_app: Callable[[str], ASGIApp],
    *,
    grace_seconds: int,
    announce: Callable[[], None] = lambda: None,
    count: int = 1,
    loop: str = "auto",
) -> NoReturn:
    """Serves the application that `create_app` makes, in so many processes; `create_app` gets the address."""
    with worker_metrics.added_up(count):
        workers.serve(
            create_app,
            settings,
            prefix=settings.prefix,
            host=settings.own("host"),
            port=settings.own("port"),
            workers=count,
            announce=announce,
            loop=loop,
            grace_seconds=grace_seconds,
            trusted_proxies=settings.trusted_proxies,
        )


def warn_of_callers(settings: ServiceSettings, logger: logging.Logger, unchecked: str) -> None:
    """Say what nobody checked means, or that the keys which check them can be forged."""
    if settings.auth_mode == "none":
        logger.warning("AUTH_MODE=none: %s", unchecked)
    elif settings.auth_jwks_url and (warning := unprotected(settings.auth_jwks_url)):
        logger.warning(warning)
