"""Adds, completes, updates and deletes tasks; each call is one transaction with its log."""

from collections.abc import Sequence
from datetime import time
from typing import Any

from common.database import Transaction
from common.pauses import with_pauses
from mcp_server.errors import NextIsOpen, NothingOverdue, NothingToUpdate, TaskNotFound, TitleOfMany
from mcp_server.tasks import changes, zones
from mcp_server.tasks.changes import Caller, LoggedChange
from mcp_server.tasks.fields import Task, TaskPatch
from mcp_server.tasks.lists.statements import DUE_DAY
from mcp_server.tasks.patches import apply_patch, create_next_task, drop_reminder_without_time
from mcp_server.tasks.results import Result, render_changed, render_deleted, render_tasks
from mcp_server.tasks.zones import Now

MAX_MOVED = 100
_OVERDUE = f"""
SELECT id FROM tasks
WHERE user_id = %(user)s AND status = 'pending' AND {DUE_DAY} <= %(today)s::date
    AND (due_on < %(today)s::date OR due_time < %(clock)s::time)
ORDER BY {DUE_DAY}, id LIMIT %(most)s"""
_OPEN_OF_SERIES = "SELECT id FROM tasks WHERE user_id = %(user)s AND series = %(series)s AND status = 'pending'"


async def add_tasks(
    tx: Transaction, caller: Caller, *, title: str, patch: TaskPatch, also: Sequence[str] = ()
) -> Result:
    titles = [title, *also]
    others: dict[str, Any] = {"also": [*also]} if also else {}
    arguments = {"title": title, "description": "", **patch, **others}

    async def work() -> list[LoggedChange]:
        now = await _get_now(tx, caller, needed="due" in patch)
        new = apply_patch(Task.new(title, now.instant), patch, now)
        tasks = await changes.number_tasks(tx, [new.model_copy(update={"title": title}) for title in titles])
        return [LoggedChange(None, task) for task in tasks]

    log = await changes.make_call(tx, caller, operation="add", arguments=arguments, work=work)
    return render_tasks(log, [change.task.id for change in log], user_id=caller.user_id)


async def complete_tasks(tx: Transaction, caller: Caller, ids: Sequence[int]) -> Result:
    """A task that is completed already stays as it is, and its log row has no change."""

    async def work() -> list[LoggedChange]:
        tasks = await _lock_tasks(tx, ids)
        now = await _get_now(tx, caller, needed=any(task.repeat for task in tasks))
        log = [LoggedChange(task, _complete_task(task, now)) async for task in with_pauses(tasks)]
        return log + await _add_next_tasks(tx, log, now)

    arguments = changes.get_id_arguments(ids)
    log = await changes.make_call(tx, caller, operation="complete", arguments=arguments, work=work)
    return render_changed(log, ids, user_id=caller.user_id)


async def update_tasks(tx: Transaction, caller: Caller, ids: Sequence[int], patch: TaskPatch) -> Result:
    if not patch:
        raise NothingToUpdate
    if "title" in patch and len(ids) > 1:
        raise TitleOfMany

    async def work() -> list[LoggedChange]:
        tasks = await _lock_tasks(tx, ids)
        dated = "due" in patch or "repeat" in patch
        now = await _get_now(tx, caller, needed=dated or any(task.repeat for task in tasks))
        log = [LoggedChange(task, await _update_task(tx, task, patch, now)) async for task in with_pauses(tasks)]
        return log + await _add_next_tasks(tx, log, now)

    arguments = changes.get_id_arguments(ids) | patch
    log = await changes.make_call(tx, caller, operation="update", arguments=arguments, work=work)
    return render_changed(log, ids, user_id=caller.user_id)


async def move_overdue(tx: Transaction, caller: Caller, part: str) -> Result:
    """Moves to today the overdue tasks of longest ago, at most `MAX_MOVED`, without times that have passed."""

    async def work() -> list[LoggedChange]:
        now = await zones.get_now(tx, caller)
        minute = now.local.replace(second=0, microsecond=0)
        clock = {"today": minute.date(), "clock": minute.time()}
        rows = await (await tx.execute(_OVERDUE, **clock, most=MAX_MOVED)).fetchall()
        if not rows:
            raise NothingOverdue
        tasks = await _lock_tasks(tx, [row["id"] for row in rows])
        return [LoggedChange(task, _move_to_today(task, now, minute.time())) async for task in with_pauses(tasks)]

    arguments = {"move_overdue": part}
    log = await changes.make_call(tx, caller, operation="update", arguments=arguments, work=work)
    return render_tasks(log, [change.task.id for change in log], user_id=caller.user_id)


def _move_to_today(task: Task, now: Now, clock: time) -> Task:
    has_passed = task.due_time is not None and task.due_time < clock
    moved = {"due_on": now.local.date(), "due_time": None if has_passed else task.due_time}
    return drop_reminder_without_time(task.model_copy(update={**moved, "updated_at": now.instant}), {})


async def delete_tasks(tx: Transaction, caller: Caller, ids: Sequence[int]) -> Result:
    async def work() -> list[LoggedChange]:
        return [LoggedChange(task, None) for task in await _lock_tasks(tx, ids)]

    arguments = changes.get_id_arguments(ids)
    log = await changes.make_call(tx, caller, operation="delete", arguments=arguments, work=work)
    return render_deleted(log, ids, user_id=caller.user_id)


async def _get_now(tx: Transaction, caller: Caller, *, needed: bool) -> Now:
    """Reads the user's zone only if it matters."""
    return await zones.get_now(tx, caller) if needed else Now(caller.clock(), caller.usual_zone)


async def _lock_tasks(tx: Transaction, ids: Sequence[int]) -> list[Task]:
    tasks = await changes.lock_tasks(tx, ids)
    if not tasks:
        raise TaskNotFound(task_id=ids[0])
    return [*tasks.values()]


async def _update_task(tx: Transaction, task: Task, patch: TaskPatch, now: Now) -> Task:
    changed = apply_patch(task, patch, now)
    if patch.keys() != {"status"}:
        changed = changed.model_copy(update={"updated_at": now.instant})
    status = patch.get("status")
    if status == "completed":
        return _complete_task(changed, now)
    if status == "pending" and task.status == "completed":
        if task.series is not None:
            await _check_series(tx, task)
        return changed.model_copy(update={"status": "pending", "completed_at": None, "updated_at": now.instant})
    return changed


async def _check_series(tx: Transaction, task: Task) -> None:
    rows = await tx.execute(_OPEN_OF_SERIES, series=task.series)
    if (open_one := await rows.fetchone()) is not None:
        raise NextIsOpen(task_id=task.id, next_id=open_one["id"])


def _complete_task(task: Task, now: Now) -> Task:
    if task.status == "completed":
        return task
    return task.model_copy(update={"status": "completed", "completed_at": now.instant, "updated_at": now.instant})


async def _add_next_tasks(tx: Transaction, log: Sequence[LoggedChange], now: Now) -> list[LoggedChange]:
    """Returns the additions of the tasks that follow repeating ones which these changes complete."""
    completed = [
        change.after
        for change in log
        if change.before and change.after and (change.before.status, change.after.status) == ("pending", "completed")
    ]
    successors = [task for task in (create_next_task(task, now) for task in completed) if task is not None]
    if not successors:
        return []
    return [LoggedChange(None, task) for task in await changes.number_tasks(tx, successors)]
