"""Helpers for commands on the stored data: the owner's login, and JSON that is written while rows are read."""

import asyncio
import json
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from datetime import date, datetime, time
from functools import partial
from typing import Any, BinaryIO, TypeVar

import psycopg

from common import commands
from common.clock import to_utc
from common.database import Database, DatabaseUnavailable, schema
from common.environment import SettingsInvalid, read_settings, stop_misconfigured
from common.settings import OwnerSettings

Row = Mapping[str, Any]
_Result = TypeVar("_Result")


class NothingStored(Exception):
    """Nothing is stored of a user of this name."""


def run_for_user(
    work: Callable[..., Awaitable[None]], arguments: Sequence[str], *, name: str, description: str
) -> None:
    """Calls `work(database, user=...)`, which raises `NothingStored`, with the user that the arguments name."""
    user = commands.parse_user(arguments, name=name, description=description)
    run(partial(work, user=user))


def run(work: Callable[[Database], Awaitable[_Result]], *, or_service: bool = False) -> _Result:
    """Calls `work` with the owner's login and returns its result; if it fails, the process exits with a sentence.

    With `or_service`, the login of the services will do: it works on the rows of one user.
    """
    try:
        url = read_settings(OwnerSettings).migration_database_url.get_secret_value()
        return asyncio.run(_run(work, url, or_service=or_service))
    except SettingsInvalid as error:
        stop_misconfigured(str(error))
    except NothingStored as error:
        commands.exit_nothing_stored(error)
    except (DatabaseUnavailable, psycopg.Error) as error:
        sys.exit(f"The database failed before the end ({type(error).__name__}). Try again.")


async def _run(work: Callable[[Database], Awaitable[_Result]], url: str, *, or_service: bool) -> _Result:
    if problem := await schema.find_owner_problem(url, or_service=or_service):
        sys.exit(problem)
    async with Database(url, prepared=False, pool_size=2) as database:
        return await work(database)


class JsonWriter:
    def __init__(self, out: BinaryIO) -> None:
        self._out = out

    def write_text(self, text: str) -> None:
        self._out.write(text.encode())

    async def write_array(self, rows: AsyncIterator[Row]) -> int:
        count = 0
        self.write_text("[")
        async for row in rows:
            self.write_text(",\n" if count else "\n")
            self.write_text(json.dumps(row, ensure_ascii=False, default=_render_time))
            count += 1
        self.write_text("]")
        return count


def _render_time(value: Any) -> str:
    """Renders instants in UTC, and dates and times of day as they are, since they have no zone."""
    assert isinstance(value, date | time), type(value)
    return to_utc(value).isoformat() if isinstance(value, datetime) else value.isoformat()
