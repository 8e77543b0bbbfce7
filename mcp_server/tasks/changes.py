"""The log of calls and of what they changed: audit, and what makes a call that is sent again harmless."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Literal
from zoneinfo import ZoneInfo

from psycopg.types.json import Jsonb

from common.clock import utc_now
from common.database import Transaction
from mcp_server.errors import KeyUsedOtherwise
from mcp_server.tasks import quota
from mcp_server.tasks.quota import UNLIMITED, Quota
from mcp_server.tasks.task import Task

UTC = ZoneInfo("UTC")
Operation = Literal["add", "complete", "update", "delete", "undo"]


@dataclass(frozen=True)
class Caller:
    """Whose tasks, who acts on them, the key by which a call sent again is known, how much may be kept, and when."""

    user_id: str
    actor: str = "mcp"
    idempotency_key: str | None = None
    batch: str | None = None
    """What the call belongs to, and can be undone with: an answer, or a click."""
    undo_batch: str | None = None
    """The batch that the call undoes."""
    quota: Quota = UNLIMITED
    zone: ZoneInfo | None = None
    """Where the user is, if the call says so."""
    usual_zone: ZoneInfo = UTC
    """Of users of whom nothing is known."""
    clock: Callable[[], datetime] = utc_now


@dataclass(frozen=True)
class Change:
    """A task before and after; None where there was none. `undoes` is the id of the change that this one undoes."""

    before: Task | None
    after: Task | None
    undoes: int | None = None

    @property
    def task(self) -> Task:
        """As it is now, or as it was when it was deleted."""
        task = self.after or self.before
        assert task is not None
        return task


WITHIN = timedelta(days=30)
"""How long a change can be undone."""

# Of a row c of task_changes: it changed something, undoes nothing, and was not undone.
CAN_BE_UNDONE = """c.before IS DISTINCT FROM c.after AND c.undoes IS NULL AND NOT EXISTS (
    SELECT FROM task_changes later
    WHERE later.user_id = %(user)s AND later.task_id = c.task_id AND later.undoes = c.id)"""

CALL_COLUMNS = "(user_id, operation, arguments, actor, idempotency_key, batch, created_at)"
CALL_VALUES = "%(user)s, %(operation)s, %(arguments)s::jsonb, %(actor)s, %(key)s, %(batch)s, %(now)s"
ONCE = "ON CONFLICT (user_id, idempotency_key) WHERE idempotency_key IS NOT NULL DO NOTHING"
_CLAIM = f"INSERT INTO task_calls {CALL_COLUMNS} VALUES ({CALL_VALUES}) {ONCE} RETURNING id, {quota.HINTS}"
_RECORDED = """
SELECT k.operation, k.arguments, c.before, c.after
FROM task_calls k JOIN task_changes c ON c.call_id = k.id AND c.user_id = %(user)s
WHERE k.user_id = %(user)s AND k.idempotency_key = %(key)s
ORDER BY c.id"""
# A call of an answer that was given again belongs to the new answer.
_MOVE_TO_BATCH = """
UPDATE task_calls SET batch = %(batch)s
WHERE user_id = %(user)s AND idempotency_key = %(key)s AND batch IS DISTINCT FROM %(batch)s"""


def call_values(caller: Caller, operation: Operation, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """The values of `CALL_VALUES`, now, and of the hints beside it."""
    now = caller.clock()
    return {
        "user": caller.user_id,
        "operation": operation,
        "arguments": Jsonb(arguments),
        "actor": caller.actor,
        "key": caller.idempotency_key,
        "batch": caller.batch,
        "now": now,
        "day_ago": now - quota.DAY,
        "busy": quota.BUSY,
    }


async def make(
    tx: Transaction,
    caller: Caller,
    *,
    operation: Operation,
    arguments: dict[str, Any],
    work: Callable[[int], Awaitable[Sequence[Change]]],
    adds: int = 0,
    changes: int = 1,
) -> Sequence[Change]:
    """Does the work of a call, which is given the call's id and logs what it changes; returns its changes.

    The call's row is stored first: the same key sent a second time waits for the first one's transaction, then finds
    its row and is answered from the log. Work that finds no task must raise, so that the row is rolled back.
    """
    values = call_values(caller, operation, arguments)
    call = await (await tx.execute(_CLAIM, **values)).fetchone()
    if call is None:
        return await _recorded(tx, caller, operation=operation, arguments=arguments)
    hints = quota.Hints(call["tasks_ever"], call["is_busy_day"])
    now = values["now"]
    await quota.check(tx, caller.quota, hints, user_id=caller.user_id, now=now, adds=adds, changes=changes)
    made = await work(call["id"])
    if not adds and any(change.before is None for change in made):  # the next of a repeat, or what was deleted
        await quota.check_kept(tx, caller.quota, hints, user_id=caller.user_id)
    return made


async def _recorded(
    tx: Transaction, caller: Caller, *, operation: Operation, arguments: dict[str, Any]
) -> Sequence[Change]:
    rows = await (await tx.execute(_RECORDED, user=caller.user_id, key=caller.idempotency_key)).fetchall()
    if any((row["operation"], row["arguments"]) != (operation, arguments) for row in rows) or not rows:
        raise KeyUsedOtherwise
    if caller.batch is not None:
        await tx.execute(_MOVE_TO_BATCH, user=caller.user_id, key=caller.idempotency_key, batch=caller.batch)
    return [change_of(row) for row in rows]


def change_of(row: Mapping[str, Any]) -> Change:
    """The change of a row with both sides as JSON."""
    before, after = (side and Task.model_validate(side) for side in (row["before"], row["after"]))
    return Change(before, after)
