"""What became of a call's tasks: from the log alone, so that a call that is sent again is told the same."""

from collections.abc import Mapping, Sequence
from typing import Any

from mcp_server.tasks.changes import Change
from mcp_server.tasks.dates import shown
from mcp_server.tasks.task import ChangedTask, DeletedTask, OtherDeleted, OtherTask, StoredTask


def changed_tasks(made: Sequence[Change], ids: Sequence[int]) -> ChangedTask:
    """The tasks in the order of their ids in the call, each with the one that it left behind."""
    left = {change.task.series: change.task for change in made if change.before is None}
    return _in_order({change.task.id: change for change in made if change.before is not None}, ids, left)


def added_tasks(made: Sequence[Change]) -> ChangedTask:
    by_id = {change.task.id: change for change in made}
    return _in_order(by_id, sorted(by_id), {})


def restored_tasks(made: Sequence[Change], ids: Sequence[int]) -> ChangedTask:
    """Those of the call; what a completion had left behind and went with it is not told."""
    return _in_order({change.task.id: change for change in made}, ids, {})


def restored_batch(made: Sequence[Change]) -> ChangedTask:
    """All of a batch; not what a completion that is taken back had left behind."""
    last = {change.task.id: change for change in made}
    reopened = {change.after.series for change in last.values() if change.after} - {None}
    ids = [id for id, change in last.items() if change.after or change.task.series not in reopened]
    return _in_order(last, ids, {})


def _in_order(by_id: Mapping[int, Change], ids: Sequence[int], left: Mapping[int | None, StoredTask]) -> ChangedTask:
    order = [id for id in ids if id in by_id]
    first, *others = [_told(by_id[id], left) for id in order]
    also = tuple(OtherTask.model_validate(task) for task in others)
    return ChangedTask.model_validate({**first, "also": also, "not_found": _missing(ids, order)})


def deleted_tasks(made: Sequence[Change], ids: Sequence[int]) -> DeletedTask:
    tasks = {change.task.id: change.task.render() for change in made}
    found = [id for id in dict.fromkeys(ids) if id in tasks]
    first, *others = [{"id": id, "title": tasks[id]["title"], "task": tasks[id]} for id in found]
    also = tuple(OtherDeleted.model_validate(other) for other in others)
    return DeletedTask.model_validate({**first, "also": also, "not_found": _missing(ids, found)})


def _told(change: Change, left: Mapping[int | None, StoredTask]) -> dict[str, Any]:
    task = change.task.render()
    if change.after is None:
        return task | {"deleted": True}
    ended = change.before is not None and (change.before.status, change.after.status) == ("pending", "completed")
    following = left.get(change.task.series) if ended else None
    if following is None or following.due is None:
        return task
    return task | {"next": {"id": following.id, "due": shown(following.due), "task": following.render()}}


def _missing(ids: Sequence[int], found: Sequence[int]) -> tuple[int, ...]:
    return tuple(id for id in dict.fromkeys(ids) if id not in found)
