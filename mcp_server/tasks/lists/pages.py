"""The list of a person's tasks, a page at a time."""

import asyncio
from collections.abc import Mapping
from typing import Any

from mcp_server.tasks import dates, zones
from mcp_server.tasks.changes import WITHIN, Caller
from mcp_server.tasks.dates import Due
from mcp_server.tasks.lists import filters, statements, wishes
from mcp_server.tasks.lists.nearest import nearest
from mcp_server.tasks.lists.wishes import Wish
from mcp_server.tasks.task import MOST_COUNTED, Near, Stored, Task, TaskPage
from service.database import Session

_MOST_LOOKED_AT = 1_000  # titles
_MOST_NEAR = 5


async def list_page(
    session: Session, caller: Caller, wish: Wish, *, cursor: str | None = None, limit: int = 50
) -> TaskPage:
    """Tasks in the order that is asked for; what is added or deleted between pages moves none of the others.

    A page has `limit` tasks, or as many as fit into `PAGE_BYTES`.
    """
    wish = wish.in_one_spelling()
    position = wishes.read(cursor, wish) if cursor is not None else None
    now = await zones.now(session, caller)
    values = filters.values(wish, now)
    names, deleted = filters.names(values), wish.status == "deleted"
    params = {"owner": caller.user_id, "since": now.instant - WITHIN, "most": limit + 1, "counted": MOST_COUNTED}
    params |= values | (statements.last(position) if position else {})
    statement = statements.page(names, wish.sorting, deleted=deleted, goes_on=position is not None)
    rows = (await session.execute(statement, params)).all()
    found = rows[0].found if rows else 0
    total = found
    if position or found > limit:
        total = await session.scalar(statements.count(names, deleted=deleted), params)
    page = rows[:limit]
    return TaskPage(
        tasks=tuple(_told(row, deleted=deleted) for row in page),
        next_cursor=wishes.written(wish, page[-1]) if found > len(page) else None,
        total=total or 0,
        now=dates.shown(Due(now.local.date(), now.local.time())),
        time_zone=now.zone.key,
        nearest=() if rows or position else await _nearest(session, wish, params),
    )


def _told(row: Any, *, deleted: bool) -> Task:
    gone = {"deleted": True, "deleted_at": row.deleted_at} if deleted else {}
    return Task.model_validate(Stored.model_validate(row).told() | gone)


async def _nearest(session: Session, wish: Wish, params: Mapping[str, Any]) -> tuple[Near, ...]:
    """Of the same status, of which open ones are meant where none is named."""
    if wish.query is None:
        return ()
    status = {"all": "pending"}.get(wish.status, wish.status)
    deleted = status == "deleted"
    statement = statements.titles(() if deleted else ("status",), deleted=deleted)
    params = {**params, "status": status, "most": _MOST_LOOKED_AT}
    rows = (await session.execute(statement, params)).all()
    titles = [(row.id, row.title) for row in rows]
    # In a thread, because this many titles hold up everybody else's calls.
    near = await asyncio.to_thread(nearest, wish.query, titles, most=_MOST_NEAR)
    return tuple(Near(id=id, title=title) for id, title in near)
