"""Undoes all that a batch of calls has changed, which is what an answer, or a click in it, has done."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from typing import Any

from common.database import Transaction
from common.tool_server.refusals import shown
from mcp_server.errors import ChangedSince, NothingInBatch
from mcp_server.tasks import changes, statements
from mcp_server.tasks.changes import CAN_BE_UNDONE, WITHIN, Caller, Change, change_of
from mcp_server.tasks.results import restored_batch
from mcp_server.tasks.task import ChangedTask, StoredTask
from mcp_server.tasks.undo import LOCK_UNDO

Row = Mapping[str, Any]
_NAMED = 5  # tasks of a refusal
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


async def undo(tx: Transaction, caller: Caller, batch: str) -> ChangedTask:
    """Each task of the batch as it was before it, or `ChangedSince`; what undid something else stays as it is.

    A change that was undone already is passed over.
    """
    left = await _left(tx, caller, batch)

    async def work(call: int) -> list[Change]:
        await tx.execute(LOCK_UNDO, user=caller.user_id)
        ids = sorted({row["task_id"] for row in left})
        now = await statements.lock(tx, caller, ids)
        made = _undone(await _since(tx, caller, ids, left), batch, now, caller)
        await statements.edit(tx, caller, call, made)
        return made

    arguments = {"undo_batch": batch}
    made = await changes.make(tx, caller, operation="undo", arguments=arguments, work=work, changes=max(len(left), 1))
    return restored_batch(made)


async def _left(tx: Transaction, caller: Caller, batch: str) -> Sequence[Row]:
    """The batch's changes that stand; none of a batch that ended too long ago."""
    left = await (await tx.execute(_OF_BATCH, user=caller.user_id, batch=batch)).fetchall()
    return left if any(row["created_at"] > caller.clock() - WITHIN for row in left) else []


async def _since(tx: Transaction, caller: Caller, ids: Sequence[int], left: Sequence[Row]) -> Sequence[Row]:
    """What stands of the tasks' changes, from the batch's first on, by task and in order."""
    if not left:
        return []
    first = min(row["id"] for row in left)
    return await (await tx.execute(_SINCE, user=caller.user_id, ids=[*ids], first=first)).fetchall()


def _undone(since: Iterable[Row], batch: str, now: Mapping[int, StoredTask], caller: Caller) -> list[Change]:
    made: list[Change] = []
    changed_since: list[StoredTask] = []
    for id, rows in groupby(since, key=lambda row: row["task_id"]):
        of_task = list(rows)
        first = next((nth for nth, row in enumerate(of_task) if row["batch"] == batch), len(of_task))
        if any(row["batch"] != batch for row in of_task[first:]):
            changed_since.append(now.get(id) or change_of(of_task[-1]).task)
        made += _undo_each(now.get(id), of_task[first:], caller)
    if changed_since:
        raise ChangedSince(tasks=_named(changed_since))
    if not made:
        raise NothingInBatch
    return made


def _undo_each(task: StoredTask | None, rows: Sequence[Row], caller: Caller) -> list[Change]:
    """The changes that undo these, the newest first."""
    made: list[Change] = []
    for row in reversed(rows):
        was = change_of(row).before
        restored = was and was.model_copy(update={"updated_at": caller.clock()})
        made.append(Change(task, restored, undoes=row["id"]))
        task = restored
    return made


def _named(tasks: Sequence[StoredTask]) -> str:
    names = [f"task {task.id} ({shown(task.title)})" for task in tasks[:_NAMED]]
    if more := len(tasks) - len(names):
        names.append(f"{more} more")
    return " and ".join(filter(None, [", ".join(names[:-1]), names[-1]]))
