from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import psycopg
from psycopg import sql
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine
from sqlmodel.ext.asyncio.session import AsyncSession

from service.database.engine import as_sqlalchemy, transaction_span

_BEGIN = sql.SQL("BEGIN; SET LOCAL ROLE todo_app; SET LOCAL todo.user_id = ''")
_BEGIN_AS_LOGIN = sql.SQL("BEGIN; SET LOCAL todo.all_people = 'on'")
_BEGIN_AS = sql.SQL("BEGIN; SET LOCAL ROLE todo_app; SET LOCAL todo.user_id = {}")


@asynccontextmanager
async def transaction(engine: AsyncEngine, user_id: str) -> AsyncIterator[AsyncSession]:
    """One transaction that can see and write the rows of one person only; success commits, an exception rolls back.

    Row-level security holds it, because the role `todo_app` cannot bypass it.
    """
    async with _begin(engine, _BEGIN_AS.format(sql.Literal(user_id))) as session:
        yield session


@asynccontextmanager
async def system_transaction(engine: AsyncEngine) -> AsyncIterator[AsyncSession]:
    """One transaction of nobody: no row can be seen. What works across people are functions of the tables' owner."""
    async with _begin(engine, _BEGIN) as session:
        yield session


@asynccontextmanager
async def login_transaction(engine: AsyncEngine) -> AsyncIterator[AsyncSession]:
    """One transaction as the login itself: the tables' owner sees all people's rows, the services' login no row."""
    async with _begin(engine, _BEGIN_AS_LOGIN) as session:
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
