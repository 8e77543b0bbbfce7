"""Tasks by their ids, with those that were deleted and can be brought back."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from sqlalchemy import bindparam, select
from sqlalchemy.dialects.postgresql import ARRAY
from sqlalchemy.ext.asyncio import AsyncEngine

from mcp_server.tasks.changes import OWNER, WITHIN, Caller
from mcp_server.tasks.lists.deleted import DELETED
from mcp_server.tasks.task import TASKS, Stored, Task
from service.database import Statement, pipelined

MOST = 1_000
_IDS: Any = bindparam("ids", type_=ARRAY(TASKS.c.id.type))
_THERE = Statement(
    select(*(TASKS.c[name] for name in Stored.model_fields)).where(TASKS.c.user_id == OWNER, TASKS.c.id == _IDS.any_())
)
_GONE = Statement(
    select(*(DELETED.c[name] for name in (*Stored.model_fields, "deleted_at"))).where(DELETED.c.id == _IDS.any_())
)
# Of each task the newest change that changed something and can be undone, or that has undone another: then the batch is
# that of the other.
_LAST_CHANGES = Statement("""
    SELECT last.task_id, made.batch, last.undoes IS NOT NULL AS is_undone
    FROM unnest(%(ids)s::bigint[]) AS wanted (id)
    CROSS JOIN LATERAL (
        SELECT task_id, call_id, undoes, created_at FROM task_changes
        WHERE user_id = %(owner)s AND task_id = wanted.id AND before IS DISTINCT FROM after
        ORDER BY id DESC LIMIT 1
    ) last
    LEFT JOIN task_changes undone ON undone.user_id = %(owner)s AND undone.id = last.undoes
    JOIN task_calls made ON made.user_id = %(owner)s AND made.id = coalesce(undone.call_id, last.call_id)
    WHERE made.batch IS NOT NULL AND (last.undoes IS NOT NULL OR last.created_at > %(since)s)
""")


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


async def by_id(engine: AsyncEngine, caller: Caller, ids: Collection[int]) -> Found:
    """Those of the caller's that are there, in order of their ids. One round trip."""
    owned = {"owner": caller.user_id, "ids": [*ids]}
    since = caller.clock() - WITHIN
    async with pipelined(engine, caller.user_id) as pipeline:
        there = await pipeline.send(_THERE, **owned)
        gone = await pipeline.send(_GONE, **owned, since=since)
        changes = await pipeline.send(_LAST_CHANGES, **owned, since=since)
    found = [Stored.model_validate(row).told() for row in await there.fetchall()]
    found += [
        Stored.model_validate(row).told() | {"deleted": True, "deleted_at": row["deleted_at"]}
        for row in await gone.fetchall()
    ]
    tasks = sorted(map(Task.model_validate, found), key=lambda task: task.id)
    return Found(tasks, [LastChange(**row) for row in await changes.fetchall()])
