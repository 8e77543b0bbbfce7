"""Transactions whose statements wait for each other, with the driver's own cursors.

What opens the transaction goes to PostgreSQL together with the first statement, and the Sync at the end commits it: a
round trip less than `transaction`, and none of SQLAlchemy's work beside the compiled statement.
"""

from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from functools import lru_cache
from typing import Any

import psycopg
from sqlalchemy import Executable
from sqlalchemy.ext.asyncio import AsyncEngine

from service.database.engine import as_sqlalchemy
from service.database.pipeline import Pipeline, Statement, pipelined

# Tables' statements are built once, those of lists once for each set of filters.
_compiled = lru_cache(maxsize=1_000)(Statement)


class Rows:
    """What a statement returned, each row with its columns as attributes."""

    def __init__(self, rows: list[Any]) -> None:
        self._rows = rows

    def __iter__(self) -> Iterator[Any]:
        return iter(self._rows)

    def all(self) -> list[Any]:
        return self._rows

    def one_or_none(self) -> Any:
        assert len(self._rows) <= 1
        return self._rows[0] if self._rows else None


class Session:
    """A transaction of one person, as much of SQLAlchemy's as statements of tables need."""

    def __init__(self, pipeline: Pipeline) -> None:
        self._pipeline = pipeline

    async def execute(self, clause: Executable, parameters: Mapping[str, Any] | None = None) -> Rows:
        try:
            return Rows(await self._pipeline.rows(_compiled(clause), parameters or {}))
        except psycopg.Error as error:
            raise as_sqlalchemy(error, lost=self._pipeline.is_lost) from error

    async def scalar(self, clause: Executable, parameters: Mapping[str, Any] | None = None) -> Any:
        row = next(iter(await self.execute(clause, parameters)), None)
        return row and row[0]


@asynccontextmanager
async def stepwise(engine: AsyncEngine, user_id: str) -> AsyncIterator[Session]:
    """One transaction as `transaction` opens it."""
    async with pipelined(engine, user_id) as pipeline:
        yield Session(pipeline)
