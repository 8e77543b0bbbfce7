"""Writes tasks together with the log of calls and their changes, which serves undo and idempotency."""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Literal, LiteralString, Self, TypeVar
from zoneinfo import ZoneInfo

import psycopg
from psycopg.types.json import Jsonb

from common.clock import utc_now
from common.database import Transaction, advisory_locks, fetch_rows
from common.pauses import with_pauses
from common.tool_server.errors import IdempotencyKeyReused
from mcp_server.errors import OneIsOpen
from mcp_server.tasks import quota
from mcp_server.tasks.fields import ONE_OPEN, REPLACED_COLUMNS, TASK_COLUMNS, TYPED_COLUMNS, Task
from mcp_server.tasks.quota import UNLIMITED, TaskQuota

T = TypeVar("T")
UTC = ZoneInfo("UTC")
Operation = Literal["add", "complete", "update", "delete", "undo"]


@dataclass(frozen=True)
class Caller:
    """The user of a call and what else the call depends on."""

    user_id: str
    actor: str = "mcp"
    idempotency_key: str | None = None
    batch: str | None = None
    """The calls that are undone together: those of a run or of a click."""
    undo_batch: str | None = None
    """The batch that this call undoes."""
    overdue_part: str | None = None
    """The call moves overdue tasks to today, in parts: which part."""
    quota: TaskQuota = UNLIMITED
    zone: ZoneInfo | None = None
    """The user's zone, if the call has one."""
    usual_zone: ZoneInfo = UTC
    """The zone of users who have none."""
    clock: Callable[[], datetime] = utc_now


@dataclass(frozen=True)
class LoggedChange:
    """A task before and after; None where there was none. `undoes` is the id of the change that this one undoes."""

    before: Task | None
    after: Task | None
    undoes: int | None = None

    @property
    def task(self) -> Task:
        task = self.after or self.before
        assert task is not None
        return task


@dataclass(frozen=True)
class ChangeCount:
    """How many tasks a call added, less those that it deleted, and how many changes of the day it made."""

    added: int = 0
    changes: int = 0

    @classmethod
    def of(cls, log: Sequence[LoggedChange]) -> Self:
        added = sum(bool(change.after) - bool(change.before) for change in log)
        return cls(added, sum(change.undoes is None for change in log))

    def __add__(self, other: "ChangeCount") -> "ChangeCount":
        return ChangeCount(self.added + other.added, self.changes + other.changes)


_PART_TASKS = 25
MAX_RETURNED = 100
"""How many tasks the result of a call in parts has."""
LOCK = f"SELECT {advisory_locks.TASKS}"
UNDO_PERIOD = timedelta(days=30)
"""How long a change can be undone."""

# Whether a row c of task_changes changed something. To compare two tasks of 12 kB takes a hundred times as long as to
# read the column, which older rows lack.
IS_CHANGE = "coalesce(c.is_change, c.before IS DISTINCT FROM c.after)"
# A condition for a row c of task_changes: it changed something, is not an undo, and was not undone.
CAN_BE_UNDONE = f"""c.undoes IS NULL AND {IS_CHANGE} AND NOT EXISTS (
    SELECT FROM task_changes later WHERE later.user_id = %(user)s AND later.undoes = c.id)"""

