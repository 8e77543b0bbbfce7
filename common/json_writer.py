"""Rows as JSON, written while they are read: however many there are, few are in memory."""

import json
from collections.abc import AsyncIterator, Mapping
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

    async def array(self, rows: AsyncIterator[Row]) -> int:
        """Writes an array with an object for each row; returns how many there were."""
        count = 0
        self.text("[")
        async for row in rows:
            self.text(",\n" if count else "\n")
            self.text(_json(row))
            count += 1
        self.text("]")
        return count


def _json(row: Row) -> str:
    return json.dumps(row, ensure_ascii=False, default=_moment)


def _moment(value: Any) -> str:
    """Moments in UTC; days and clock times as they are, which are somebody's own."""
    assert isinstance(value, date | time), type(value)
    return to_utc(value).isoformat() if isinstance(value, datetime) else value.isoformat()
