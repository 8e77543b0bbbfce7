"""Transactions that see the rows of one user, by row-level security."""

import asyncio
import logging
import select
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, LiteralString, Self, TypeVar

import psycopg
from psycopg.pq import PipelineStatus
from psycopg.rows import DictRow, class_row
from psycopg_pool import AsyncConnectionPool

from common.telemetry import traces

Row = TypeVar("Row")

# The policies of each table check this role and this user. These settings end with the transaction.
_SET_USER = """
SELECT set_config('role', 'todo_app', true), set_config('todo.user_id', %s, true),
    set_config('search_path', 'public', true)"""
# The policy for the tables' owner checks this setting; other logins still see no row.
_SET_ALL_USERS = "SELECT set_config('todo.all_people', 'on', true), set_config('search_path', 'public', true)"
_BEGIN_SNAPSHOT = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
NO_USER = ""
"""Sees no rows: for SECURITY DEFINER functions."""
_NOTIFY = "SELECT pg_notify(%(channel)s, %(payload)s)"
_FETCH = "FETCH 100 FROM rows_read"
_LIFT_TIMEOUTS = """
SELECT set_config('statement_timeout', '0', true), set_config('idle_in_transaction_session_timeout', '0', true)"""

CONNECTION_OPTIONS: dict[str, Any] = {"autocommit": True, "application_name": "todo"}


class DatabaseUnavailable(Exception):
    """The database cannot be reached, has no connection free, or ended the transaction (deadlock, timeout, shutdown).

    Trying again may succeed. If the connection was lost while the transaction ended, it may have been committed.
    """


class Transaction:
    """Sends statements without waiting for their results, all in one transaction of a user."""

    def __init__(self, connection: psycopg.AsyncConnection[Any], user_id: str) -> None:
        self._connection = connection
        self.user_id = user_id

    async def execute(
        self, statement: LiteralString, row: type[Row] = dict[str, Any], /, **values: Any
    ) -> psycopg.AsyncCursor[Row]:
        """Returns a cursor of `row` objects, by default dictionaries; `%(name)s` in the statement stands for `name=`,
        and `%(user)s` for the transaction's user.

        Read results after the transaction, where possible: each read before its end costs a round trip. Where no result
        is read, an error of the statement is raised at the end of the transaction.
        """
        traces.record_statement(statement)
        cursor = self._connection.cursor(row_factory=class_row(row))
        return await cursor.execute(statement, {"user": self.user_id} | values)

    async def notify(self, channel: str, payload: str) -> None:
        await self.execute(_NOTIFY, channel=channel, payload=payload)

    async def lift_timeouts(self) -> None:
        await self.execute(_LIFT_TIMEOUTS)

    async def roll_back(self) -> None:
        """Undoes what was sent, at no round trip; nothing may be sent after it.

        For errors that are part of normal operation: an exception that leaves the transaction costs a connection.
        """
        await self._connection.execute("BEGIN")  # else PostgreSQL warns that there is no transaction
        await self._connection.execute("ROLLBACK")

    async def stream(self, statement: LiteralString, /, **values: Any) -> AsyncIterator[DictRow]:
        """Reads any number of rows, 100 at a time; it needs a `snapshot`. One stream can be read at a time."""
        await self.execute(f"DECLARE rows_read NO SCROLL CURSOR FOR {statement}", **values)
        while rows := await (await self.execute(_FETCH)).fetchall():
            for row in rows:
                yield row
        await self.execute("CLOSE rows_read")