_CLAIM = f"""
INSERT INTO task_calls (user_id, operation, arguments, actor, idempotency_key, batch, created_at)
VALUES (%(user)s, %(operation)s, %(arguments)s::jsonb, %(actor)s, %(key)s, %(batch)s, %(now)s)
ON CONFLICT (user_id, idempotency_key) WHERE idempotency_key IS NOT NULL DO NOTHING
RETURNING id, {quota.COLUMNS}"""
_RECORDED = """
SELECT k.operation, k.arguments, c.before, c.after
FROM task_calls k JOIN task_changes c ON c.call_id = k.id AND c.user_id = %(user)s
WHERE k.user_id = %(user)s AND k.idempotency_key = %(key)s
ORDER BY c.id"""
_LAST_RECORDED = """
SELECT k.operation, k.arguments, c.before, c.after
FROM task_calls k CROSS JOIN LATERAL (
    SELECT max(id) AS id FROM task_changes WHERE user_id = %(user)s AND call_id = k.id
    GROUP BY task_id ORDER BY max(id) DESC LIMIT %(most)s
) last JOIN task_changes c ON c.user_id = %(user)s AND c.id = last.id
WHERE k.user_id = %(user)s AND k.idempotency_key = %(key)s
ORDER BY c.id"""
_WRITE = f"""
WITH written AS (
    INSERT INTO tasks (user_id, {TASK_COLUMNS})
    SELECT %(user)s, {TASK_COLUMNS} FROM jsonb_to_recordset(%(rows)s) AS r ({TYPED_COLUMNS})
    ON CONFLICT (user_id, id) DO UPDATE SET {REPLACED_COLUMNS}
), deleted AS (
    DELETE FROM tasks WHERE user_id = %(user)s AND id = ANY(%(ids)s::bigint[])
)
INSERT INTO task_changes (user_id, call_id, task_id, before, after, undoes, created_at, is_change, series)
SELECT %(user)s, call, task_id, before, after, undoes, %(logged_at)s,
    before IS DISTINCT FROM after, (coalesce(after, before)->>'series')::bigint
FROM jsonb_to_recordset(%(changes)s)
    AS c (nth integer, call bigint, task_id bigint, before jsonb, after jsonb, undoes bigint)
ORDER BY nth"""
_LOCK_TASKS = f"""
SELECT {TASK_COLUMNS} FROM tasks WHERE user_id = %(user)s AND id = ANY(%(ids)s::bigint[]) ORDER BY id FOR UPDATE"""
# The user's row stays locked until the end of the transaction, so that no id is used twice, or lost by a failed call.
# The ids are also greater than those in `tasks`, whose row _WRITE would replace, if `people` was restored or changed.
_RESERVE_IDS = """
INSERT INTO people (user_id, last_task_id)
SELECT %(user)s, coalesce(max(id), 0) + %(many)s::bigint FROM tasks WHERE user_id = %(user)s
ON CONFLICT (user_id) DO UPDATE
SET last_task_id = greatest(people.last_task_id + %(many)s::bigint, excluded.last_task_id)
RETURNING last_task_id"""
# A repeated call of a retried run belongs to the new run.
_MOVE_TO_BATCH = """
UPDATE task_calls SET batch = %(batch)s
WHERE user_id = %(user)s AND idempotency_key = %(key)s AND batch IS DISTINCT FROM %(batch)s"""


async def make_call(
    tx: Transaction,
    caller: Caller,
    *,
    operation: Operation,
    arguments: dict[str, Any],
    work: Callable[[], Awaitable[Sequence[LoggedChange]]],
) -> Sequence[LoggedChange]:
    """Makes and logs the changes that `work` returns, and returns them.

    The call's row is stored first: a second call with the same key returns the logged changes. `work` must raise if it
    finds no task, so that the row is rolled back.
    """
    call = await _claim_call(tx, caller, operation=operation, arguments=arguments)
    if call is None:
        return await _replay_call(tx, caller, _RECORDED, operation=operation, arguments=arguments)
    log = await work()
    count = ChangeCount.of(log)
    caller.quota.check(call, added=count.added, changes=count.changes)
    # An undo removes the next task of a repeat together with reopening the one before.
    async for part in with_pauses([log] if operation == "undo" else split(log)):
        await write_changes(tx, caller, [call["id"]] * len(part), part)
    return log


async def make_call_in_parts(
    tx: Transaction,
    caller: Caller,
    *,
    operation: Operation,
    arguments: dict[str, Any],
    parts: Callable[[], AsyncIterator[Sequence[LoggedChange]]],
) -> Sequence[LoggedChange]:
    """Does as `make_call` for any number of changes: each of the `parts` is written before the next one is made.

    A task is in one part only. Returns the last change of each of the last `MAX_RETURNED` tasks.
    """
    call = await _claim_call(tx, caller, operation=operation, arguments=arguments)
    if call is None:
        return await _replay_call(tx, caller, _LAST_RECORDED, operation=operation, arguments=arguments)
    last: list[LoggedChange] = []
    count = ChangeCount()
    async for log in parts():
        count += ChangeCount.of(log)
        await write_changes(tx, caller, [call["id"]] * len(log), log)
        last = [*last, *{change.task.id: change for change in log}.values()][-MAX_RETURNED:]
    caller.quota.check(call, added=count.added, changes=count.changes)
    return last


