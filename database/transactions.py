from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import psycopg
from psycopg import sql
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine
from sqlmodel.ext.asyncio.session import AsyncSession

from database.engine import as_sqlalchemy, transaction_span

# No statement of ours takes a second; without a limit, a lock that is never released would hang its caller for ever.
_BEGIN = sql.SQL("BEGIN; SET LOCAL statement_timeout = '10s'")
_BEGIN_AS = sql.SQL("BEGIN; SET LOCAL statement_timeout = '10s'; SET LOCAL ROLE todo_app; SET LOCAL todo.user_id = {}")


@asynccontextmanager
async def transaction(engine: AsyncEngine, user_id: str) -> AsyncIterator[AsyncSession]:
    """One transaction that can see and write the rows of one person only; success commits, an exception rolls back.

    Row-level security holds it, because the role `todo_app` cannot bypass it.
    """
    async with _begin(engine, _BEGIN_AS.format(sql.Literal(user_id))) as session:
        yield session


@asynccontextmanager
async def system_transaction(engine: AsyncEngine) -> AsyncIterator[AsyncSession]:
    """One transaction across people, for the few jobs that need it: take-over of leases, usage."""
    async with _begin(engine, _BEGIN) as session:
        yield session


class _Session(AsyncSession):
    """The ORM over a transaction that is already open; what needs no ORM asks for `connection()` and pays nothing."""

    def __init__(self, connection: AsyncConnection) -> None:
        super().__init__(bind=connection, expire_on_commit=False)
        self._open = connection

    async def connection(self, *_: Any, **__: Any) -> AsyncConnection:
        return self._open


@asynccontextmanager
async def _begin(engine: AsyncEngine, statement: sql.SQL | sql.Composed) -> AsyncIterator[AsyncSession]:
    async with transaction_span(), engine.connect() as connection:
        driver: psycopg.AsyncConnection = (await connection.get_raw_connection()).driver_connection  # pyright: ignore[reportAssignmentType]
        # Several statements in one message need the simple protocol, so this is never prepared.
        try:
            await driver.execute(statement, prepare=False)
        except psycopg.Error as error:
            if driver.closed:
                await connection.invalidate()
            raise as_sqlalchemy(error, lost=driver.closed) from error
        session = _Session(connection)
        try:
            yield session
            if session.in_transaction():
                await session.commit()
            await connection.commit()
        finally:
            if session.in_transaction():
                await session.close()
