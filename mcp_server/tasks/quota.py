"""The limits of a user's tasks and changes, and the deletion of old changes."""

import logging
import math
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from common.clock import Clock, utc_now
from common.database import Database, Transaction, advisory_locks
from mcp_server.errors import TooManyChanges, TooManyTasks

logger = logging.getLogger(__name__)

_DAY = timedelta(days=1)
SWEEP_SECONDS = 3600.0
# Columns of the statement that stores a call: how many tasks the user has, counted up to the limit, and whether the
# change that is `back` changes before the newest is less than a day old.
COLUMNS = """
(SELECT count(*) FROM (SELECT FROM tasks WHERE user_id = %(user)s LIMIT %(most_tasks)s::bigint) counted) AS tasks,
(%(back)s::bigint IS NOT NULL AND EXISTS (
    SELECT FROM task_changes WHERE user_id = %(user)s AND created_at > %(day_ago)s AND id = (
        SELECT id FROM task_changes WHERE user_id = %(user)s ORDER BY id DESC OFFSET %(back)s::bigint LIMIT 1)
)) AS has_many_changes"""
_LOCK = f"SELECT {advisory_locks.QUOTA}"
_COUNT_TASKS = "SELECT count(*) AS tasks FROM tasks WHERE user_id = %(user)s"
_SWEEP = "SELECT count(*) AS calls FROM sweep_task_calls(%(days)s, %(most)s)"


@dataclass(frozen=True)
class TaskQuota:
    """The limits of one user; None for no limit."""

    tasks: int | None = None
    changes_per_day: int | None = None

    async def lock(self, tx: Transaction, user_id: str) -> None:
        """Lets the user's other changes wait, as they could exceed a limit together; before all other locks."""
        if self != UNLIMITED:
            await tx.execute(_LOCK, user=user_id)

    def get_values(self, now: datetime, changes: int) -> dict[str, Any]:
        """Returns the values of `COLUMNS` for a call that makes so many changes; raises `TooManyChanges`."""
        back = None if self.changes_per_day is None else self.changes_per_day - changes
        if back is not None and back < 0:
            raise self._too_many_changes()
        return {"most_tasks": self.tasks or 0, "back": back, "day_ago": now - _DAY}

    def check_changes(self, row: Mapping[str, Any]) -> None:
        if row["has_many_changes"]:
            raise self._too_many_changes()

    def check_tasks(self, row: Mapping[str, Any], added: int) -> None:
        """Raises `TooManyTasks` if so many more tasks than the row counts are too many."""
        if self.tasks is not None and added > 0 and row["tasks"] + added > self.tasks:
            raise TooManyTasks(most=f"{self.tasks:,}")

    async def count_free(self, tx: Transaction, user_id: str) -> int | None:
        """Returns how many tasks may be added, or None without a limit."""
        if self.tasks is None:
            return None
        await self.lock(tx, user_id)
        row = await (await tx.execute(_COUNT_TASKS, user=user_id)).fetchone()
        return max(0, self.tasks - (row["tasks"] if row else 0))

    def _too_many_changes(self) -> TooManyChanges:
        return TooManyChanges(most=f"{self.changes_per_day:,}")


UNLIMITED = TaskQuota()


async def delete_old_changes(database: Database, days: int, clock: Clock = utc_now, *, batch_size: int = 1_000) -> int:
    """Deletes changes older than `days`, at most `batch_size` calls in a transaction; returns the number of calls."""
    deleted = 0
    days += math.ceil((utc_now() - clock()) / _DAY)  # the database uses its own clock
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
