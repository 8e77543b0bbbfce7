"""Renders the results of the tools, as `schemas.py` publishes them.

The result of a change depends only on its log, so that a repeated call gets the same result.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from common.clock import to_utc
from mcp_server.tasks.changes import LoggedChange
from mcp_server.tasks.dates import Due, render_due
from mcp_server.tasks.fields import Task

Result = dict[str, Any]
"""Has dates and times as objects, which `render_structured` and `render_for_model` render."""

_NOT_FOR_MODELS = {"user_id", "created_at", "updated_at", "deleted_at", "series", "task"}
_ALWAYS = {"tasks", "next_cursor", "total"}


def render_structured(result: Any) -> Any:
    """Renders the values for programs, as `schemas.py` publishes them."""
    match result:
        case dict():
            return {name: render_structured(value) for name, value in result.items()}
        case list():
            return [render_structured(value) for value in result]
        case Due():
            return {"date": f"{result.day}", "time": None if result.time is None else f"{result.time:%H:%M}"}
        case datetime():
            return result.isoformat(timespec="seconds")
        case _:
            return result


def render_for_model(result: Any) -> Any:
    """Renders dates as `add_task` reads them; leaves out empty values, the user, timestamps and fields for programs."""
    if isinstance(result, Due):
        return render_due(result)
    if isinstance(result, datetime):
        return render_due(Due(result.date(), result.time()))
    if isinstance(result, dict):
        fields = {name: render_for_model(value) for name, value in result.items() if name not in _NOT_FOR_MODELS}
        return {name: value for name, value in fields.items() if name in _ALWAYS or value not in (None, "", [])}
    return [render_for_model(value) for value in result] if isinstance(result, list) else result


def render_row(row: Mapping[str, Any], *, user_id: str) -> Result:
    """Renders a row of tasks; that of a deleted task has `deleted_at`."""
    deleted_at = row.get("deleted_at")
    moment = to_utc(deleted_at).isoformat().replace("+00:00", "Z") if deleted_at else None
    task = Task.model_validate(row).render(user_id)
    return {**task, "deleted": True if deleted_at else None, "deleted_at": moment}


def render_listed_row(row: Mapping[str, Any], *, user_id: str) -> Result:
    """Renders a row for the read routes, with until when its alert is snoozed, which is no field of a task."""
    return {**render_row(row, user_id=user_id), "snoozed_until": row.get("snoozed_until")}


def render_changed(log: Sequence[LoggedChange], ids: Sequence[int], *, user_id: str) -> Result:
    following = {change.task.series: change.task for change in log if change.before is None}
    changed = {change.task.id: change for change in log if change.before is not None}
    return _render_in_order(changed, ids, following, user_id=user_id)


def render_tasks(log: Sequence[LoggedChange], ids: Sequence[int], *, user_id: str) -> Result:
    return _render_in_order({change.task.id: change for change in log}, ids, {}, user_id=user_id)


def render_restored_batch(log: Sequence[LoggedChange], *, user_id: str) -> Result:
    """Renders the tasks of a batch, without those that an undone completion had added."""
    last = {change.task.id: change for change in log}
    reopened = {change.after.series for change in last.values() if change.after} - {None}
    ids = sorted(id for id, change in last.items() if change.after or change.task.series not in reopened)
    return render_tasks(log, ids, user_id=user_id)


def render_deleted(log: Sequence[LoggedChange], ids: Sequence[int], *, user_id: str) -> Result:
    by_id = {change.task.id: change.task for change in log}
    existing = [id for id in dict.fromkeys(ids) if id in by_id]
    tasks = [by_id[id] for id in existing]
    first, *also = [
        {"id": task.id, "title": task.title, "deleted": True, "task": task.render(user_id)} for task in tasks
    ]
    return {**first, "also": also, "not_found": _list_missing(ids, existing)}


def _render_in_order(
    by_id: Mapping[int, LoggedChange], ids: Sequence[int], following: Mapping[int | None, Task], *, user_id: str
) -> Result:
    existing = [id for id in ids if id in by_id]
    first, *also = [_render_change(by_id[id], following, user_id) for id in existing]
    return {**first, "also": also, "not_found": _list_missing(ids, existing)}


def _render_change(change: LoggedChange, following: Mapping[int | None, Task], user_id: str) -> Result:
    is_completed = change.before and change.before.status == "pending" and change.task.status == "completed"
    next_task = following.get(change.task.series) if is_completed else None
    added = None
    if next_task and next_task.due:
        added = {"id": next_task.id, "due": next_task.due, "task": next_task.render(user_id)}
    deleted = None if change.after else True
    return {**change.task.render(user_id), "deleted": deleted, "deleted_at": None, "next": added}


def _list_missing(ids: Sequence[int], existing: Sequence[int]) -> list[int]:
    return [id for id in dict.fromkeys(ids) if id not in existing]
