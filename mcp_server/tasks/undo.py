"""Undoes the last change of a task, called again the one before it, or all changes of a batch; undoes an undo.

A batch is the changes of a run or of a click. Undone a second time, the batch of an undo makes its changes again: they
are logged like new ones, so that they can be undone again. A batch may have thousands of tasks, of 12 kB each: they are
read and written in parts, in one transaction, and others are served between two statements.
"""

from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from itertools import groupby
from typing import Any, LiteralString

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
# So that the file of an import that was undone can be imported again.
_RELEASE_KEYS_OF_IMPORT = """
UPDATE task_calls SET idempotency_key = NULL WHERE user_id = %(user)s AND batch = %(batch)s AND actor = 'import'"""

Row = Mapping[str, Any]
_MAX_NAMED = 5  # tasks in an error
# The ids of tasks to restore from the changes of a batch. Deleted ones come first, then completed ones, so that two
# tasks of a repeat are never open at the same time.
_TASKS_OF_BATCH = """
SELECT coalesce(array_agg(task_id ORDER BY rank, task_id), '{}') AS ids, min(first) AS first, max(newest) AS newest
FROM (
    SELECT c.task_id, min(c.id) AS first, max(c.created_at) AS newest, (array_agg(
        CASE c.before->>'status' WHEN 'pending' THEN 2 WHEN 'completed' THEN 1 ELSE 0 END ORDER BY c.id))[1] AS rank
    FROM task_calls k JOIN task_changes c ON c.user_id = k.user_id AND c.call_id = k.id
    WHERE k.user_id = %(user)s AND k.batch = %(batch)s AND c.user_id = %(user)s AND """
_LEFT = f"{_TASKS_OF_BATCH}{CAN_BE_UNDONE} GROUP BY c.task_id) by_task"
# What a batch has undone, if it is an undo of a batch.
_UNDONE = f"{_TASKS_OF_BATCH}k.arguments ? 'undo_batch' AND c.undoes IS NOT NULL GROUP BY c.task_id) by_task"
# As a subquery, so that it is read by its tasks: by its batch, each part would read all.
_UNDONE_OF_TASKS = """
SELECT c.task_id, c.before, c.after FROM task_changes c
WHERE c.user_id = %(user)s AND c.task_id = ANY(%(ids)s::bigint[]) AND c.id >= %(first)s AND c.undoes IS NOT NULL
    AND (SELECT batch FROM task_calls WHERE user_id = %(user)s AND id = c.call_id) = %(batch)s
ORDER BY c.task_id, c.id"""
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
    """Restores each task as it was before the batch; raises `ChangedSince`. The result has the last hundred tasks.

    Changes that are undone already, and undos in a run, are skipped.
    """

    async def parts() -> AsyncIterator[list[LoggedChange]]:
        left = await _list_tasks(tx, _LEFT, batch)
        async for log in (_undo if left["ids"] else _redo)(tx, caller, batch, left):
            yield log

    arguments = {"undo_batch": batch}
    log = await changes.make_call_in_parts(tx, caller, operation="undo", arguments=arguments, parts=parts)
    return render_restored_batch(log, user_id=caller.user_id)


async def _list_tasks(tx: Transaction, statement: LiteralString, batch: str) -> Row:
    row = await (await tx.execute(statement, batch=batch)).fetchone()
    assert row is not None
    return row


async def _undo(tx: Transaction, caller: Caller, batch: str, left: Row) -> AsyncIterator[list[LoggedChange]]:
    if left["newest"] <= caller.clock() - UNDO_PERIOD:
        raise NothingInBatch
    changed_since: list[str] = []
    for ids in changes.split(left["ids"]):
        now = await changes.lock_tasks(tx, ids)
        # By task and in order, from the first of the batch on.
        since = await tx.execute(_SINCE, ids=ids, first=left["first"])
        log = _undo_tasks(await since.fetchall(), batch, now, caller, changed_since)
        if not changed_since:
            yield log
    if changed_since:
        raise ChangedSince(tasks=_join_names(changed_since))
    await tx.execute(_RELEASE_KEYS_OF_IMPORT, batch=batch)


async def _redo(tx: Transaction, caller: Caller, batch: str, _: Row) -> AsyncIterator[list[LoggedChange]]:
    """Undoes the undo of a batch, if its tasks are as it left them."""
    undone = await _list_tasks(tx, _UNDONE, batch)
    if not undone["ids"] or undone["newest"] <= caller.clock() - UNDO_PERIOD:
        raise NothingInBatch
    changed_since: list[str] = []
    is_redone = True
    for ids in changes.split(undone["ids"]):
        now = await changes.lock_tasks(tx, ids)
        rows = await tx.execute(_UNDONE_OF_TASKS, ids=ids, first=undone["first"], batch=batch)
        log: list[LoggedChange] = []
        for id, task_rows in groupby(await rows.fetchall(), key=lambda row: row["task_id"]):
            made = [parse_change(row) for row in task_rows]
            is_redone = is_redone and _is_same(now.get(id), made[0].before)
            if not _is_same(now.get(id), made[-1].after):
                changed_since.append(_name(made[-1].task))
            log.append(LoggedChange(now.get(id), _touch(made[0].before, caller)))
        if not changed_since:
            yield log
    if is_redone:
        raise NothingInBatch
    if changed_since:
        raise ChangedSince(tasks=_join_names(changed_since))


def _is_same(task: Task | None, other: Task | None) -> bool:
    """Whether two states of a task differ by nothing but the time of their change."""
    return _without_update(task) == _without_update(other)


def _without_update(task: Task | None) -> Task | None:
    return task and task.model_copy(update={"updated_at": task.created_at})


def _touch(task: Task | None, caller: Caller) -> Task | None:
    return task and task.model_copy(update={"updated_at": caller.clock()})


def _undo_tasks(
    since: Iterable[Row], batch: str, now: Mapping[int, Task], caller: Caller, changed_since: list[str]
) -> list[LoggedChange]:
    """Undoes the changes of a part of the tasks; adds the names of those that were changed since to `changed_since`."""
    log: list[LoggedChange] = []
    for id, rows in groupby(since, key=lambda row: row["task_id"]):
        task_rows = list(rows)
        first = next((nth for nth, row in enumerate(task_rows) if row["batch"] == batch), len(task_rows))
        if any(row["batch"] != batch for row in task_rows[first:]):
            changed_since.append(_name(now.get(id) or parse_change(task_rows[-1]).task))
        log += _undo_each(now.get(id), task_rows[first:], caller)
    return log


def _undo_each(task: Task | None, rows: Sequence[Row], caller: Caller) -> list[LoggedChange]:
    log: list[LoggedChange] = []
    for row in reversed(rows):
        restored = _touch(parse_change(row).before, caller)
        log.append(LoggedChange(task, restored, undoes=row["id"]))
        task = restored
    return log


def _name(task: Task) -> str:
    return f"task {task.id} ({to_printable(task.title)})"


def _join_names(tasks: Sequence[str]) -> str:
    names = [*tasks[:_MAX_NAMED]]
    if more := len(tasks) - len(names):
        names.append(f"{more} more")
    return " and ".join(filter(None, [", ".join(names[:-1]), names[-1]]))
