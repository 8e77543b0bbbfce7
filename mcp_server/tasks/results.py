"""The results of the tools, as `schemas.py` publishes them.

Those of a change are made of its log alone, so that a call that is sent again gets the same.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from common.clock import to_utc
from mcp_server.tasks.changes import Change
from mcp_server.tasks.dates import shown
from mcp_server.tasks.task import Task

Result = dict[str, Any]

_NOT_FOR_MODELS = {"created_at", "updated_at", "deleted_at", "series", "task"}
_ALWAYS = {"tasks", "next_cursor", "total"}


def lean(result: Any) -> Any:
    """A result without what says nothing to a model: empty values, moments of the log, and tasks for programs."""
    if isinstance(result, dict):
        fields = {name: lean(value) for name, value in result.items() if name not in _NOT_FOR_MODELS}
        return {name: value for name, value in fields.items() if name in _ALWAYS or value not in (None, "", [])}
    return [lean(value) for value in result] if isinstance(result, list) else result


def render_row(row: Mapping[str, Any]) -> Result:
    """A row with the columns of tasks, and with `deleted_at` if it is of a deleted one."""
    deleted_at = row.get("deleted_at")
    moment = to_utc(deleted_at).isoformat().replace("+00:00", "Z") if deleted_at else None
    return {**Task.model_validate(row).render(), "deleted": True if deleted_at else None, "deleted_at": moment}


def render_changed(made: Sequence[Change], ids: Sequence[int]) -> Result:
    """The tasks in the order of their ids in the call, each with the one that follows it."""
    following = {change.task.series: change.task for change in made if change.before is None}
    return _in_order({change.task.id: change for change in made if change.before is not None}, ids, following)


def render_added(made: Sequence[Change]) -> Result:
    by_id = {change.task.id: change for change in made}
    return _in_order(by_id, sorted(by_id), {})


def render_restored(made: Sequence[Change], ids: Sequence[int]) -> Result:
    """Those of the call, without what a completion had added and was removed with it."""
    return _in_order({change.task.id: change for change in made}, ids, {})


def render_restored_batch(made: Sequence[Change]) -> Result:
    """All of a batch, without what a completion that was undone had added."""
    last = {change.task.id: change for change in made}
    reopened = {change.after.series for change in last.values() if change.after} - {None}
    ids = [id for id, change in last.items() if change.after or change.task.series not in reopened]
    return _in_order(last, ids, {})


def render_deleted(made: Sequence[Change], ids: Sequence[int]) -> Result:
    by_id = {change.task.id: change.task for change in made}
    found = [id for id in dict.fromkeys(ids) if id in by_id]
    first, *also = [{"id": id, "title": by_id[id].title, "deleted": True, "task": by_id[id].render()} for id in found]
    return {**first, "also": also, "not_found": _missing(ids, found)}


def _in_order(by_id: Mapping[int, Change], ids: Sequence[int], following: Mapping[int | None, Task]) -> Result:
    order = [id for id in ids if id in by_id]
    first, *also = [_render_change(by_id[id], following) for id in order]
    return {**first, "also": also, "not_found": _missing(ids, order)}


def _render_change(change: Change, following: Mapping[int | None, Task]) -> Result:
    ended = change.before and change.after and (change.before.status, change.after.status) == ("pending", "completed")
    after = following.get(change.task.series) if ended else None
    added = {"id": after.id, "due": shown(after.due), "task": after.render()} if after and after.due else None
    deleted = None if change.after else True
    return {**change.task.render(), "deleted": deleted, "deleted_at": None, "next": added}


def _missing(ids: Sequence[int], found: Sequence[int]) -> list[int]:
    return [id for id in dict.fromkeys(ids) if id not in found]
