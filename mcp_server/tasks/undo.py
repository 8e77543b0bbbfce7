"""Undoes the last change of a task, called again the one before it, or all changes of a batch.

A batch is the changes of a run or of a click.
"""

from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from typing import Any

from common.database import Transaction
from common.tool_server.errors import to_printable
from mcp_server.errors import ChangedSince, NextIsChanged, NothingInBatch, NothingToUndo
from mcp_server.tasks import changes
from mcp_server.tasks.changes import CAN_BE_UNDONE, UNDO_PERIOD, Caller, LoggedChange, parse_change
from mcp_server.tasks.fields import Task
from mcp_server.tasks.results import Result, render_restored_batch, render_tasks

_LAST = f"""
SELECT c.id, c.call_id, c.before, c.after FROM task_changes c
WHERE c.user_id = %(user)s AND c.task_id = %(task)s AND c.created_at > %(since)s AND {CAN_BE_UNDONE}
ORDER BY c.id DESC LIMIT 1"""
_ADDED_BY_CALL = """
SELECT id, task_id FROM task_changes WHERE user_id = %(user)s AND call_id = %(call)s AND before IS NULL"""

Row = Mapping[str, Any]
_MAX_NAMED = 5  # tasks in an error
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
    """Restores each task as it was before its last change: a deleted task is added, an added one deleted."""

    async def work() -> list[LoggedChange]:
        now = await changes.lock_tasks(tx, ids)
        # By the change they undo: a task may be named and be removed with another.
        log: dict[int | None, LoggedChange] = {}
        for id in ids:
            log |= {change.undoes: change for change in await _undo_task(tx, caller, id, now.get(id))}
        return [*log.values()]

    arguments = changes.get_id_arguments(ids) | {"undo": True}
    log = await changes.make_call(tx, caller, operation="undo", arguments=arguments, work=work)
    # Without those that were removed together with an undone completion.
    return render_tasks(log, ids, user_id=caller.user_id)


async def _undo_task(tx: Transaction, caller: Caller, id: int, task: Task | None) -> list[LoggedChange]:
    last = await _find_last_change(tx, caller, id)
    if last is None:
        raise NothingToUndo(task_id=id)
    removals = await _remove_next_task(tx, caller, last) if last["before"] is not None else []
    return [*_undo_each(task, [last], caller), *removals]


async def _find_last_change(tx: Transaction, caller: Caller, id: int) -> dict[str, Any] | None:
    rows = await tx.execute(_LAST, task=id, since=caller.clock() - UNDO_PERIOD)
    return await rows.fetchone()


async def _remove_next_task(tx: Transaction, caller: Caller, completion: dict[str, Any]) -> list[LoggedChange]:
    """Removes the next task that a completion added; raises `NextIsChanged` if it was changed later."""
    series = parse_change(completion).task.series
    rows = await tx.execute(_ADDED_BY_CALL, call=completion["call_id"])
    added = {row["task_id"]: row["id"] for row in await rows.fetchall()}
    locked = await changes.lock_tasks(tx, [*added]) if series is not None and added else {}
    following = [task for task in locked.values() if task.series == series]
    for task in following:
        last = await _find_last_change(tx, caller, task.id)
        if last is None or last["id"] != added[task.id]:
            raise NextIsChanged(next_id=task.id)
    return [LoggedChange(task, None, undoes=added[task.id]) for task in following]


async def undo_batch(tx: Transaction, caller: Caller, batch: str) -> Result:
    """Restores each task as it was before the batch; raises `ChangedSince`.

    Changes that are undone already, and undos in the batch, are skipped.
    """

    async def work() -> list[LoggedChange]:
        left = await (await tx.execute(_OF_BATCH, batch=batch)).fetchall()
        if not any(row["created_at"] > caller.clock() - UNDO_PERIOD for row in left):
            raise NothingInBatch
        ids = sorted({row["task_id"] for row in left})
        now = await changes.lock_tasks(tx, ids)
        # By task and in order, from the first of the batch on.
        since = await tx.execute(_SINCE, ids=ids, first=min(row["id"] for row in left))
        return _undo_tasks(await since.fetchall(), batch, now, caller)

    arguments = {"undo_batch": batch}
    log = await changes.make_call(tx, caller, operation="undo", arguments=arguments, work=work)
    return render_restored_batch(log, user_id=caller.user_id)


def _undo_tasks(since: Iterable[Row], batch: str, now: Mapping[int, Task], caller: Caller) -> list[LoggedChange]:
    log: list[LoggedChange] = []
    changed_since: list[Task] = []
    for id, rows in groupby(since, key=lambda row: row["task_id"]):
        task_rows = list(rows)
        first = next((nth for nth, row in enumerate(task_rows) if row["batch"] == batch), len(task_rows))
        if any(row["batch"] != batch for row in task_rows[first:]):
            changed_since.append(now.get(id) or parse_change(task_rows[-1]).task)
        log += _undo_each(now.get(id), task_rows[first:], caller)
    if changed_since:
        raise ChangedSince(tasks=_join_names(changed_since))
    return log


def _undo_each(task: Task | None, rows: Sequence[Row], caller: Caller) -> list[LoggedChange]:
    log: list[LoggedChange] = []
    for row in reversed(rows):
        before = parse_change(row).before
        restored = before and before.model_copy(update={"updated_at": caller.clock()})
        log.append(LoggedChange(task, restored, undoes=row["id"]))
        task = restored
    return log


def _join_names(tasks: Sequence[Task]) -> str:
    names = [f"task {task.id} ({to_printable(task.title)})" for task in tasks[:_MAX_NAMED]]
    if more := len(tasks) - len(names):
        names.append(f"{more} more")
    return " and ".join(filter(None, [", ".join(names[:-1]), names[-1]]))
