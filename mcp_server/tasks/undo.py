"""Taking back the last change of a task, and the one before it the next time."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import bindparam, func
from sqlmodel import select

from mcp_server.errors import NextIsChanged, NothingToUndo
from mcp_server.tasks import changes, statements
from mcp_server.tasks.changes import CHANGES, OWNER, STANDS, WITHIN, Caller, Change, change_of
from mcp_server.tasks.results import restored_tasks
from mcp_server.tasks.task import ChangedTask, Stored
from service.database import Session

_LAST = (
    select(CHANGES.c.id, CHANGES.c.call_id, CHANGES.c.before, CHANGES.c.after)
    .where(
        CHANGES.c.user_id == OWNER,
        CHANGES.c.task_id == bindparam("task"),
        CHANGES.c.created_at > bindparam("since"),
        *STANDS,
    )
    .order_by(CHANGES.c.id.desc())
    .limit(1)
)
_ADDED_BY_CALL = select(CHANGES.c.id, CHANGES.c.task_id).where(
    CHANGES.c.user_id == OWNER, CHANGES.c.call_id == bindparam("call"), CHANGES.c.before.is_(None)
)
# A task that was deleted has no row to lock; the person's is locked after the tasks' by whoever completes a repeat.
ONE_BY_ONE = select(func.pg_advisory_xact_lock(func.hashtextextended(OWNER, 2)))


async def undo(session: Session, caller: Caller, ids: Sequence[int]) -> ChangedTask:
    """Each task as it was before its last change: a deleted one comes back, an added one goes."""

    async def work(call: int) -> list[Change]:
        await session.execute(ONE_BY_ONE, {"owner": caller.user_id})
        now = await statements.locked(session, caller, ids)
        made: dict[int | None, Change] = {}  # by what they take back: a task may be named that goes with another
        for id in ids:
            made |= {change.undoes: change for change in await _taken_back(session, caller, id, now.get(id))}
        await statements.edit(session, caller, call, [*made.values()])
        return [*made.values()]

    arguments: dict[str, object] = {"task_id": ids[0], "undo": True, **({"also": [*ids[1:]]} if len(ids) > 1 else {})}
    made = await changes.make(session, caller, operation="undo", arguments=arguments, work=work, changes=len(ids))
    return restored_tasks(made, ids)


async def _taken_back(session: Session, caller: Caller, id: int, task: Stored | None) -> list[Change]:
    last = await _last(session, caller, id)
    if last is None:
        raise NothingToUndo(task_id=id)
    was = change_of(last).before
    restored = was and was.model_copy(update={"updated_at": caller.clock()})
    left = await _left_behind(session, caller, last) if was is not None else []
    return [Change(task, restored, undoes=last.id), *left]


async def _last(session: Session, caller: Caller, id: int) -> Any:
    """The change of a task that would be taken back; None if there is none."""
    params = {"owner": caller.user_id, "task": id, "since": caller.clock() - WITHIN}
    return (await session.execute(_LAST, params)).one_or_none()


async def _left_behind(session: Session, caller: Caller, completion: Any) -> list[Change]:
    """The task that a completion left behind goes with it, unless somebody has changed it since."""
    series = change_of(completion).task.series
    params = {"owner": caller.user_id, "call": completion.call_id}
    added = {row.task_id: row.id for row in await session.execute(_ADDED_BY_CALL, params)}
    found = await statements.locked(session, caller, [*added]) if series is not None and added else {}
    following = [task for task in found.values() if task.series == series]
    for task in following:
        last = await _last(session, caller, task.id)
        if last is None or last.id != added[task.id]:
            raise NextIsChanged(next_id=task.id)
    return [Change(task, None, undoes=added[task.id]) for task in following]
