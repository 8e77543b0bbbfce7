"""The start of a service that has a name: it first ends what one of that name, which died, left running.

Whoever gives the name answers for it that no two services have it at once. Nothing large is imported before that is
done.
"""

import argparse
import hashlib
import socket
import time
from collections.abc import Sequence
from contextlib import suppress

import psycopg
from pydantic import SecretStr, ValidationError
from pydantic_settings import BaseSettings, SettingsConfigDict

from backend.conversation.runs import abandoned
from backend.conversation.runs.abandoned import Abandoned
from service.environment import mounted_secrets


class _Settings(BaseSettings):
    """What it takes to find those turns."""

    model_config = SettingsConfigDict(env_ignore_empty=True, extra="ignore", frozen=True)

    database_url: SecretStr = SecretStr("")
    backend_workers: int = 1


def run(arguments: Sequence[str]) -> None:
    """`python -m backend --name=NAME`: serve under it."""
    parser = argparse.ArgumentParser(prog="backend", description="Serves, configured by the environment.")
    names = parser.add_mutually_exclusive_group(required=True)
    names.add_argument("--name", help="what the service is called, the same after each of its deaths, and a secret")
    names.add_argument("--named-by-host", action="store_true", help="as its host, which has no other backend")
    parser.add_argument("--pause", type=float, default=0.0, help="seconds to wait before it starts")
    given = parser.parse_args(arguments)
    name, ended = given.name, list[Abandoned]()
    with suppress(ValidationError):  # whose sentences the start has
        settings = _Settings(_secrets_dir=mounted_secrets())  # pyright: ignore[reportCallIssue]
        name = name or _secret_name(socket.gethostname(), settings)
        ended = _end_runs_of(name, settings)
    time.sleep(given.pause)
    from backend import process

    process.main(name, ended)


def _secret_name(host: str, settings: _Settings) -> str:
    """A host's name is none, but nobody else knows the password of the database's address."""
    return hashlib.sha256(f"{host} {settings.database_url.get_secret_value()}".encode()).hexdigest()


def _end_runs_of(name: str, settings: _Settings) -> list[Abandoned]:
    workers = [f"{name}/{number}" for number in range(settings.backend_workers)]
    with suppress(psycopg.Error):  # the start tries again
        return abandoned.end_runs_of(workers, settings.database_url.get_secret_value())
    return []
