"""The limits of a user's tasks and changes, and the deletion of old changes."""

import logging
import math
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from common.clock import Clock, utc_now
from common.database import Database, Transaction, advisory_locks
from mcp_server.errors import TooManyChanges, TooManyTasks

logger = logging.getLogger(__name__)

DAY = timedelta(days=1)
BUSY_DAY_CHANGES = 500
_MAX_CONCURRENT_CHANGES = 1_000  # of one user
_NO_LIMIT = 2**63 - 1
SWEEP_SECONDS = 3600.0

# Whether the change that is `back` changes before the newest is less than a day old; NULL without such a change.
_WITHIN_A_DAY = """
SELECT created_at > %(day_ago)s AS is_within_a_day FROM task_changes WHERE user_id = %(user)s AND id = (
    SELECT id FROM task_changes WHERE user_id = %(user)s ORDER BY id DESC OFFSET {back} LIMIT 1)"""
_TASKS_EVER = "(SELECT max(last_task_id) FROM people WHERE user_id = %(user)s)"
_BUSY_DAY = f"({_WITHIN_A_DAY.format(back='%(busy)s::bigint')})"
# Columns of the statement that stores a call; for most users they show that no limit is near.
HINTS = f"{_TASKS_EVER} AS tasks_ever, {_BUSY_DAY} AS is_busy_day"
# The condition that no limit is near, with the values of `get_distance_values`.
IS_FAR_FROM_LIMITS = f"""coalesce({_TASKS_EVER}, 0) < %(few)s::bigint
    AND (%(any_changes)s::boolean OR NOT coalesce({_BUSY_DAY}, false))"""
_LOCK = f"SELECT {advisory_locks.QUOTA}"
_COUNT_TASKS = """
SELECT count(*) AS tasks FROM (SELECT FROM tasks WHERE user_id = %(user)s LIMIT %(most)s::bigint) counted"""
_CHANGED_WITHIN_A_DAY = _WITHIN_A_DAY.format(back="%(back)s::bigint")
_READ_TASKS_EVER = f"SELECT {_TASKS_EVER} AS tasks_ever"
_SWEEP = "SELECT count(*) AS calls FROM sweep_task_calls(%(days)s, %(most)s)"


@dataclass(frozen=True)
class TaskQuota:
    """The limits of one user; None for no limit."""

    tasks: int | None = None
    changes_per_day: int | None = None


class Hints(NamedTuple):
    """The number of tasks a user has ever added, and whether there were `BUSY_DAY_CHANGES` changes within a day."""

    tasks_ever: int | None
    is_busy_day: bool | None


UNLIMITED = TaskQuota()


def get_distance_values(quota: TaskQuota) -> dict[str, Any] | None:
    """Returns the values of `IS_FAR_FROM_LIMITS`, or None if the limits are so low that any change may exceed them."""
    few = max(0, quota.tasks - _MAX_CONCURRENT_CHANGES) if quota.tasks is not None else _NO_LIMIT
    if few == 0 or (
        quota.changes_per_day is not None and quota.changes_per_day <= BUSY_DAY_CHANGES + _MAX_CONCURRENT_CHANGES
    ):
        return None
    return {"few": few, "any_changes": quota.changes_per_day is None}


async def check_limits(
    tx: Transaction, quota: TaskQuota, hints: Hints, *, user_id: str, now: datetime, adds: int, changes: int = 1
) -> None:
    """Raises `TooManyTasks` or `TooManyChanges` for a call that is stored, but has not changed anything yet.

    It adds `adds` tasks and makes `changes` changes, those included. Near a limit it takes the user's lock, which must
    come before those of tasks and of the log, also for a call that needs `check_task_count` later.
    """
    most = quota.tasks
    is_near_tasks = _is_near(most, hints)
    most_changes = quota.changes_per_day
    is_near_changes = most_changes is not None and (
        hints.is_busy_day or most_changes <= BUSY_DAY_CHANGES + _MAX_CONCURRENT_CHANGES
    )
    if not is_near_tasks and not is_near_changes:
        return
    await tx.execute(_LOCK, user=user_id)
    if most is not None and is_near_tasks and adds and await _count_tasks(tx, user_id, most) + adds > most:
        raise TooManyTasks(most=f"{most:,}")
    if most_changes is not None and is_near_changes:
        back = most_changes - changes
        if back < 0 or await _is_within_a_day(tx, user_id, back, now):
            raise TooManyChanges(most=f"{most_changes:,}")


async def check_task_count(tx: Transaction, quota: TaskQuota, hints: Hints, *, user_id: str) -> None:
    """Raises `TooManyTasks` for a call that has added tasks whose number was not known before.

    It has passed `check_limits`, so that no other call of the user near the limit runs.
    """
    most = quota.tasks
    if most is not None and _is_near(most, hints) and await _count_tasks(tx, user_id, most + 1) > most:
        raise TooManyTasks(most=f"{most:,}")


async def count_free(tx: Transaction, quota: TaskQuota, *, user_id: str) -> int | None:
    """Returns how many tasks may be added, or None if no limit is near."""
    most = quota.tasks
    if most is None:
        return None
    row = await (await tx.execute(_READ_TASKS_EVER, user=user_id)).fetchone()
    if not _is_near(most, Hints(row["tasks_ever"] if row else None, is_busy_day=None)):
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


def _is_near(most: int | None, hints: Hints) -> bool:
    return most is not None and (hints.tasks_ever or 0) + _MAX_CONCURRENT_CHANGES >= most


async def delete_old_changes(database: Database, days: int, clock: Clock = utc_now, *, batch_size: int = 1_000) -> int:
    """Deletes changes older than `days`, at most `batch_size` calls in a transaction; returns the number of calls."""
    deleted = 0
    days += math.ceil((utc_now() - clock()) / DAY)  # the database uses its own clock
    while True:
        async with database.system_transaction() as tx:
            rows = await tx.execute(_SWEEP, days=days, most=batch_size)
        row = await rows.fetchone()
        calls = row["calls"] if row else 0
        deleted += calls
        if calls < batch_size:
            if deleted:
                logger.info("deleted the changes of %d calls older than %d days", deleted, days)
            return deleted
