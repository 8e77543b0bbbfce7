import select
from contextlib import AbstractAsyncContextManager
from typing import Any

import psycopg
from sqlalchemy import URL, event, make_url
from sqlalchemy.exc import ArgumentError, DBAPIError, DisconnectionError
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine

from service.telemetry import traces

_LISTEN_URL, _PREPARED = "todo_listen_url", "todo_prepared"  # of an engine's options: what its other connections need
_MOST = "todo_most_connections"


def can_read(url: str) -> bool:
    """Whether `create_engine` can read the URL; where it cannot, its errors quote parts of it, passwords too."""
    try:
        return make_url(url).drivername in ("postgres", "postgresql")
    except (ArgumentError, ValueError):
        return False


def create_engine(
    url: str, *, listen_url: str | None = None, prepared: bool = True, pool_size: int = 10
) -> AsyncEngine:
    """An engine for any libpq URL (`postgres://`, `postgresql://`), whose pool replaces connections that have died.

    The driver runs in autocommit: `transaction` and `pipelined` open each one themselves, with role and user. What a
    connection is set to belongs to the login (`roles.sql` beside this), so that a pooler in between changes nothing.
    `listen_url` is where `listen` finds PostgreSQL itself; where not `prepared`, no statement is kept by a name.
    """
    engine = create_async_engine(
        _libpq(url).set(drivername="postgresql+psycopg"),
        execution_options={_LISTEN_URL: listen_url, _PREPARED: prepared, _MOST: pool_size},
        isolation_level="AUTOCOMMIT",
        hide_parameters=True,  # an error's text goes to the log, what people wrote does not
        pool_size=pool_size,
        max_overflow=0,  # what is opened stays: to open one again for each burst costs more than to keep it
        pool_timeout=10,
        pool_recycle=1800,
        connect_args=_connect_args(prepared=prepared),
    )
    event.listen(engine.sync_engine, "checkout", _refuse_dead)
    return engine


def all_lent(engine: AsyncEngine) -> bool:
    """Whether who wants a connection of the pool waits until somebody gives one back."""
    pool: Any = engine.pool
    return pool.checkedout() >= engine.get_execution_options()[_MOST]


async def connect(engine: AsyncEngine) -> psycopg.AsyncConnection[Any]:
    """A connection of the caller's own to where the engine's go, in autocommit."""
    return await _connect(engine.url, prepared=engine.get_execution_options()[_PREPARED])


async def connect_to_listen(engine: AsyncEngine) -> psycopg.AsyncConnection[Any]:
    """One whose session is its own, in autocommit."""
    url = engine.get_execution_options()[_LISTEN_URL]
    return await _connect(_libpq(url) if url else engine.url, prepared=False)


async def _connect(url: URL, *, prepared: bool) -> psycopg.AsyncConnection[Any]:
    address = url.set(drivername="postgresql").render_as_string(hide_password=False)
    return await psycopg.AsyncConnection.connect(address, autocommit=True, **_connect_args(prepared=prepared))


def _connect_args(*, prepared: bool) -> dict[str, Any]:
    named = {"connect_timeout": 5, "application_name": "todo"}
    return named if prepared else {**named, "prepare_threshold": None}


def _libpq(url: str) -> URL:
    return make_url(url.replace("postgres://", "postgresql://", 1))


def _refuse_dead(connection: Any, *_: Any) -> None:
    """Let the pool replace a connection that its server has closed, without the round trip of a ping.

    Nothing is awaited on a connection in the pool: what can be read from it is its end.
    """
    poll = select.poll()
    poll.register(connection.driver_connection.fileno(), select.POLLIN)
    if poll.poll(0):
        raise DisconnectionError


def transaction_span() -> AbstractAsyncContextManager[None]:
    return traces.span("transaction", {"db.system.name": "postgresql"}, kind="CLIENT")


def as_sqlalchemy(error: psycopg.Error, *, lost: bool) -> DBAPIError:
    """The driver's error as SQLAlchemy would raise it, so that callers know one kind; `lost` is the connection."""
    return DBAPIError.instance(  # pyright: ignore[reportReturnType, reportCallIssue]
        None,
        None,
        error,
        psycopg.Error,  # pyright: ignore[reportArgumentType]
        hide_parameters=True,
        connection_invalidated=lost,
    )
