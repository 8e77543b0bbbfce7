"""Rows as JSON, written while they are read: however many there are, few are in memory."""

import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from datetime import date, datetime, time
from typing import Any, BinaryIO

from common.clock import to_utc

Row = Mapping[str, Any]


class Writer:
    """Writes JSON to a binary file."""

    def __init__(self, out: BinaryIO) -> None:
        self._out = out

    def text(self, text: str) -> None:
        self._out.write(text.encode())

    async def row(self, row: Row) -> None:
        self.text(_json(row))

    async def array(self, rows: AsyncIterator[Row], write: Callable[[Row], Awaitable[None]] | None = None) -> int:
        """Write one element for each row, with `write` where it is more than the row; returns how many."""
        count = 0
        self.text("[")
        async for row in rows:
            self.text(",\n" if count else "\n")
            await (write or self.row)(row)
            count += 1
        self.text("]")
        return count

    async def row_with(self, row: Row, name: str, rows: AsyncIterator[Row]) -> None:
        """Write a row as an object that has further rows as its last member."""
        self.text(_json(row)[:-1] + f", {json.dumps(name)}: ")
        await self.array(rows)
        self.text("}")


def _json(row: Row) -> str:
    return json.dumps(row, ensure_ascii=False, default=_moment)


def _moment(value: Any) -> str:
    """Moments in UTC; days and clock times as they are, which are somebody's own."""
    assert isinstance(value, date | time), type(value)
    return to_utc(value).isoformat() if isinstance(value, datetime) else value.isoformat()
