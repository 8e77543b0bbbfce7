import asyncio
import logging
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from tempfile import TemporaryDirectory
from typing import NoReturn

from starlette.types import ASGIApp

from common import workers
from common.environment import stop_misconfigured
from common.settings import ProcessSettings, ServiceSettings
from common.tokens import find_key_url_warning


def run_database_service(
    settings: ServiceSettings,
    create_app: Callable[[str], ASGIApp],
    *,
    grace_seconds: int,
    announce: Callable[[], None],
) -> NoReturn:
    from common.database import schema  # not at the top: the workspace has no database

    # A database that is away or not migrated yet is no reason to exit: /ready reports it.
    check = asyncio.run(schema.check_url(settings.database_url.get_secret_value()))
    if check.problem and check.exposed:
        stop_misconfigured(check.problem)
    if check.warning:
        logging.getLogger(settings.prefix.lower()).warning(check.warning)
    run_service(
        settings,
        create_app,
        grace_seconds=grace_seconds,
        announce=announce,
        count=settings.get_service_setting("workers"),
    )


def run_service(
    settings: ProcessSettings,
    create_app: Callable[[str], ASGIApp],
    *,
    grace_seconds: int,
    announce: Callable[[], None] = lambda: None,
    count: int = 1,
    loop: str = "auto",
) -> NoReturn:
    with _share_metrics(count):
        workers.serve(
            create_app,
            settings,
            prefix=settings.prefix,
            host=settings.get_service_setting("host"),
            port=settings.get_service_setting("port"),
            workers=count,
            announce=announce,
            loop=loop,
            grace_seconds=grace_seconds,
            trusted_proxies=settings.trusted_proxies,
        )


@contextmanager
def _share_metrics(workers: int) -> Iterator[None]:
    """Lets each of several workers report the metrics of all."""
    if workers == 1:
        yield
        return
    assert "prometheus_client" not in sys.modules, "it reads the variable when it is imported"
    with TemporaryDirectory(prefix="todo-metrics-") as directory:
        os.environ["PROMETHEUS_MULTIPROC_DIR"] = directory
        yield


def warn_about_auth(settings: ServiceSettings, logger: logging.Logger, unchecked: str) -> None:
    """Logs `unchecked`, what it means that there is no sign-in, or that the provider's keys can be forged."""
    if settings.auth_mode == "none":
        logger.warning("AUTH_MODE=none: %s", unchecked)
    elif settings.auth_jwks_url and (warning := find_key_url_warning(settings.auth_jwks_url)):
        logger.warning(warning)
