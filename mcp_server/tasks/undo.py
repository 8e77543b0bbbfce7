"""Undoes the last change of a task, and the one before it the next time."""

from collections.abc import Sequence
from typing import Any

from common.database import Transaction, advisory_locks
from mcp_server.errors import NextIsChanged, NothingToUndo
from mcp_server.tasks import changes, statements
from mcp_server.tasks.changes import CAN_BE_UNDONE, WITHIN, Caller, Change, change_of
from mcp_server.tasks.results import restored_tasks
from mcp_server.tasks.task import ChangedTask, StoredTask

_LAST = f"""
SELECT c.id, c.call_id, c.before, c.after FROM task_changes c
WHERE c.user_id = %(user)s AND c.task_id = %(task)s AND c.created_at > %(since)s AND {CAN_BE_UNDONE}
ORDER BY c.id DESC LIMIT 1"""
_ADDED_BY_CALL = """
SELECT id, task_id FROM task_changes WHERE user_id = %(user)s AND call_id = %(call)s AND before IS NULL"""
LOCK_UNDO = f"SELECT {advisory_locks.UNDO}"


async def undo(tx: Transaction, caller: Caller, ids: Sequence[int]) -> ChangedTask:
    """Each task as it was before its last change: a deleted one comes back, an added one goes."""

    async def work(call: int) -> list[Change]:
        await tx.execute(LOCK_UNDO, user=caller.user_id)
        now = await statements.lock(tx, caller, ids)
        made: dict[int | None, Change] = {}  # by what they undo: a task may be named that goes with another
        for id in ids:
            made |= {change.undoes: change for change in await _undone(tx, caller, id, now.get(id))}
        await statements.edit(tx, caller, call, [*made.values()])
        return [*made.values()]

    arguments: dict[str, object] = {"task_id": ids[0], "undo": True, **({"also": [*ids[1:]]} if len(ids) > 1 else {})}
    made = await changes.make(tx, caller, operation="undo", arguments=arguments, work=work, changes=len(ids))
    return restored_tasks(made, ids)


async def _undone(tx: Transaction, caller: Caller, id: int, task: StoredTask | None) -> list[Change]:
    last = await _last(tx, caller, id)
    if last is None:
        raise NothingToUndo(task_id=id)
    was = change_of(last).before
    restored = was and was.model_copy(update={"updated_at": caller.clock()})
    left = await _left_behind(tx, caller, last) if was is not None else []
    return [Change(task, restored, undoes=last["id"]), *left]


async def _last(tx: Transaction, caller: Caller, id: int) -> dict[str, Any] | None:
    """The change of a task that would be undone; None if there is none."""
    rows = await tx.execute(_LAST, user=caller.user_id, task=id, since=caller.clock() - WITHIN)
    return await rows.fetchone()


async def _left_behind(tx: Transaction, caller: Caller, completion: dict[str, Any]) -> list[Change]:
    """The task that a completion left behind goes with it, unless somebody has changed it since."""
    series = change_of(completion).task.series
    rows = await tx.execute(_ADDED_BY_CALL, user=caller.user_id, call=completion["call_id"])
    added = {row["task_id"]: row["id"] for row in await rows.fetchall()}
    found = await statements.lock(tx, caller, [*added]) if series is not None and added else {}
    following = [task for task in found.values() if task.series == series]
    for task in following:
        last = await _last(tx, caller, task.id)
        if last is None or last["id"] != added[task.id]:
            raise NextIsChanged(next_id=task.id)
    return [Change(task, None, undoes=added[task.id]) for task in following]
