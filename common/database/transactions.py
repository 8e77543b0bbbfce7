"""Transactions that see the rows of one user, by row-level security."""

import asyncio
import logging
import select
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, LiteralString, Self, TypeVar

import psycopg
from psycopg.pq import PipelineStatus
from psycopg.rows import DictRow, class_row
from psycopg_pool import AsyncConnectionPool

from common.fair_shares import FairQueue, QueueTimeout, Release, ShareExceeded
from common.pauses import Pauses
from common.telemetry import traces

Row = TypeVar("Row")

# The policies of each table check this role and this user. These settings end with the transaction.
_SET_USER = """
SELECT set_config('role', 'todo_app', true), set_config('todo.user_id', %s, true),
    set_config('search_path', 'public', true)"""
_SET_USER_AND_TIMEOUT = f"{_SET_USER}, set_config('statement_timeout', %s, true)"
# The policy for the tables' owner checks this setting; other logins still see no row.
_SET_ALL_USERS = "SELECT set_config('todo.all_people', 'on', true), set_config('search_path', 'public', true)"
_BEGIN_SNAPSHOT = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
NO_USER = ""
"""Sees no rows: for SECURITY DEFINER functions."""
_NOTIFY = "SELECT pg_notify(%(channel)s, %(payload)s)"
_FETCH = "FETCH 100 FROM rows_read"
_LIFT_TIMEOUTS = """
SELECT set_config('statement_timeout', '0', true), set_config('idle_in_transaction_session_timeout', '0', true)"""

_MAX_WAITING = 200  # transactions of one user
_SERVICE_CONNECTIONS = 1
_MIN_POOL_SECONDS = 0.5

CONNECTION_OPTIONS: dict[str, Any] = {"autocommit": True, "application_name": "todo"}


class DatabaseUnavailable(Exception):
    """The database cannot be reached, has no connection free, or ended the transaction (deadlock, timeout, shutdown).

    Trying again may succeed. If the connection was lost while the transaction ended, it may have been committed.
    """


class UserShareExceeded(DatabaseUnavailable):
    """One user's transactions use so many connections, for so long, that this one of the same user was not begun."""


class StatementTimeout(DatabaseUnavailable):
    """A statement took longer than its transaction allows."""


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

    At most `user_share` connections are used for one user at the same time; None: any number. Transactions without a
    connection wait, the users in turn, for at most `queue_seconds`. One connection is for the service itself, which
    does not wait: for `NO_USER`, and as the login. `translate_error` may return an exception to raise in place of an
    error of PostgreSQL.
    """

    def __init__(
        self,
        url: str,
        *,
        prepared: bool = True,
        pool_size: int = 10,
        pool_timeout_seconds: float = 10,
        user_share: int | None = None,
        queue_seconds: float = 10,
        translate_error: Callable[[psycopg.Error], Exception | None] = lambda _: None,
    ) -> None:
        self._translate_error = translate_error
        self._pool_timeout_seconds = pool_timeout_seconds
        self._queue = FairQueue(
            max(1, pool_size - _SERVICE_CONNECTIONS),
            user_share,
            most_waiting=_MAX_WAITING,
            timeout_seconds=queue_seconds,
        )
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

    def transaction(
        self, user_id: str, *, snapshot: bool = False, statement_seconds: float | None = None
    ) -> AbstractAsyncContextManager[Transaction]:
        """Runs a transaction of one user in one round trip: the end of the block commits, and an exception rolls back.

        With `snapshot` all its statements read the same state of the database, and none may write. A statement that
        takes longer than `statement_seconds` ends it with `StatementTimeout`; usually the login's limit counts. Raises
        `DatabaseUnavailable`, and psycopg's errors, such as one for a violated constraint. An exception costs a
        connection: raise errors that are part of normal operation after the block, if need be after `roll_back`.
        """
        if statement_seconds is None:
            return self._begin(_SET_USER, [user_id], user_id=user_id, snapshot=snapshot)
        values = [user_id, f"{round(statement_seconds * 1000)}ms"]
        return self._begin(_SET_USER_AND_TIMEOUT, values, user_id=user_id, snapshot=snapshot)

    async def fetch_all(
        self, user_id: str, statement: LiteralString, row: type[Row] = dict[str, Any], /, **values: Any
    ) -> list[Row]:
        async with self.transaction(user_id) as tx:
            cursor = await tx.execute(statement, row, **values)
        return await fetch_rows(cursor)

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

    def login_connection(self) -> AbstractAsyncContextManager[psycopg.AsyncConnection[Any]]:
        """Lends a connection as the login itself, in autocommit: to check the database, not for rows of users."""
        return self._lend_connection(self._pool_timeout_seconds)

    @asynccontextmanager
    async def _lend_connection(self, timeout_seconds: float) -> AsyncIterator[psycopg.AsyncConnection[Any]]:
        while True:
            connection = await self._pool.getconn(timeout_seconds)
            try:
                if not _has_ended(connection):
                    yield connection
                    return
                await connection.close()
            finally:
                # psycopg_pool 3.3.3 loses a connection whose return is cancelled while its lock is held.
                await asyncio.shield(self._pool.putconn(connection))

    @asynccontextmanager
    async def _lend_user_connection(self, user_id: str) -> AsyncIterator[psycopg.AsyncConnection[Any]]:
        """Lends a connection within the user's share. Nobody may wait for a second one while holding one."""
        started_at = time.monotonic()
        release = await self._wait_in_queue(user_id)
        rest = self._pool_timeout_seconds - (time.monotonic() - started_at)
        try:
            async with self._lend_connection(max(rest, _MIN_POOL_SECONDS)) as connection:
                yield connection
        finally:
            release()

    async def _wait_in_queue(self, user_id: str) -> Release:
        try:
            return await self._queue.take(user_id)
        except QueueTimeout as error:
            raise DatabaseUnavailable("no connection was free") from error
        except ShareExceeded as error:
            if self._pool.get_stats()["requests_waiting"]:  # those who were let in get no connection, either
                raise DatabaseUnavailable("no connection") from error
            raise UserShareExceeded("the user's share of the connections is used") from error

    @asynccontextmanager
    async def _begin(
        self, settings: LiteralString, values: Sequence[str], *, user_id: str = NO_USER, snapshot: bool = False
    ) -> AsyncIterator[Transaction]:
        lent = self._lend_user_connection(user_id) if user_id != NO_USER else self.login_connection()
        with traces.span("transaction", {"db.system.name": "postgresql"}, kind="CLIENT"):
            try:
                async with (
                    lent as connection,
                    _open_transaction(connection, settings, values, user_id, snapshot=snapshot) as transaction,
                ):
                    yield transaction
            except psycopg.OperationalError as error:
                is_timeout = settings is _SET_USER_AND_TIMEOUT and isinstance(error, psycopg.errors.QueryCanceled)
                raise (StatementTimeout if is_timeout else DatabaseUnavailable)(type(error).__name__) from error
            except psycopg.Error as error:
                if translated := self._translate_error(error):
                    raise translated from error
                raise


async def fetch_rows(cursor: psycopg.AsyncCursor[Row]) -> list[Row]:
    """Reads all rows, whose values may be large; others are served in between."""
    pauses, rows = Pauses(), list[Row]()
    async for row in cursor:
        rows.append(row)
        await pauses.take()
    return rows


@asynccontextmanager
async def _open_transaction(
    connection: psycopg.AsyncConnection[Any],
    settings: LiteralString,
    values: Sequence[str],
    user_id: str,
    *,
    snapshot: bool,
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
                yield Transaction(connection, user_id)
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
