"""How much one person may change and keep, and for how long changes are kept."""

import asyncio
import logging
import math
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import BigInteger, Boolean, Select, and_, bindparam, false, func, literal, or_, select, text
from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeout
from sqlalchemy.ext.asyncio import AsyncEngine

from mcp_server.errors import TooManyChanges, TooManyTasks
from mcp_server.models import Person, TaskChange, TaskRow
from service.clock import Clock
from service.database import Session, system_transaction, utc_now

log = logging.getLogger(__name__)

TASKS, CHANGES = TaskRow.metadata.tables["tasks"], TaskChange.metadata.tables["task_changes"]
PEOPLE = Person.metadata.tables["people"]
OWNER, _MOST = bindparam("owner"), bindparam("most")
Hints = Any  # a row with columns as attributes
DAY = timedelta(days=1)
_BUSY = 500  # changes
_AT_ONCE = 1_000  # changes of calls of one person that are under way
_ANY = 2**63 - 1
# One at a time per person, or calls at the same time would all see the last free place; not the lock of the turns.
_ONE_BY_ONE = select(func.pg_advisory_xact_lock(func.hashtextextended(OWNER, 1)))
# Counted no further than the limit.
_TASKS = select(func.count()).select_from(select(literal(1)).where(TASKS.c.user_id == OWNER).limit(_MOST).subquery())


def _within_a_day(back: Any) -> Select[Any]:
    """Whether the change that is so many changes back was made within a day; no row or NULL without such a change."""
    newest_first = select(CHANGES.c.id).where(CHANGES.c.user_id == OWNER).order_by(CHANGES.c.id.desc())
    return select(CHANGES.c.created_at > bindparam("day_ago")).where(
        CHANGES.c.id == newest_first.offset(back).limit(1).scalar_subquery(), CHANGES.c.user_id == OWNER
    )


_CHANGES = _within_a_day(_MOST)
_EVER = select(func.max(PEOPLE.c.last_task_id)).where(PEOPLE.c.user_id == OWNER).scalar_subquery().label("tasks_ever")
_TASKS_EVER = select(_EVER)
_BUSY_DAY = _within_a_day(literal(_BUSY)).scalar_subquery().label("busy_day")
HINTS = (_EVER, _BUSY_DAY)
"""What the statement that claims a change reads beside it: for most people it tells that no limit is near."""
HAS_ROOM = and_(
    func.coalesce(_EVER, 0) < bindparam("few", type_=BigInteger),
    or_(bindparam("any_changes", type_=Boolean), ~func.coalesce(_BUSY_DAY, false(), type_=Boolean)),
)
"""Where no limit of the person's is near, by the same hints and with the parameters of `far`."""
_SWEEP = text("SELECT count(*) FROM sweep_task_calls(:days, :most)")
_SWEEP_SECONDS = 3600.0


@dataclass(frozen=True)
class Quota:
    """What one person may keep, None for any number."""

    tasks: int | None = None
    changes_per_day: int | None = None


UNLIMITED = Quota()


def far(quota: Quota) -> dict[str, Any] | None:
    """The parameters of `HAS_ROOM`; None where any change may be one too many."""
    few = max(0, quota.tasks - _AT_ONCE) if quota.tasks is not None else _ANY
    any_changes = quota.changes_per_day is None
    if few == 0 or (quota.changes_per_day is not None and quota.changes_per_day <= _BUSY + _AT_ONCE):
        return None
    return {"few": few, "any_changes": any_changes}


async def check(
    session: Session,
    quota: Quota,
    hints: Hints,
    *,
    user_id: str,
    now: datetime,
    adds: int,
    changes: int = 1,
) -> None:
    """Raise `TooManyTasks` or `TooManyChanges` for a call that is logged already, but has not changed anything yet.

    It adds so many tasks and makes so many changes, those included. Who may add some that nobody foresees waits here,
    too, for `check_kept`: nobody waits for this lock who holds one of the tasks or of the log.
    """
    most = quota.tasks
    tasks_are_near = _are_near(most, hints)
    most_changes = quota.changes_per_day
    changes_are_near = most_changes is not None and (hints.busy_day or most_changes <= _BUSY + _AT_ONCE)
    if not tasks_are_near and not changes_are_near:
        return
    await session.execute(_ONE_BY_ONE, {"owner": user_id})
    if most is not None and tasks_are_near and adds:
        found = await session.scalar(_TASKS, {"owner": user_id, "most": most}) or 0
        if found + adds > most:
            raise TooManyTasks(most=f"{most:,}")
    if most_changes is not None and changes_are_near:
        left = most_changes - changes
        params = {"owner": user_id, "most": left, "day_ago": now - DAY}
        if left < 0 or await session.scalar(_CHANGES, params):
            raise TooManyChanges(most=f"{most_changes:,}")


async def check_kept(session: Session, quota: Quota, hints: Hints, *, user_id: str) -> None:
    """Raise `TooManyTasks` if there are more than may be kept, for a call that has added tasks nobody could foresee.

    It has passed `check`, so no other call of the person near the limit is under way.
    """
    most = quota.tasks
    if most is None or not _are_near(most, hints):
        return
    if (await session.scalar(_TASKS, {"owner": user_id, "most": most + 1}) or 0) > most:
        raise TooManyTasks(most=f"{most:,}")


async def room(session: Session, quota: Quota, *, user_id: str) -> int | None:
    """How many tasks may be added, None for more than a call can add."""
    most = quota.tasks
    if most is None or not _are_near(most, (await session.execute(_TASKS_EVER, {"owner": user_id})).all()[0]):
        return None
    await session.execute(_ONE_BY_ONE, {"owner": user_id})
    return most - (await session.scalar(_TASKS, {"owner": user_id, "most": most}) or 0)


def _are_near(most: int | None, hints: Hints) -> bool:
    return most is not None and (hints.tasks_ever or 0) + _AT_ONCE >= most


async def keep_sweeping(engine: AsyncEngine, days: int | None, clock: Clock) -> None:
    """Delete changes older than so many days, every hour, until cancelled; None keeps all."""
    while days is not None:
        try:
            if swept := await sweep(engine, days, clock=clock):
                log.info("deleted the changes of %d calls older than %d days", swept, days)
        except (DBAPIError, PoolTimeout, OSError) as error:
            log.warning("old changes could not be deleted, it is tried again: %s", type(error).__name__)
        await asyncio.sleep(_SWEEP_SECONDS)


async def sweep(engine: AsyncEngine, days: int, *, clock: Clock = utc_now, at_once: int = 1_000) -> int:
    """Delete what is older, that of so many calls in a transaction; returns how many calls there were."""
    swept = 0
    days += math.ceil((utc_now() - clock()) / DAY)  # the database counts back from its own clock
    while True:
        async with system_transaction(engine) as session:
            connection = await session.connection()
            portion = await connection.scalar(_SWEEP, {"days": days, "most": at_once}) or 0
        swept += portion
        if portion < at_once:
            return swept
