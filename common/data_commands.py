"""What commands on the stored data share: the owner's login, and JSON that is written while rows are read."""

import asyncio
import json
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from datetime import date, datetime, time
from functools import partial
from typing import Any, BinaryIO, Protocol

import psycopg

from common import commands
from common.clock import to_utc
from common.database import Database, DatabaseUnavailable, schema
from common.environment import SettingsInvalid, read
from common.settings import OwnerSettings

Row = Mapping[str, Any]


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


class JsonWriter:
    """Writes JSON to a binary file."""

    def __init__(self, out: BinaryIO) -> None:
        self._out = out

    def text(self, text: str) -> None:
        self._out.write(text.encode())

    async def array(self, rows: AsyncIterator[Row]) -> int:
        """Writes an array with an object for each row; returns how many there were."""
        count = 0
        self.text("[")
        async for row in rows:
            self.text(",\n" if count else "\n")
            self.text(_json(row))
            count += 1
        self.text("]")
        return count


def _json(row: Row) -> str:
    return json.dumps(row, ensure_ascii=False, default=_moment)


def _moment(value: Any) -> str:
    """Moments in UTC; days and clock times as they are, which are somebody's own."""
    assert isinstance(value, date | time), type(value)
    return to_utc(value).isoformat() if isinstance(value, datetime) else value.isoformat()
