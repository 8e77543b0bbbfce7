import asyncio
from collections.abc import Mapping
from typing import Any

from common.database import Transaction
from mcp_server.tasks import zones
from mcp_server.tasks.changes import UNDO_PERIOD, Caller
from mcp_server.tasks.lists import filters, statements
from mcp_server.tasks.lists.query import MAX_COUNTED, ListQuery, read_cursor, write_cursor
from mcp_server.tasks.lists.spelling import find_nearest
from mcp_server.tasks.results import Result, render_row

_MAX_COMPARED = 1_000  # titles
_MAX_NEAREST = 5


async def list_page(
    tx: Transaction, caller: Caller, query: ListQuery, *, cursor: str | None = None, limit: int = 50
) -> Result:
    """Returns a page of at most `limit` tasks and `MAX_PAGE_BYTES`, after the position of `cursor`."""
    query = query.normalize()
    position = read_cursor(cursor, query) if cursor is not None else None
    now = await zones.get_now(tx, caller)
    values = filters.get_filter_values(query, now)
    conditions, deleted = filters.list_conditions(values), query.status == "deleted"
    values |= {"user": caller.user_id, "since": now.instant - UNDO_PERIOD, "most": limit + 1, "counted": MAX_COUNTED}
    values |= {"page_bytes": statements.MAX_PAGE_BYTES} | (statements.get_position_values(position) if position else {})
    statement = statements.select_page(conditions, query.sorting, deleted=deleted, continues=position is not None)
    rows = await (await tx.execute(statement, **values)).fetchall()
    matches = total = rows[0]["matches"] if rows else 0
    if position or matches > limit:
        count_row = await (await tx.execute(statements.count_tasks(conditions, deleted=deleted), **values)).fetchone()
        total = count_row["total"] if count_row else 0
    page = rows[:limit]
    return {
        "tasks": [render_row(row, user_id=caller.user_id) for row in page],
        "next_cursor": write_cursor(query, page[-1]) if matches > len(page) else None,
        "total": total,
        "now": now.instant.astimezone(now.zone),
        "time_zone": now.zone.key,
        "nearest": [] if rows or position else await _find_nearest(tx, query, values),
    }


async def _find_nearest(tx: Transaction, query: ListQuery, values: Mapping[str, Any]) -> list[Result]:
    if query.query is None:
        return []
    status = {"all": "pending"}.get(query.status, query.status)
    deleted = status == "deleted"
    statement = statements.select_titles([] if deleted else ["status = %(status)s"], deleted=deleted)
    rows = await tx.execute(statement, **{**values, "status": status, "most": _MAX_COMPARED})
    titles = [(row["id"], row["title"]) for row in await rows.fetchall()]
    # In a thread, because so many titles would delay other calls.
    similar = await asyncio.to_thread(find_nearest, query.query, titles, limit=_MAX_NEAREST)
    return [{"id": id, "title": title} for id, title in similar]
