"""Tasks by their ids, with those that were deleted and can be brought back."""

from collections.abc import Collection
from dataclasses import dataclass

from common.database import Database
from mcp_server.tasks.changes import WITHIN, Caller
from mcp_server.tasks.lists.statements import DELETED
from mcp_server.tasks.task import TASK_COLUMNS, StoredTask, Task

MOST = 1_000
_EXISTING = f"SELECT {TASK_COLUMNS} FROM tasks WHERE user_id = %(user)s AND id = ANY(%(ids)s::bigint[])"
_DELETED = f"SELECT {TASK_COLUMNS}, deleted_at FROM {DELETED} WHERE id = ANY(%(ids)s::bigint[])"
# Of each task the newest change that changed something and can be undone, or that has undone another: then the batch is
# that of the other.
_LAST_CHANGES = """
SELECT last.task_id, made.batch, last.undoes IS NOT NULL AS is_undone
FROM unnest(%(ids)s::bigint[]) AS wanted (id)
CROSS JOIN LATERAL (
    SELECT task_id, call_id, undoes, created_at FROM task_changes
    WHERE user_id = %(user)s AND task_id = wanted.id AND before IS DISTINCT FROM after
    ORDER BY id DESC LIMIT 1
) last
LEFT JOIN task_changes undone ON undone.user_id = %(user)s AND undone.id = last.undoes
JOIN task_calls made ON made.user_id = %(user)s AND made.id = coalesce(undone.call_id, last.call_id)
WHERE made.batch IS NOT NULL AND (last.undoes IS NOT NULL OR last.created_at > %(since)s)"""


@dataclass(frozen=True)
class LastChange:
    """The batch with which a task was changed last, and whether that was undone."""

    task_id: int
    batch: str
    is_undone: bool


@dataclass(frozen=True)
class Found:
    tasks: list[Task]
    last_changes: list[LastChange]
    """Also those of tasks that are not there any more."""


async def by_id(database: Database, caller: Caller, ids: Collection[int]) -> Found:
    """Those of the caller's that exist, in order of their ids. One round trip."""
    values = {"user": caller.user_id, "ids": [*ids], "since": caller.clock() - WITHIN}
    async with database.transaction(caller.user_id) as tx:
        existing = await tx.execute(_EXISTING, **values)
        deleted = await tx.execute(_DELETED, **values)
        changes = await tx.execute(_LAST_CHANGES, LastChange, **values)
    rows = [StoredTask.model_validate(row).render() for row in await existing.fetchall()]
    rows += [
        StoredTask.model_validate(row).render() | {"deleted": True, "deleted_at": row["deleted_at"]}
        for row in await deleted.fetchall()
    ]
    tasks = sorted(map(Task.model_validate, rows), key=lambda task: task.id)
    return Found(tasks, await changes.fetchall())
