"""How much one person may change and keep, and for how long changes are kept."""

import asyncio
import logging
from dataclasses import dataclass

from sqlalchemy import bindparam, func, literal, select, text
from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeout
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from mcp_server.errors import TooManyChanges, TooManyTasks
from mcp_server.models import TaskChange, TaskRow
from service.database import system_transaction

log = logging.getLogger(__name__)

TASKS, CHANGES = TaskRow.metadata.tables["tasks"], TaskChange.metadata.tables["task_changes"]
_OWNER, _MOST = bindparam("owner"), bindparam("most")
# One at a time per person, or calls at the same time would all see the last free place; not the lock of the turns.
_ONE_BY_ONE = select(func.pg_advisory_xact_lock(func.hashtextextended(_OWNER, 1)))
# Counted no further than the limit.
_TASKS = select(func.count()).select_from(select(literal(1)).where(TASKS.c.user_id == _OWNER).limit(_MOST).subquery())
# Whether the change that is `most` changes back was made within a day.
_CHANGES = select(CHANGES.c.created_at > func.now() - func.make_interval(0, 0, 0, 1)).where(
    CHANGES.c.id
    == select(CHANGES.c.id)
    .where(CHANGES.c.user_id == _OWNER)
    .order_by(CHANGES.c.id.desc())
    .offset(_MOST)
    .limit(1)
    .scalar_subquery(),
    CHANGES.c.user_id == _OWNER,
)
_SWEEP = text("SELECT count(*) FROM sweep_task_changes(:days, :most)")
_SWEEP_SECONDS = 3600.0


@dataclass(frozen=True)
class Quota:
    """What one person may keep, None for any number."""

    tasks: int | None = None
    changes_per_day: int | None = None


UNLIMITED = Quota()


async def check(connection: AsyncConnection, quota: Quota, *, user_id: str, adds: bool) -> None:
    """Raise `TooManyTasks` or `TooManyChanges` for a change that is logged already, but not made yet."""
    if quota == UNLIMITED:
        return
    await connection.execute(_ONE_BY_ONE, {"owner": user_id})
    if adds and quota.tasks is not None:
        found = await connection.scalar(_TASKS, {"owner": user_id, "most": quota.tasks})
        if found == quota.tasks:
            raise TooManyTasks(most=f"{quota.tasks:,}")
    if quota.changes_per_day is not None and await connection.scalar(
        _CHANGES, {"owner": user_id, "most": quota.changes_per_day}
    ):
        raise TooManyChanges(most=f"{quota.changes_per_day:,}")


async def keep_sweeping(engine: AsyncEngine, days: int | None) -> None:
    """Delete changes older than so many days, every hour, until cancelled; None keeps all."""
    while days is not None:
        try:
            if swept := await sweep(engine, days):
                log.info("deleted %d changes older than %d days", swept, days)
        except (DBAPIError, PoolTimeout, OSError) as error:
            log.warning("old changes could not be deleted, it is tried again: %s", type(error).__name__)
        await asyncio.sleep(_SWEEP_SECONDS)


async def sweep(engine: AsyncEngine, days: int, *, at_once: int = 1_000) -> int:
    """Delete what is older, so many changes in a transaction; returns how many there were."""
    swept = 0
    while True:
        async with system_transaction(engine) as session:
            connection = await session.connection()
            portion = await connection.scalar(_SWEEP, {"days": days, "most": at_once}) or 0
        swept += portion
        if portion < at_once:
            return swept
