"""Transactions in one round trip: who asks and the statements are sent together, then read together.

To PostgreSQL all that is sent before a Sync is one transaction, without BEGIN and COMMIT, which would cost as much as
two more statements; the pipeline sends the Sync at its end.
"""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import psycopg
from psycopg.pq import PipelineStatus, TransactionStatus
from psycopg.rows import dict_row, namedtuple_row
from sqlalchemy import Executable
from sqlalchemy.dialects.postgresql import psycopg as dialect
from sqlalchemy.exc import TimeoutError as PoolTimeout
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from service.database.engine import all_lent, as_sqlalchemy, transaction_span
from service.telemetry import traces

Result = psycopg.AsyncCursor[dict[str, Any]]

_DIALECT = dialect.dialect()
_AS = "SELECT set_config('role', 'todo_app', true), set_config('todo.user_id', %(user)s, true)"


class Statement:
    """A statement built of tables, compiled once: that takes longer than PostgreSQL needs to run it.

    Or its text, as the driver takes it.
    """

    def __init__(self, clause: Executable | str) -> None:
        if isinstance(clause, str):
            self.text, self._encoded, self._constants = clause, clause.encode(), dict[str, Any]()
            self._writers, self.returns_rows = dict[str, Any](), True
            return
        compiled = clause.compile(dialect=_DIALECT, compile_kwargs={"render_postcompile": True})  # pyright: ignore[reportAttributeAccessIssue]
        self.text = str(compiled)
        self._encoded = self.text.encode()
        self.returns_rows = bool(getattr(clause, "exported_columns", True))  # of SQL in words nobody knows
        self._constants = {name: value for name, value in compiled.params.items() if value is not None}
        kinds = {name: parameter.type.dialect_impl(_DIALECT) for name, parameter in compiled.binds.items()}
        writers = {name: kind.bind_processor(_DIALECT) for name, kind in kinds.items()}
        self._writers = {name: write for name, write in writers.items() if write is not None}

    def with_parameters(self, given: Mapping[str, Any]) -> tuple[bytes, dict[str, Any]]:
        return self._encoded, {**self._constants, **given}

    def written(self, given: Mapping[str, Any]) -> tuple[bytes, dict[str, Any]]:
        """As `with_parameters`, of values as SQLAlchemy takes them, such as JSON."""
        values = {name: write(given[name]) for name, write in self._writers.items() if name in given}
        return self.with_parameters({**given, **values})


class Pipeline:
    """A transaction of one person that is being put together."""

    def __init__(self, connection: psycopg.AsyncConnection[Any]) -> None:
        self._connection = connection

    async def send(self, statement: Statement, **parameters: Any) -> Result:
        """The statement's result, which costs a round trip when it is read before the transaction has ended."""
        traces.statement(statement.text)
        cursor = self._connection.cursor(row_factory=dict_row)
        await cursor.execute(*statement.with_parameters(parameters))
        return cursor

    async def rows(self, statement: Statement, parameters: Mapping[str, Any]) -> list[Any]:
        """The statement's rows, with columns as attributes and values as SQLAlchemy takes them; a round trip.

        One that returns none is only sent: where it fails, the next that is read raises its error, or the end.
        """
        traces.statement(statement.text)
        cursor = self._connection.cursor(row_factory=namedtuple_row)
        await cursor.execute(*statement.written(parameters))
        return await cursor.fetchall() if statement.returns_rows else []

    @property
    def is_lost(self) -> bool:
        return self._connection.closed


class Undone(Exception):
    """Raised in a transaction of which nothing is to stay, and caught around it."""


@asynccontextmanager
async def pipelined(engine: AsyncEngine, user_id: str, *, within: float | None = None) -> AsyncIterator[Pipeline]:
    """One transaction as `transaction` opens it, for statements that do not wait for each other.

    Results are read after the block, when the transaction is committed. Raises SQLAlchemy's errors, as `transaction`:
    its `TimeoutError`, with nothing sent, where all connections are lent for longer than `within` seconds.
    """
    async with transaction_span(), _connected(engine, within) as connection:
        driver: psycopg.AsyncConnection[Any] = (await connection.get_raw_connection()).driver_connection  # pyright: ignore[reportAssignmentType]
        try:
            async with driver.pipeline():
                await driver.execute(_AS, {"user": user_id})
                try:
                    yield Pipeline(driver)
                except BaseException:
                    if driver.pgconn.pipeline_status != PipelineStatus.ABORTED:  # else nothing of it can be committed
                        await _hold_back(driver)
                    raise
        except BaseException as error:
            lost = driver.closed
            # Where a statement failed, all of it is undone, but the driver takes those after it for prepared.
            if lost or driver.info.transaction_status == TransactionStatus.IDLE:
                await connection.invalidate()
            if isinstance(error, psycopg.Error):
                raise as_sqlalchemy(error, lost=lost) from error
            raise
        finally:
            # Who was cancelled while its end was awaited leaves a pipeline open, which nobody else could use.
            if not driver.closed and driver.pgconn.pipeline_status != PipelineStatus.OFF:
                await connection.invalidate()


@asynccontextmanager
async def _connected(engine: AsyncEngine, within: float | None) -> AsyncIterator[AsyncConnection]:
    async with AsyncExitStack() as stack:
        try:
            async with asyncio.timeout(within if all_lent(engine) else None):  # a new one may take its time
                connection = await stack.enter_async_context(engine.connect())
        except TimeoutError as error:
            raise PoolTimeout("no connection was free in time") from error
        yield connection


async def _hold_back(driver: psycopg.AsyncConnection[Any]) -> None:
    """Let the pipeline's end not commit: the pool rolls back what comes back to it in a transaction that was begun."""
    try:
        await driver.execute("BEGIN")
    except BaseException as error:
        driver.pgconn.finish()
        if not isinstance(error, psycopg.Error):
            raise
