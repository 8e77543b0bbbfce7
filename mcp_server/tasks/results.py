"""What became of a call's tasks: from the log alone, so that a call that is sent again is told the same."""

from collections.abc import Sequence
from typing import Any

from mcp_server.tasks.changes import Change
from mcp_server.tasks.dates import shown
from mcp_server.tasks.task import ChangedTask, DeletedTask, Following, OtherDeleted, OtherTask, Stored


def changed_tasks(made: Sequence[Change], ids: Sequence[int] = ()) -> ChangedTask:
    """The tasks in the order of their ids in the call, those that it added in their own."""
    left = {change.task.series: change.task for change in made if ids and change.task.id not in ids}
    by_id = {change.task.id: change for change in made if not ids or change.task.id in ids}
    order = [id for id in dict.fromkeys(ids or sorted(by_id)) if id in by_id]
    first, *others = [_told(by_id[id], left) for id in order]
    also = tuple(OtherTask.model_validate(task) for task in others)
    return ChangedTask.model_validate({**first, "also": also, "not_found": _missing(ids, order)})


def deleted_tasks(made: Sequence[Change], ids: Sequence[int]) -> DeletedTask:
    titles = {change.task.id: change.task.title for change in made}
    first, *others = [id for id in dict.fromkeys(ids) if id in titles]
    also = tuple(OtherDeleted(id=id, title=titles[id]) for id in others)
    return DeletedTask(id=first, title=titles[first], also=also, not_found=_missing(ids, [first, *others]))


def _told(change: Change, left: dict[int | None, Stored]) -> dict[str, Any]:
    task = change.task.told()
    if change.after is None:
        return task | {"deleted": True}
    following = left.get(change.task.series)
    if change.task.series is None or following is None or following.due is None:
        return task
    return task | {"next": Following(id=following.id, due=shown(following.due))}


def _missing(ids: Sequence[int], found: Sequence[int]) -> tuple[int, ...]:
    return tuple(id for id in dict.fromkeys(ids) if id not in found)
