"""The SQL statements that number, lock and import tasks."""

from collections.abc import Mapping, Sequence

import psycopg
from psycopg.types.json import Jsonb

from common.database import Transaction
from mcp_server.errors import OneIsOpen
from mcp_server.tasks.changes import Caller
from mcp_server.tasks.task import JSON_COLUMNS, ONE_OPEN, TASK_COLUMNS, Task

# The user's row stays locked until the end of the transaction, so that no id is used twice, or lost by a failed call.
_RESERVE_IDS = """
INSERT INTO people (user_id, last_task_id) VALUES (%(user)s, %(many)s::bigint)
ON CONFLICT (user_id) DO UPDATE SET last_task_id = people.last_task_id + %(many)s::bigint
RETURNING last_task_id"""

# The arguments of these calls contain no text, because their rows outlive the log of changes.
_ADD_EACH = f"""
WITH rows AS (
    SELECT * FROM jsonb_to_recordset(%(rows)s) AS r ({JSON_COLUMNS}, key text, after jsonb)
), calls AS (
    INSERT INTO task_calls (user_id, operation, arguments, actor, idempotency_key, batch, created_at)
    SELECT %(user)s, 'add', jsonb_build_object('task_id', id), %(actor)s, key, %(batch)s, %(logged_at)s
    FROM rows ORDER BY id
    RETURNING id, idempotency_key
), written AS (
    INSERT INTO tasks (user_id, {TASK_COLUMNS}) SELECT %(user)s, {TASK_COLUMNS} FROM rows
)
INSERT INTO task_changes (user_id, call_id, task_id, after, created_at)
SELECT %(user)s, calls.id, rows.id, rows.after, %(logged_at)s
FROM rows JOIN calls ON calls.idempotency_key = rows.key
ORDER BY rows.id"""

_LOCK = f"""
SELECT {TASK_COLUMNS} FROM tasks WHERE user_id = %(user)s AND id = ANY(%(ids)s::bigint[]) ORDER BY id FOR UPDATE"""


async def insert_imported(tx: Transaction, caller: Caller, tasks: Mapping[str, Task]) -> None:
    """Adds tasks with ids, each in a call of its own; their idempotency keys must be new."""
    rows = [{**task.as_json(), "key": key, "after": task.as_json()} for key, task in tasks.items()]
    values = {"actor": caller.actor, "batch": caller.batch, "rows": Jsonb(rows)}
    await tx.execute(_ADD_EACH, **values, logged_at=caller.clock())


async def lock_tasks(tx: Transaction, ids: Sequence[int]) -> dict[int, Task]:
    rows = await tx.execute(_LOCK, ids=[*ids])
    return {row["id"]: Task.model_validate(row) for row in await rows.fetchall()}


async def number_tasks(tx: Transaction, tasks: Sequence[Task]) -> list[Task]:
    """Gives new tasks the next ids of the user; a repeating one that is not part of a series begins one."""
    row = await (await tx.execute(_RESERVE_IDS, many=len(tasks))).fetchone()
    assert row is not None
    return [
        task.model_copy(update={"id": id, "series": (task.series or id) if task.repeat else task.series})
        for id, task in enumerate(tasks, row["last_task_id"] - len(tasks) + 1)
    ]


def translate_error(error: psycopg.Error) -> Exception | None:
    return OneIsOpen() if error.diag.constraint_name == ONE_OPEN else None
