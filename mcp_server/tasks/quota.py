"""How much one user may change and keep, and for how long changes are kept."""

import asyncio
import logging
import math
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, NamedTuple

import psycopg

from common.clock import Clock, utc_now
from common.database import Database, DatabaseUnavailable, Transaction, advisory_locks
from mcp_server.errors import TooManyChanges, TooManyTasks

logger = logging.getLogger(__name__)

DAY = timedelta(days=1)
BUSY = 500  # changes
_AT_ONCE = 1_000  # changes of calls of one user that are under way
_ANY = 2**63 - 1
_SWEEP_SECONDS = 3600.0

# Whether the change that is so many changes back was made within a day; NULL without such a change.
_WITHIN_A_DAY = """
SELECT created_at > %(day_ago)s AS is_within_a_day FROM task_changes WHERE user_id = %(user)s AND id = (
    SELECT id FROM task_changes WHERE user_id = %(user)s ORDER BY id DESC OFFSET {back} LIMIT 1)"""
_TASKS_EVER = "(SELECT max(last_task_id) FROM people WHERE user_id = %(user)s)"
_BUSY_DAY = f"({_WITHIN_A_DAY.format(back='%(busy)s::bigint')})"
# What the statement that stores a call reads beside it: for most users it tells that no limit is near.
HINTS = f"{_TASKS_EVER} AS tasks_ever, {_BUSY_DAY} AS is_busy_day"
# Where no limit of the user's is near, by the same hints and with the values of `far_from_limits`.
HAS_ROOM = f"""coalesce({_TASKS_EVER}, 0) < %(few)s::bigint
    AND (%(any_changes)s::boolean OR NOT coalesce({_BUSY_DAY}, false))"""
_LOCK = f"SELECT {advisory_locks.QUOTA}"
# Counted no further than the limit.
_COUNT_TASKS = """
SELECT count(*) AS tasks FROM (SELECT FROM tasks WHERE user_id = %(user)s LIMIT %(most)s::bigint) counted"""
_CHANGED_WITHIN_A_DAY = _WITHIN_A_DAY.format(back="%(back)s::bigint")
_READ_TASKS_EVER = f"SELECT {_TASKS_EVER} AS tasks_ever"
_SWEEP = "SELECT count(*) AS calls FROM sweep_task_calls(%(days)s, %(most)s)"


@dataclass(frozen=True)
class Quota:
    """What one user may keep, None for any number."""

    tasks: int | None = None
    changes_per_day: int | None = None


class Hints(NamedTuple):
    """How many tasks a user has ever added, and whether at least `BUSY` changes were made within a day."""

    tasks_ever: int | None
    is_busy_day: bool | None


UNLIMITED = Quota()


def far_from_limits(quota: Quota) -> dict[str, Any] | None:
    """The values of `HAS_ROOM`; None where any change may be one too many."""
    few = max(0, quota.tasks - _AT_ONCE) if quota.tasks is not None else _ANY
    if few == 0 or (quota.changes_per_day is not None and quota.changes_per_day <= BUSY + _AT_ONCE):
        return None
    return {"few": few, "any_changes": quota.changes_per_day is None}


async def check(
    tx: Transaction, quota: Quota, hints: Hints, *, user_id: str, now: datetime, adds: int, changes: int = 1
) -> None:
    """Raises `TooManyTasks` or `TooManyChanges` for a call that is stored already, but has not changed anything yet.

    It adds so many tasks and makes so many changes, those included. Who may add some that nobody foresees waits here,
    too, for `check_kept`: nobody waits for this lock who holds one of the tasks or of the log.
    """
    most = quota.tasks
    tasks_are_near = _are_near(most, hints)
    most_changes = quota.changes_per_day
    changes_are_near = most_changes is not None and (hints.is_busy_day or most_changes <= BUSY + _AT_ONCE)
    if not tasks_are_near and not changes_are_near:
        return
    await tx.execute(_LOCK, user=user_id)
    if most is not None and tasks_are_near and adds and await _count_tasks(tx, user_id, most) + adds > most:
        raise TooManyTasks(most=f"{most:,}")
    if most_changes is not None and changes_are_near:
        back = most_changes - changes
        if back < 0 or await _is_within_a_day(tx, user_id, back, now):
            raise TooManyChanges(most=f"{most_changes:,}")


async def check_kept(tx: Transaction, quota: Quota, hints: Hints, *, user_id: str) -> None:
    """Raises `TooManyTasks` if there are more than may be kept, for a call that has added tasks nobody could foresee.

    It has passed `check`, so no other call of the user near the limit is under way.
    """
    most = quota.tasks
    if most is not None and _are_near(most, hints) and await _count_tasks(tx, user_id, most + 1) > most:
        raise TooManyTasks(most=f"{most:,}")


async def count_free(tx: Transaction, quota: Quota, *, user_id: str) -> int | None:
    """How many tasks may be added, None for more than a call can add."""
    most = quota.tasks
    if most is None:
        return None
    row = await (await tx.execute(_READ_TASKS_EVER, user=user_id)).fetchone()
    if not _are_near(most, Hints(row["tasks_ever"] if row else None, is_busy_day=None)):
        return None
    await tx.execute(_LOCK, user=user_id)
    return most - await _count_tasks(tx, user_id, most)


async def _count_tasks(tx: Transaction, user_id: str, most: int) -> int:
    row = await (await tx.execute(_COUNT_TASKS, user=user_id, most=most)).fetchone()
    return row["tasks"] if row else 0


async def _is_within_a_day(tx: Transaction, user_id: str, back: int, now: datetime) -> bool:
    values = {"user": user_id, "back": back, "day_ago": now - DAY}
    row = await (await tx.execute(_CHANGED_WITHIN_A_DAY, **values)).fetchone()
    return bool(row and row["is_within_a_day"])


def _are_near(most: int | None, hints: Hints) -> bool:
    return most is not None and (hints.tasks_ever or 0) + _AT_ONCE >= most


async def keep_sweeping(database: Database, days: int | None, clock: Clock) -> None:
    """Deletes changes older than so many days, every hour, until cancelled; None keeps all."""
    while days is not None:
        try:
            if swept := await sweep(database, days, clock=clock):
                logger.info("deleted the changes of %d calls older than %d days", swept, days)
        except (psycopg.Error, DatabaseUnavailable) as error:
            logger.warning("old changes could not be deleted, it is tried again: %s", type(error).__name__)
        await asyncio.sleep(_SWEEP_SECONDS)


async def sweep(database: Database, days: int, *, clock: Clock = utc_now, at_once: int = 1_000) -> int:
    """Deletes what is older, that of so many calls in a transaction; returns how many calls there were."""
    swept = 0
    days += math.ceil((utc_now() - clock()) / DAY)  # the database counts back from its own clock
    while True:
        async with database.system_transaction() as tx:
            deleted = await tx.execute(_SWEEP, days=days, most=at_once)
        row = await deleted.fetchone()
        portion = row["calls"] if row else 0
        swept += portion
        if portion < at_once:
            return swept
