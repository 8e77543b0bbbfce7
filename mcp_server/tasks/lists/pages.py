"""The list of a user's tasks, a page at a time."""

import asyncio
from collections.abc import Mapping
from typing import Any

from common.database import Transaction
from mcp_server.tasks import dates, zones
from mcp_server.tasks.changes import WITHIN, Caller
from mcp_server.tasks.dates import Due
from mcp_server.tasks.lists import filters, statements
from mcp_server.tasks.lists.query import MOST_COUNTED, ListQuery, read_cursor, write_cursor
from mcp_server.tasks.lists.spelling import nearest
from mcp_server.tasks.results import Result, render_row

_MOST_LOOKED_AT = 1_000  # titles
_MOST_NEAR = 5


async def list_page(
    tx: Transaction, caller: Caller, query: ListQuery, *, cursor: str | None = None, limit: int = 50
) -> Result:
    """Tasks in the order that is asked for; what is added or deleted between pages moves none of the others.

    A page has `limit` tasks, or as many as fit into `PAGE_BYTES`.
    """
    query = query.in_one_spelling()
    position = read_cursor(cursor, query) if cursor is not None else None
    now = await zones.now(tx, caller)
    values = filters.filter_values(query, now)
    conditions, deleted = filters.conditions(values), query.status == "deleted"
    values |= {"user": caller.user_id, "since": now.instant - WITHIN, "most": limit + 1, "counted": MOST_COUNTED}
    values |= {"page_bytes": statements.PAGE_BYTES} | (statements.position_values(position) if position else {})
    statement = statements.page(conditions, query.sorting, deleted=deleted, continues=position is not None)
    rows = await (await tx.execute(statement, **values)).fetchall()
    found = total = rows[0]["found"] if rows else 0
    if position or found > limit:
        counted = await (await tx.execute(statements.count(conditions, deleted=deleted), **values)).fetchone()
        total = counted["total"] if counted else 0
    page = rows[:limit]
    return {
        "tasks": [render_row(row) for row in page],
        "next_cursor": write_cursor(query, page[-1]) if found > len(page) else None,
        "total": total,
        "now": dates.shown(Due(now.local.date(), now.local.time())),
        "time_zone": now.zone.key,
        "nearest": [] if rows or position else await _nearest(tx, query, values),
    }


async def _nearest(tx: Transaction, query: ListQuery, values: Mapping[str, Any]) -> list[Result]:
    """Of the same status, of which open ones are meant where none is named."""
    if query.query is None:
        return []
    status = {"all": "pending"}.get(query.status, query.status)
    deleted = status == "deleted"
    statement = statements.titles([] if deleted else ["status = %(status)s"], deleted=deleted)
    rows = await tx.execute(statement, **{**values, "status": status, "most": _MOST_LOOKED_AT})
    titles = [(row["id"], row["title"]) for row in await rows.fetchall()]
    # In a thread, because this many titles hold up everybody else's calls.
    near = await asyncio.to_thread(nearest, query.query, titles, most=_MOST_NEAR)
    return [{"id": id, "title": title} for id, title in near]