class Database:
    """A connection pool. `url` is any libpq URL; `prepared=False` is for poolers without prepared statements.

    `translate_error` may return an exception to raise in place of an error of PostgreSQL.
    """

    def __init__(
        self,
        url: str,
        *,
        prepared: bool = True,
        pool_size: int = 10,
        pool_timeout_seconds: float = 10,
        translate_error: Callable[[psycopg.Error], Exception | None] = lambda _: None,
    ) -> None:
        self._translate_error = translate_error
        # The pool would log two lines for each transaction, and both libraries one for each connection closed here.
        for name in ("psycopg", "psycopg.pool"):
            logging.getLogger(name).setLevel(logging.ERROR)
        options = CONNECTION_OPTIONS | {"connect_timeout": 5} | ({} if prepared else {"prepare_threshold": None})
        self._pool = AsyncConnectionPool(
            url,
            kwargs=options,
            open=False,
            min_size=min(2, pool_size),
            max_size=pool_size,
            timeout=pool_timeout_seconds,
            max_lifetime=1800,
            # The pool doubles its pause between attempts. After this time it begins again with the next transaction,
            # so that a database that is back is noticed within half a second.
            reconnect_timeout=0.5,
        )

    async def __aenter__(self) -> Self:
        await self._pool.open()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._pool.close(timeout=1)

    @property
    def connections_in_use(self) -> int:
        statistics = self._pool.get_stats()
        return statistics["pool_size"] - statistics["pool_available"]

    def transaction(self, user_id: str, *, snapshot: bool = False) -> AbstractAsyncContextManager[Transaction]:
        """Runs a transaction of one user in one round trip: the end of the block commits, and an exception rolls back.

        With `snapshot` all its statements read the same state of the database, and none may write. Raises
        `DatabaseUnavailable`, and psycopg's errors, such as one for a violated constraint. An exception costs a
        connection: raise errors that are part of normal operation after the block, if need be after `roll_back`.
        """
        return self._begin(_SET_USER, [user_id], snapshot=snapshot)

    async def fetch_all(
        self, user_id: str, statement: LiteralString, row: type[Row] = dict[str, Any], /, **values: Any
    ) -> list[Row]:
        async with self.transaction(user_id) as tx:
            cursor = await tx.execute(statement, row, **values)
        return await cursor.fetchall()

    async def fetch_one(
        self, user_id: str, statement: LiteralString, row: type[Row] = dict[str, Any], /, **values: Any
    ) -> Row | None:
        rows = await self.fetch_all(user_id, statement, row, **values)
        return rows[0] if rows else None

    async def execute(self, user_id: str, statement: LiteralString, /, **values: Any) -> None:
        async with self.transaction(user_id) as tx:
            await tx.execute(statement, **values)

    def owner_transaction(self) -> AbstractAsyncContextManager[Transaction]:
        """Runs a transaction of the login, which sees the rows of all users if it is the tables' owner, else none."""
        return self._begin(_SET_ALL_USERS, [])

    @asynccontextmanager
    async def login_connection(self) -> AsyncIterator[psycopg.AsyncConnection[Any]]:
        """Lends a connection as the login itself, in autocommit: to check the database, not for rows of users."""
        while True:
            connection = await self._pool.getconn()
            try:
                if not _has_ended(connection):
                    yield connection
                    return
                await connection.close()
            finally:
                # psycopg_pool 3.3.3 loses a connection whose return is cancelled while its lock is held.
                await asyncio.shield(self._pool.putconn(connection))

    @asynccontextmanager
    async def _begin(
        self, settings: LiteralString, values: Sequence[str], *, snapshot: bool = False
    ) -> AsyncIterator[Transaction]:
        with traces.span("transaction", {"db.system.name": "postgresql"}, kind="CLIENT"):
            try:
                async with (
                    self.login_connection() as connection,
                    _open_transaction(connection, settings, values, snapshot=snapshot) as transaction,
                ):
                    yield transaction
            except psycopg.OperationalError as error:
                raise DatabaseUnavailable(type(error).__name__) from error
            except psycopg.Error as error:
                if translated := self._translate_error(error):
                    raise translated from error
                raise


@asynccontextmanager
async def _open_transaction(
    connection: psycopg.AsyncConnection[Any], settings: LiteralString, values: Sequence[str], *, snapshot: bool
) -> AsyncIterator[Transaction]:
    """In autocommit a pipeline is one transaction, which its Sync commits, so that BEGIN and COMMIT are not needed.

    Any exception closes the connection. The pipeline would send its Sync, and so commit, also after an exception in the
    block; a pipeline whose end was cancelled stays open; and psycopg 3.3.9 takes statements for prepared although
    PostgreSQL skipped them after an error.
    """
    try:
        async with connection.pipeline():
            if snapshot:
                await connection.execute(_BEGIN_SNAPSHOT)
            await connection.execute(settings, values)
            try:
                yield Transaction(connection, values[0] if values else NO_USER)
                if snapshot:
                    await connection.execute("COMMIT")
                if connection.pgconn.pipeline_status == PipelineStatus.ABORTED:
                    raise psycopg.errors.InFailedSqlTransaction("an error of a statement was ignored")
            except BaseException:
                await connection.close()
                raise
    except BaseException as error:
        lost = connection.broken
        await connection.close()
        if lost and isinstance(error, psycopg.Error) and not isinstance(error, psycopg.OperationalError):
            raise psycopg.OperationalError("the connection was lost") from error
        raise


def _has_ended(connection: psycopg.AsyncConnection[Any]) -> bool:
    """Whether the server closed an idle connection, without a round trip: its end is all that can be read from it."""
    poll = select.poll()
    poll.register(connection.fileno(), select.POLLIN)
    return bool(poll.poll(0))
