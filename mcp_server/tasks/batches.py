"""Taking back all that a batch of calls has changed, which is what an answer, or a click in it, has done."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from typing import Any

from sqlalchemy import and_, bindparam, func, select
from sqlalchemy.dialects.postgresql import ARRAY

from mcp_server.errors import ChangedSince, NothingInBatch
from mcp_server.tasks import changes, statements
from mcp_server.tasks.changes import CALLS, CHANGES, OWNER, STANDS, WITHIN, Caller, Change, change_of
from mcp_server.tasks.results import restored_batch
from mcp_server.tasks.task import ChangedTask, Stored
from mcp_server.tasks.undo import ONE_BY_ONE
from service.database import Session
from service.tool_server.refusals import shown

_NAMED = 5  # tasks of a refusal
_OF_CALL = and_(CALLS.c.user_id == CHANGES.c.user_id, CALLS.c.id == CHANGES.c.call_id)
_LEFT = (
    select(CHANGES.c.id, CHANGES.c.task_id, CHANGES.c.created_at)
    .join_from(CALLS, CHANGES, _OF_CALL)
    .where(CALLS.c.user_id == OWNER, CALLS.c.batch == bindparam("batch"), CHANGES.c.user_id == OWNER, *STANDS)
)
_SINCE = (
    select(CHANGES.c.id, CHANGES.c.task_id, CHANGES.c.before, CHANGES.c.after, CALLS.c.batch)
    .join_from(CHANGES, CALLS, _OF_CALL)
    .where(
        CHANGES.c.user_id == OWNER,
        CHANGES.c.task_id == func.any(bindparam("ids", type_=ARRAY(CHANGES.c.task_id.type))),
        CHANGES.c.id >= bindparam("first"),
        CALLS.c.user_id == OWNER,
        *STANDS,
    )
    .order_by(CHANGES.c.task_id, CHANGES.c.id)
)


async def undo(session: Session, caller: Caller, batch: str) -> ChangedTask:
    """Each task of the batch as it was before it, or `ChangedSince`; what took back something else stays taken back.

    A change that was taken back already is passed over.
    """
    left = await _left(session, caller, batch)

    async def work(call: int) -> list[Change]:
        await session.execute(ONE_BY_ONE, {"owner": caller.user_id})
        ids = sorted({change.task_id for change in left})
        now = await statements.locked(session, caller, ids)
        made = _taken_back(await _since(session, caller, ids, left), batch, now, caller)
        await statements.edit(session, caller, call, made)
        return made

    arguments = {"undo_batch": batch}
    made = await changes.make(
        session, caller, operation="undo", arguments=arguments, work=work, changes=max(len(left), 1)
    )
    return restored_batch(made)


async def _left(session: Session, caller: Caller, batch: str) -> Sequence[Any]:
    """The batch's changes that stand; none of a batch that ended too long ago."""
    params = {"owner": caller.user_id, "batch": batch}
    left = (await session.execute(_LEFT, params)).all()
    return left if any(change.created_at > caller.clock() - WITHIN for change in left) else []


async def _since(session: Session, caller: Caller, ids: Sequence[int], left: Sequence[Any]) -> Sequence[Any]:
    """What stands of the tasks' changes, from the batch's first on, by task and in order."""
    if not left:
        return []
    params = {"owner": caller.user_id, "ids": ids, "first": min(change.id for change in left)}
    return (await session.execute(_SINCE, params)).all()


def _taken_back(since: Iterable[Any], batch: str, now: Mapping[int, Stored], caller: Caller) -> list[Change]:
    made: list[Change] = []
    changed_since: list[Stored] = []
    for id, rows in groupby(since, key=lambda row: row.task_id):
        of_task = list(rows)
        first = next((nth for nth, row in enumerate(of_task) if row.batch == batch), len(of_task))
        if any(row.batch != batch for row in of_task[first:]):
            changed_since.append(now.get(id) or change_of(of_task[-1]).task)
        made += _back(now.get(id), of_task[first:], caller)
    if changed_since:
        raise ChangedSince(tasks=_named(changed_since))
    if not made:
        raise NothingInBatch
    return made


def _back(task: Stored | None, rows: Sequence[Any], caller: Caller) -> list[Change]:
    """The changes that take these back, the newest first."""
    made: list[Change] = []
    for row in reversed(rows):
        was = change_of(row).before
        restored = was and was.model_copy(update={"updated_at": caller.clock()})
        made.append(Change(task, restored, undoes=row.id))
        task = restored
    return made


def _named(tasks: Sequence[Stored]) -> str:
    names = [f"task {task.id} ({shown(task.title)})" for task in tasks[:_NAMED]]
    if more := len(tasks) - len(names):
        names.append(f"{more} more")
    return " and ".join(filter(None, [", ".join(names[:-1]), names[-1]]))
