import asyncio
import logging
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from tempfile import TemporaryDirectory
from typing import NoReturn
from urllib.parse import urlsplit

from starlette.types import ASGIApp

from common.environment import stop_misconfigured
from common.server import serving
from common.settings import ProcessSettings, ServiceSettings, is_loopback


def check_database(settings: ServiceSettings) -> None:
    """Exits if users could see each other's rows."""
    from common.database import schema  # not at the top: the workspace has no database

    # A database that is away or not migrated yet is no reason to exit: /ready reports it.
    found = asyncio.run(schema.check_url(settings.database_url.get_secret_value()))
    if found.problem and found.exposed:
        stop_misconfigured(found.problem)
    if found.warning:
        logging.getLogger(settings.prefix.lower()).warning(found.warning)


def run_service(
    settings: ProcessSettings,
    create_app: Callable[[str], ASGIApp],
    *,
    grace_seconds: int,
    announce: Callable[[], None] = lambda: None,
    workers: int = 1,
    loop: str = "auto",
) -> NoReturn:
    with _share_metrics(workers):
        serving.serve(
            create_app,
            settings,
            prefix=settings.prefix,
            host=settings.get_service_setting("host"),
            port=settings.get_service_setting("port"),
            workers=workers,
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
    if not settings.signs_in:
        logger.warning("AUTH_MODE=none: %s", unchecked)
    elif settings.auth_jwks_url and not _is_authentic(settings.auth_jwks_url):
        logger.warning(
            "AUTH_JWKS_URL is http://, so an attacker on the network could replace the keys and sign in as any user: "
            "use the https:// address"
        )


def _is_authentic(url: str) -> bool:
    """Whether nobody on the network can change what is read from an address."""
    parsed = urlsplit(url)
    return parsed.scheme == "https" or is_loopback(parsed.hostname or "")