def split(tasks: Sequence[T]) -> Iterator[Sequence[T]]:
    """Splits tasks, of 12 kB each, into parts of which one is written at once."""
    return (tasks[start : start + _PART_TASKS] for start in range(0, len(tasks), _PART_TASKS))


async def _claim_call(
    tx: Transaction, caller: Caller, *, operation: Operation, arguments: dict[str, Any]
) -> Mapping[str, Any] | None:
    """Stores the call's row, under the lock of the user's tasks; returns None if its key was used before."""
    now = caller.clock()
    await tx.execute(LOCK)
    claim = await tx.execute(
        _CLAIM,
        operation=operation,
        arguments=Jsonb(arguments),
        actor=caller.actor,
        key=caller.idempotency_key,
        batch=caller.batch,
        now=now,
        **caller.quota.get_values(now),
    )
    return await claim.fetchone()


def get_id_arguments(ids: Sequence[int]) -> dict[str, Any]:
    return {"task_id": ids[0], **({"also": [*ids[1:]]} if len(ids) > 1 else {})}


async def _replay_call(
    tx: Transaction, caller: Caller, statement: LiteralString, *, operation: Operation, arguments: dict[str, Any]
) -> Sequence[LoggedChange]:
    recorded = await tx.execute(statement, key=caller.idempotency_key, most=MAX_RETURNED)
    rows = await recorded.fetchall()
    if any((row["operation"], row["arguments"]) != (operation, arguments) for row in rows) or not rows:
        raise IdempotencyKeyReused
    if caller.batch is not None:
        await tx.execute(_MOVE_TO_BATCH, key=caller.idempotency_key, batch=caller.batch)
    return [parse_change(row) async for row in with_pauses(rows)]


async def write_changes(tx: Transaction, caller: Caller, calls: Sequence[int], changes: Sequence[LoggedChange]) -> None:
    """Writes the tasks and logs each change for its call; several changes of one task follow each other.

    Errors, such as `OneIsOpen`, are raised at the end of the transaction.
    """
    log: list[dict[str, Any]] = [
        {
            "nth": nth,
            "call": call,
            "task_id": change.task.id,
            "before": change.before and change.before.as_json(),
            "after": change.after and change.after.as_json(),
            "undoes": change.undoes,
        }
        for nth, (call, change) in enumerate(zip(calls, changes, strict=True))
    ]
    last = {entry["task_id"]: entry["after"] for entry in log}
    # Completed tasks first, so that two tasks of a repeat are never open at the same time.
    rows = sorted((row for row in last.values() if row), key=lambda row: row["status"])
    ids = [id for id, row in last.items() if row is None]
    await tx.execute(_WRITE, rows=Jsonb(rows), ids=ids, changes=Jsonb(log), logged_at=caller.clock())


async def lock_tasks(tx: Transaction, ids: Sequence[int]) -> dict[int, Task]:
    rows = await tx.execute(_LOCK_TASKS, ids=[*ids])
    return {row["id"]: Task.model_validate(row) async for row in with_pauses(await fetch_rows(rows))}


async def number_tasks(tx: Transaction, tasks: Sequence[Task]) -> list[Task]:
    """Gives new tasks the next ids of the user; a repeating one that is not part of a series begins one."""
    row = await (await tx.execute(_RESERVE_IDS, many=len(tasks))).fetchone()
    assert row is not None
    return [
        task.model_copy(update={"id": id, "series": (task.series or id) if task.repeat else task.series})
        for id, task in enumerate(tasks, row["last_task_id"] - len(tasks) + 1)
    ]


def parse_change(row: Mapping[str, Any]) -> LoggedChange:
    before, after = (task and Task.model_validate(task) for task in (row["before"], row["after"]))
    return LoggedChange(before, after)


def translate_error(error: psycopg.Error) -> Exception | None:
    return OneIsOpen() if error.diag.constraint_name == ONE_OPEN else None
