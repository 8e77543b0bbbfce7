"""What commands on the stored data share: the owner's login, or the process ends with the sentence what is missing."""

import asyncio
import sys
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Protocol

import psycopg

from common import commands
from common.database import Database, DatabaseUnavailable, schema
from common.environment import SettingsInvalid, read
from common.settings import OwnerSettings


class NothingStored(Exception):
    """Nothing is stored of a user of this name."""


class UsersWork(Protocol):
    """Raises `NothingStored` for a user of whom there is nothing."""

    def __call__(self, database: Database, *, user: str) -> Awaitable[None]: ...


def run_for_user(work: UsersWork, arguments: Sequence[str], *, name: str, description: str) -> None:
    """Runs the command of this name for the user in `--user`, its one argument."""
    user = commands.person(arguments, name=name, description=description)
    run(partial(work, user=user))


def run(work: Callable[[Database], Awaitable[None]]) -> None:
    """Works with the owner's login; the process ends with a sentence where that is not possible."""
    try:
        url = read(OwnerSettings).migration_database_url.get_secret_value()
        if problem := asyncio.run(_problem_or(work, url)):
            sys.exit(problem)
    except SettingsInvalid as error:
        sys.exit(str(error))
    except NothingStored as nothing:
        commands.nothing_stored(nothing)
    except (DatabaseUnavailable, psycopg.Error) as error:
        sys.exit(f"The database failed before the end ({type(error).__name__}). Try again.")
    except OSError as error:  # the driver's are the database's errors above
        sys.exit(f"The output cannot be written: {error.strerror}.")


async def _problem_or(work: Callable[[Database], Awaitable[None]], url: str) -> str | None:
    problem = await schema.problem_for_owner(url)
    if problem is None:
        async with Database(url, prepared=False, pool_size=2) as database:
            await work(database)
    return problem
