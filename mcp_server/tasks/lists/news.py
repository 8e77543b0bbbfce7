"""What was changed since somebody looked: for who shows a list and wants to know when to read it again."""

from typing import NamedTuple

from sqlalchemy import BigInteger, bindparam, func, select, true
from sqlalchemy.ext.asyncio import AsyncEngine

from mcp_server.tasks.changes import CHANGES, OWNER
from service.database import Statement, pipelined

MOST = 1_000  # changes: who has missed more reads the list anew


class News(NamedTuple):
    last: int
    """The number of the newest change, 0 without one; all up to it are in what is read from now on."""
    task_ids: list[int]
    """Of the tasks that were changed, each once, in the order of their changes."""
    more: bool
    """Whether these are not all, so that what was read has to be read anew."""


def _since() -> Statement:
    """One row for each change after the number, and in any case one; each tells the newest change, too."""
    mine = CHANGES.c.user_id == OWNER
    newest = select(func.max(CHANGES.c.id).label("last")).where(mine).subquery("newest")
    after = bindparam("after", type_=BigInteger)
    later = select(CHANGES.c.id, CHANGES.c.task_id).where(mine, CHANGES.c.id > after).order_by(CHANGES.c.id)
    found = later.limit(MOST + 1).subquery("found")
    return Statement(
        select(newest.c.last, found.c.task_id).join_from(newest, found, true(), isouter=True).order_by(found.c.id)
    )


SINCE = _since()
_NEWEST = Statement(select(func.max(CHANGES.c.id).label("last")).where(CHANGES.c.user_id == OWNER))


async def since(engine: AsyncEngine, user_id: str, after: int | None) -> News:
    """What came after a change of this number; without one, only which is the newest. One round trip.

    A person's changes are committed in the order of their numbers (`changes.in_turn`), so none is missed. A number
    beyond the newest is of a log that is not there any more, such as one before a backup was restored.
    """
    async with pipelined(engine, user_id) as pipeline:
        if after is None:
            found = await pipeline.send(_NEWEST, owner=user_id)
        else:
            found = await pipeline.send(SINCE, owner=user_id, after=after)
    rows = await found.fetchall()
    last = rows[0]["last"] or 0
    if after is None:
        return News(last, [], more=False)
    ids = [row["task_id"] for row in rows if row["task_id"] is not None]
    if len(ids) > MOST or after > last:
        return News(last, [], more=True)
    return News(last, [*dict.fromkeys(ids)], more=False)
