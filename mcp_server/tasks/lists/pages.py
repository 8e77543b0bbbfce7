import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, LiteralString, Self

from common.database import Transaction
from mcp_server.tasks import zones
from mcp_server.tasks.changes import UNDO_PERIOD, Caller
from mcp_server.tasks.lists import filters, statements
from mcp_server.tasks.lists.query import MAX_COUNTED, ListQuery, Position, read_cursor, write_cursor
from mcp_server.tasks.lists.spelling import find_nearest
from mcp_server.tasks.results import Result, render_row
from mcp_server.tasks.zones import Now

_MAX_COMPARED = 1_000  # titles
_MAX_NEAREST = 5


@dataclass(frozen=True)
class Selection:
    """The tasks of a query after a position, as conditions of SQL with their values."""

    query: ListQuery
    position: Position | None
    now: Now
    clock: datetime
    """The user's time by which tasks are sorted: that of the first page."""
    conditions: Sequence[LiteralString]
    values: Mapping[str, Any]

    @classmethod
    def create(cls, query: ListQuery, cursor: str | None, now: Now, caller: Caller) -> Self:
        """Raises `CursorUnknown` or `CursorOfOtherList`."""
        query = query.normalize()
        position = read_cursor(cursor, query) if cursor is not None else None
        clock = (position and position.clock) or now.local.replace(second=0, microsecond=0)
        values = filters.get_filter_values(query, now)
        conditions = filters.list_conditions(values)
        values |= {"user": caller.user_id, "since": now.instant - UNDO_PERIOD}
        values |= statements.get_sort_values(query.sorting, clock)
        values |= statements.get_position_values(position) if position else {}
        return cls(query, position, now, clock, conditions, values)

    @property
    def deleted(self) -> bool:
        return self.query.status == "deleted"

    def select_page(self, limit: int, offset: int = 0) -> tuple[LiteralString, dict[str, Any]]:
        """Returns the statement of a page, and its values."""
        statement = statements.select_page(
            self.conditions, self.query.sorting, deleted=self.deleted, continues=self.position is not None
        )
        size = {"most": limit + 1, "offset": offset, "page_bytes": statements.MAX_PAGE_BYTES}
        return statement, {**self.values, **size}

    def render_page(
        self,
        rows: Sequence[Mapping[str, Any]],
        limit: int,
        caller: Caller,
        *,
        render: Callable[..., Result] = render_row,
    ) -> Result:
        page = rows[:limit]
        is_last = not rows or rows[0]["matches"] == len(page)
        return {
            "tasks": [render(row, user_id=caller.user_id) for row in page],
            "next_cursor": None if is_last else write_cursor(self.query, page[-1], self.clock),
            "now": self.now.instant.astimezone(self.now.zone),
            "time_zone": self.now.zone.key,
        }


async def list_page(
    tx: Transaction, caller: Caller, query: ListQuery, *, cursor: str | None = None, limit: int = 50
) -> Result:
    """Returns a page of at most `limit` tasks and `MAX_PAGE_BYTES`, after the position of `cursor`."""
    selection = Selection.create(query, cursor, await zones.get_now(tx, caller), caller)
    statement, values = selection.select_page(limit)
    rows = await (await tx.execute(statement, **values)).fetchall()
    total = rows[0]["matches"] if rows else 0
    if selection.position or total > limit:
        counting = statements.count_tasks(selection.conditions, deleted=selection.deleted)
        count_row = await (await tx.execute(counting, **selection.values, counted=MAX_COUNTED)).fetchone()
        total = count_row["total"] if count_row else 0
    return {
        **selection.render_page(rows, limit, caller),
        "total": total,
        "nearest": [] if rows or selection.position else await _find_nearest(tx, selection),
    }


async def _find_nearest(tx: Transaction, selection: Selection) -> list[Result]:
    query = selection.query
    if query.query is None:
        return []
    status = {"all": "pending"}.get(query.status, query.status)
    deleted = status == "deleted"
    statement = statements.select_titles([] if deleted else ["status = %(status)s"], deleted=deleted)
    rows = await tx.execute(statement, **{**selection.values, "status": status, "most": _MAX_COMPARED})
    titles = [(row["id"], row["title"]) for row in await rows.fetchall()]
    # In a thread, because so many titles would delay other calls.
    similar = await asyncio.to_thread(find_nearest, query.query, titles, limit=_MAX_NEAREST)
    return [{"id": id, "title": title} for id, title in similar]
