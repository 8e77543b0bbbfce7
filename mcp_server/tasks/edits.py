"""What changes a user's tasks: each call in one transaction, logged as it is made."""

from collections.abc import Sequence
from typing import Any

from common.database import Transaction
from common.tool_server.errors import CallError
from mcp_server.errors import NextIsOpen, NothingToUpdate, TaskNotFound, TitleOfMany
from mcp_server.tasks import changes, quota, statements, zones
from mcp_server.tasks.changes import Caller, Change
from mcp_server.tasks.fields import TaskPatch, following, with_fields
from mcp_server.tasks.results import Result, render_added, render_changed, render_deleted
from mcp_server.tasks.task import Task
from mcp_server.tasks.zones import Now

_OPEN_OF_SERIES = "SELECT id FROM tasks WHERE user_id = %(user)s AND series = %(series)s AND status = 'pending'"


async def add(tx: Transaction, caller: Caller, *, title: str, wanted: TaskPatch, also: Sequence[str] = ()) -> Result:
    """Tasks of these titles, all with the same details."""
    titles = [title, *also]
    others: dict[str, Any] = {"also": [*also]} if also else {}
    arguments = {"title": title, "description": "", **wanted.values(), **others}

    async def work(call: int) -> list[Change]:
        now = await _now(tx, caller, needed=wanted.due is not None)
        new = with_fields(Task.new(title, now.instant), wanted, now)
        return await statements.add(tx, caller, call, titles, new)

    made = await _added_at_once(tx, caller, titles, wanted, arguments) or await changes.make(
        tx, caller, operation="add", arguments=arguments, work=work, adds=len(titles), changes=len(titles)
    )
    return render_added(made)


async def _added_at_once(
    tx: Transaction, caller: Caller, titles: Sequence[str], wanted: TaskPatch, arguments: dict[str, Any]
) -> list[Change]:
    """Nothing where the call may have been made before, may be one too many, or cannot be made: that is told later."""
    if (far := quota.far_from_limits(caller.quota)) is None:
        return []
    dated = wanted.due is not None
    now = await zones.load_now(tx, caller) if dated else Now(caller.clock(), caller.usual_zone)
    try:
        new = with_fields(Task.new(titles[0], now.instant), wanted, now)
    except CallError:
        return []
    values = changes.call_values(caller, "add", arguments) | far
    made = await statements.add_with_call(tx, caller, values, titles, new)
    if made:
        await zones.store_zone(tx, caller, now)
    return made


async def complete(tx: Transaction, caller: Caller, ids: Sequence[int]) -> Result:
    """The tasks as completed; one that already was keeps its times, and the log says that nothing changed."""

    async def work(call: int) -> list[Change]:
        found = await _found(tx, caller, ids)
        now = await _now(tx, caller, needed=any(task.repeat for task in found))
        made = [Change(task, _completed(task, now)) for task in found]
        return await _write(tx, caller, call, made, now)

    arguments = _named(ids)
    made = await changes.make(tx, caller, operation="complete", arguments=arguments, work=work, changes=len(ids))
    return render_changed(made, ids)


async def update(tx: Transaction, caller: Caller, ids: Sequence[int], wanted: TaskPatch) -> Result:
    """The tasks with the fields that are given."""
    if not wanted.values():
        raise NothingToUpdate
    if wanted.title is not None and len(ids) > 1:
        raise TitleOfMany

    async def work(call: int) -> list[Change]:
        found = await _found(tx, caller, ids)
        dated = wanted.due is not None or wanted.repeat is not None
        now = await _now(tx, caller, needed=dated or any(task.repeat for task in found))
        made = [Change(task, await _updated(tx, caller, task, wanted, now)) for task in found]
        return await _write(tx, caller, call, made, now)

    arguments = _named(ids) | wanted.values()
    made = await changes.make(tx, caller, operation="update", arguments=arguments, work=work, changes=len(ids))
    return render_changed(made, ids)


async def delete(tx: Transaction, caller: Caller, ids: Sequence[int]) -> Result:
    async def work(call: int) -> list[Change]:
        made = [Change(task, None) for task in await _found(tx, caller, ids)]
        await statements.edit(tx, caller, call, made)
        return made

    arguments = _named(ids)
    made = await changes.make(tx, caller, operation="delete", arguments=arguments, work=work, changes=len(ids))
    return render_deleted(made, ids)


def _named(ids: Sequence[int]) -> dict[str, object]:
    return {"task_id": ids[0], **({"also": [*ids[1:]]} if len(ids) > 1 else {})}


async def _now(tx: Transaction, caller: Caller, *, needed: bool) -> Now:
    """The user's own day is looked up only where it matters."""
    return await zones.now(tx, caller) if needed else Now(caller.clock(), caller.usual_zone)


async def _found(tx: Transaction, caller: Caller, ids: Sequence[int]) -> list[Task]:
    found = await statements.lock(tx, caller, ids)
    if not found:
        raise TaskNotFound(task_id=ids[0])
    return [*found.values()]


async def _updated(tx: Transaction, caller: Caller, task: Task, wanted: TaskPatch, now: Now) -> Task:
    changed = with_fields(task, wanted, now)
    if wanted.values().keys() != {"status"}:
        changed = changed.model_copy(update={"updated_at": now.instant})
    if wanted.status == "completed":
        return _completed(changed, now)
    if wanted.status == "pending" and task.status == "completed":
        if task.series is not None:
            await _check_series(tx, caller, task)
        return changed.model_copy(update={"status": "pending", "completed_at": None, "updated_at": now.instant})
    return changed


async def _check_series(tx: Transaction, caller: Caller, task: Task) -> None:
    """Of the tasks of one repeat only one is open."""
    rows = await tx.execute(_OPEN_OF_SERIES, user=caller.user_id, series=task.series)
    if (open_one := await rows.fetchone()) is not None:
        raise NextIsOpen(task_id=task.id, next_id=open_one["id"])


def _completed(task: Task, now: Now) -> Task:
    if task.status == "completed":
        return task
    return task.model_copy(update={"status": "completed", "completed_at": now.instant, "updated_at": now.instant})


async def _write(tx: Transaction, caller: Caller, call: int, made: list[Change], now: Now) -> list[Change]:
    """Write the changes, with the tasks that those leave behind which repeat and are completed by them."""
    ended = [change.after for change in made if change.before and change.after and _ends(change.before, change.after)]
    successors = [task for task in (following(task, now) for task in ended) if task is not None]
    if successors:
        numbers = await statements.reserve_ids(tx, caller, len(successors))
        made += [
            Change(None, task.model_copy(update={"id": number}))
            for number, task in zip(numbers, successors, strict=True)
        ]
    await statements.edit(tx, caller, call, made)
    return made


def _ends(before: Task, after: Task) -> bool:
    return (before.status, after.status) == ("pending", "completed")
