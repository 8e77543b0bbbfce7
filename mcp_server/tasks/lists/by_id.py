"""Tasks by their ids, with those that were deleted and can be brought back."""

from collections.abc import Collection
from typing import Any

from sqlalchemy import bindparam, select
from sqlalchemy.dialects.postgresql import ARRAY
from sqlalchemy.ext.asyncio import AsyncEngine

from mcp_server.tasks.changes import OWNER, WITHIN, Caller
from mcp_server.tasks.lists.deleted import DELETED
from mcp_server.tasks.task import TASKS, Stored, Task
from service.database import Statement, pipelined

MOST = 100
_IDS: Any = bindparam("ids", type_=ARRAY(TASKS.c.id.type))
_THERE = Statement(
    select(*(TASKS.c[name] for name in Stored.model_fields)).where(TASKS.c.user_id == OWNER, TASKS.c.id == _IDS.any_())
)
_GONE = Statement(
    select(*(DELETED.c[name] for name in (*Stored.model_fields, "deleted_at"))).where(DELETED.c.id == _IDS.any_())
)


async def by_id(engine: AsyncEngine, caller: Caller, ids: Collection[int]) -> list[Task]:
    """Those of the caller's that are there, in order of their ids. One round trip."""
    owned = {"owner": caller.user_id, "ids": [*ids]}
    async with pipelined(engine, caller.user_id) as pipeline:
        there = await pipeline.send(_THERE, **owned)
        gone = await pipeline.send(_GONE, **owned, since=caller.clock() - WITHIN)
    found = [Stored.model_validate(row).told() for row in await there.fetchall()]
    found += [
        Stored.model_validate(row).told() | {"deleted": True, "deleted_at": row["deleted_at"]}
        for row in await gone.fetchall()
    ]
    return sorted(map(Task.model_validate, found), key=lambda task: task.id)
