"""What the services' own commands share: a database that fits, or the process ends with the sentence why not."""

import argparse
import asyncio
import sys
from collections.abc import Awaitable, Callable, Sequence

from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeout
from sqlalchemy.ext.asyncio import AsyncEngine

from database import schema
from database.engine import create_engine

NOTHING = 3
"""The exit status of a command that found nothing of the person it was given."""


class NothingStored(Exception):
    """Of a person of this name nothing is stored."""


def person(arguments: Sequence[str], *, name: str, description: str) -> str:
    """The value of `--user`, the one argument of a command about one person."""
    parser = argparse.ArgumentParser(prog=name, description=description)
    parser.add_argument("--user", required=True, help="the `sub` of the person's tokens; `local` with AUTH_MODE=none")
    return parser.parse_args(arguments).user


def run(database_url: str, work: Callable[[AsyncEngine], Awaitable[None]]) -> None:
    try:
        if problem := asyncio.run(_problem_or(work, database_url)):
            sys.exit(problem)
    except NothingStored as nothing:
        sys.stderr.write(f"Nothing is stored for {nothing}: check the name.\n")
        sys.exit(NOTHING)
    except (DBAPIError, PoolTimeout) as error:
        sys.exit(f"The database failed on the way ({type(error).__name__}): try again.")
    except OSError as error:  # the driver's are the database's errors above
        sys.exit(f"What was found cannot be written: {error.strerror}.")


async def _problem_or(work: Callable[[AsyncEngine], Awaitable[None]], database_url: str) -> str | None:
    engine = create_engine(database_url)
    try:
        problem = await schema.problem(engine)
        if problem is None:
            await work(engine)
        return problem
    finally:
        await engine.dispose()
