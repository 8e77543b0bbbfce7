import select
from contextlib import AbstractAsyncContextManager
from typing import Any

import psycopg
from sqlalchemy import event, make_url
from sqlalchemy.exc import ArgumentError, DBAPIError, DisconnectionError
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine

from service.telemetry import traces


def can_read(url: str) -> bool:
    """Whether `create_engine` can read the URL; where it cannot, its errors quote parts of it, passwords too."""
    try:
        return make_url(url).drivername in ("postgres", "postgresql")
    except (ArgumentError, ValueError):
        return False


def create_engine(url: str, *, pool_size: int = 5, max_overflow: int = 5) -> AsyncEngine:
    """An engine for any libpq URL (`postgres://`, `postgresql://`), whose pool replaces connections that have died.

    The driver runs in autocommit: `transaction` and `pipelined` open each one themselves, with role and user. What a
    connection is set to belongs to the login (`roles.sql` beside this), so that a pooler in between changes nothing.
    """
    engine = create_async_engine(
        make_url(url.replace("postgres://", "postgresql://", 1)).set(drivername="postgresql+psycopg"),
        isolation_level="AUTOCOMMIT",
        hide_parameters=True,  # an error's text goes to the log, what people wrote does not
        pool_size=pool_size,
        max_overflow=max_overflow,
        pool_timeout=10,
        pool_recycle=1800,
        connect_args={"connect_timeout": 5, "application_name": "todo-assistant"},
    )
    event.listen(engine.sync_engine, "checkout", _refuse_dead)
    return engine


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
