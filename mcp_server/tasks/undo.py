"""Undoes the last change of a task, the next time the one before it, or all changes of a batch of calls.

A batch is what an answer, or a click in it, has done.
"""

from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from typing import Any

from common.database import Transaction, advisory_locks
from common.tool_server.errors import to_printable
from mcp_server.errors import ChangedSince, NextIsChanged, NothingInBatch, NothingToUndo
from mcp_server.tasks import changes, statements
from mcp_server.tasks.changes import CAN_BE_UNDONE, WITHIN, Caller, Change, change_of
from mcp_server.tasks.results import Result, render_restored, render_restored_batch
from mcp_server.tasks.task import Task

_LAST = f"""
SELECT c.id, c.call_id, c.before, c.after FROM task_changes c
WHERE c.user_id = %(user)s AND c.task_id = %(task)s AND c.created_at > %(since)s AND {CAN_BE_UNDONE}
ORDER BY c.id DESC LIMIT 1"""
_ADDED_BY_CALL = """
SELECT id, task_id FROM task_changes WHERE user_id = %(user)s AND call_id = %(call)s AND before IS NULL"""
_LOCK_UNDO = f"SELECT {advisory_locks.UNDO}"

Row = Mapping[str, Any]
_NAMED = 5  # tasks of a refusal
_OF_BATCH = f"""
SELECT c.id, c.task_id, c.created_at
FROM task_calls k JOIN task_changes c ON c.user_id = k.user_id AND c.call_id = k.id
WHERE k.user_id = %(user)s AND k.batch = %(batch)s AND c.user_id = %(user)s AND {CAN_BE_UNDONE}"""
_SINCE = f"""
SELECT c.id, c.task_id, c.before, c.after, k.batch
FROM task_changes c JOIN task_calls k ON k.user_id = c.user_id AND k.id = c.call_id
WHERE c.user_id = %(user)s AND c.task_id = ANY(%(ids)s::bigint[]) AND c.id >= %(first)s AND k.user_id = %(user)s
    AND {CAN_BE_UNDONE}
ORDER BY c.task_id, c.id"""


async def undo_last(tx: Transaction, caller: Caller, ids: Sequence[int]) -> Result:
    """Each task as it was before its last change: a deleted one comes back, an added one goes."""

    async def work(call: int) -> list[Change]:
        await tx.execute(_LOCK_UNDO, user=caller.user_id)
        now = await statements.lock(tx, caller, ids)
        made: dict[int | None, Change] = {}  # by what they undo: a task may be named that goes with another
        for id in ids:
            made |= {change.undoes: change for change in await _undone(tx, caller, id, now.get(id))}
        await statements.edit(tx, caller, call, [*made.values()])
        return [*made.values()]

    arguments: dict[str, object] = {"task_id": ids[0], "undo": True, **({"also": [*ids[1:]]} if len(ids) > 1 else {})}
    made = await changes.make(tx, caller, operation="undo", arguments=arguments, work=work, changes=len(ids))
    return render_restored(made, ids)


async def _undone(tx: Transaction, caller: Caller, id: int, task: Task | None) -> list[Change]:
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


async def undo_batch(tx: Transaction, caller: Caller, batch: str) -> Result:
    """Each task of the batch as it was before it, or `ChangedSince`; what undid something else stays as it is.

    A change that was undone already is passed over.
    """
    left = await _left(tx, caller, batch)

    async def work(call: int) -> list[Change]:
        await tx.execute(_LOCK_UNDO, user=caller.user_id)
        ids = sorted({row["task_id"] for row in left})
        now = await statements.lock(tx, caller, ids)
        made = _undo_tasks(await _since(tx, caller, ids, left), batch, now, caller)
        await statements.edit(tx, caller, call, made)
        return made

    arguments = {"undo_batch": batch}
    made = await changes.make(tx, caller, operation="undo", arguments=arguments, work=work, changes=max(len(left), 1))
    return render_restored_batch(made)


async def _left(tx: Transaction, caller: Caller, batch: str) -> Sequence[Row]:
    """The batch's changes that stand; none of a batch that ended too long ago."""
    left = await (await tx.execute(_OF_BATCH, user=caller.user_id, batch=batch)).fetchall()
    return left if any(row["created_at"] > caller.clock() - WITHIN for row in left) else []


async def _since(tx: Transaction, caller: Caller, ids: Sequence[int], left: Sequence[Row]) -> Sequence[Row]:
    """What stands of the tasks' changes, from the batch's first on, by task and in order."""
    if not left:
        return []
    first = min(row["id"] for row in left)
    return await (await tx.execute(_SINCE, user=caller.user_id, ids=[*ids], first=first)).fetchall()


def _undo_tasks(since: Iterable[Row], batch: str, now: Mapping[int, Task], caller: Caller) -> list[Change]:
    made: list[Change] = []
    changed_since: list[Task] = []
    for id, rows in groupby(since, key=lambda row: row["task_id"]):
        of_task = list(rows)
        first = next((nth for nth, row in enumerate(of_task) if row["batch"] == batch), len(of_task))
        if any(row["batch"] != batch for row in of_task[first:]):
            changed_since.append(now.get(id) or change_of(of_task[-1]).task)
        made += _undo_each(now.get(id), of_task[first:], caller)
    if changed_since:
        raise ChangedSince(tasks=_named(changed_since))
    if not made:
        raise NothingInBatch
    return made


def _undo_each(task: Task | None, rows: Sequence[Row], caller: Caller) -> list[Change]:
    """The changes that undo these, the newest first."""
    made: list[Change] = []
    for row in reversed(rows):
        was = change_of(row).before
        restored = was and was.model_copy(update={"updated_at": caller.clock()})
        made.append(Change(task, restored, undoes=row["id"]))
        task = restored
    return made


def _named(tasks: Sequence[Task]) -> str:
    names = [f"task {task.id} ({to_printable(task.title)})" for task in tasks[:_NAMED]]
    if more := len(tasks) - len(names):
        names.append(f"{more} more")
    return " and ".join(filter(None, [", ".join(names[:-1]), names[-1]]))
