"""The limits of a user's tasks and changes, and the deletion of old changes."""

import logging
import math
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from common.clock import Clock, utc_now
from common.database import NO_USER, Database, Transaction
from mcp_server.errors import TooManyChanges, TooManyTasks

log = logging.getLogger(__name__)

_DAY = timedelta(days=1)
SWEEP_SECONDS = 3600.0
_MAX_SWEPT_CALLS = 1_000
# Columns of the statement that stores a call: the user's tasks and changes within a day, each counted up to its limit.
# Undos are not counted: there is at most one for each change, and no limit may keep a user from it.
COLUMNS = """
(SELECT count(*) FROM (SELECT FROM tasks WHERE user_id = %(user)s LIMIT %(most_tasks)s::bigint) counted) AS tasks,
(SELECT count(*) FROM (
    SELECT created_at FROM task_changes WHERE user_id = %(user)s AND undoes IS NULL
    ORDER BY id DESC LIMIT %(most_changes)s::bigint
) newest WHERE created_at > %(day_ago)s) AS changes"""
_COUNT_TASKS = "SELECT count(*) AS tasks FROM tasks WHERE user_id = %(user)s"
_SWEEP = "SELECT count(*) AS calls FROM sweep_task_calls(%(days)s, %(most)s)"


@dataclass(frozen=True)
class TaskQuota:
    """The limits of one user; None for no limit."""

    tasks: int | None = None
    changes_per_day: int | None = None

    def get_values(self, now: datetime) -> dict[str, Any]:
        """Returns the values of `COLUMNS`."""
        return {"most_tasks": self.tasks or 0, "most_changes": self.changes_per_day or 0, "day_ago": now - _DAY}

    def check(self, counted: Mapping[str, Any], *, added: int, changes: int) -> None:
        """Raises `TooManyTasks` or `TooManyChanges` for a call that has made so many more than were counted.

        `changes` are those that undo nothing.
        """
        if self.tasks is not None and added > 0 and counted["tasks"] + added > self.tasks:
            raise TooManyTasks(most=f"{self.tasks:,}")
        if self.changes_per_day is not None and counted["changes"] + changes > self.changes_per_day:
            raise TooManyChanges(most=f"{self.changes_per_day:,}")

    async def count_free(self, tx: Transaction) -> int | None:
        """Returns how many tasks may be added, or None without a limit."""
        if self.tasks is None:
            return None
        row = await (await tx.execute(_COUNT_TASKS)).fetchone()
        return max(0, self.tasks - (row["tasks"] if row else 0))


UNLIMITED = TaskQuota()


async def delete_old_changes(database: Database, days: int, clock: Clock) -> None:
    """Deletes changes older than `days`, at most a thousand calls in a transaction."""
    deleted = 0
    days += math.ceil((utc_now() - clock()) / _DAY)  # the database uses its own clock
    while True:
        row = await database.fetch_one(NO_USER, _SWEEP, days=days, most=_MAX_SWEPT_CALLS)
        calls = row["calls"] if row else 0
        deleted += calls
        if calls < _MAX_SWEPT_CALLS:
            if deleted:
                log.info("deleted the changes of %d calls older than %d days", deleted, days)
            return
