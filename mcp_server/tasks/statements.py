"""The SQL statements that change tasks and write the log."""

from collections.abc import Mapping, Sequence

import psycopg
from psycopg.types.json import Jsonb

from common.database import Transaction
from mcp_server.errors import OneIsOpen
from mcp_server.tasks.changes import Caller, LoggedChange, parse_change
from mcp_server.tasks.task import ONE_OPEN, TASK_COLUMNS, Task

# The columns of rows that are JSON objects, in the order of TASK_COLUMNS.
_JSON_COLUMNS = """id bigint, title text, description text, status text, created_at timestamptz,
    updated_at timestamptz, completed_at timestamptz, due_on date, due_time time(0), priority smallint, labels text[],
    repeat text, series bigint"""
_SNAPSHOT = """jsonb_build_object('id', id, 'title', title, 'description', description, 'status', status,
    'created_at', created_at, 'updated_at', updated_at, 'completed_at', completed_at, 'due_on', due_on,
    'due_time', due_time, 'priority', priority, 'labels', labels, 'repeat', repeat, 'series', series)"""

# The user's row stays locked until the end of the transaction, so that no id is used twice, or lost by a failed call.
_RESERVE_IDS = """
INSERT INTO people (user_id, last_task_id) VALUES (%(user)s, %(many)s::bigint)
ON CONFLICT (user_id) DO UPDATE SET last_task_id = people.last_task_id + %(many)s::bigint
RETURNING last_task_id"""

# Tasks with these titles, numbered in this order, which share all other fields.
_ADD = f"""
WITH number AS ({_RESERVE_IDS}), made AS (
    INSERT INTO tasks (user_id, id, title, description, due_on, due_time, priority, labels, repeat, series,
        created_at, updated_at)
    SELECT %(user)s, n.id, n.title, %(description)s, %(due_on)s, %(due_time)s, %(priority)s, %(labels)s,
        %(repeat)s::text, CASE WHEN %(repeat)s::text IS NOT NULL THEN n.id END, %(moment)s, %(moment)s
    FROM (
        SELECT number.last_task_id - %(many)s::bigint + nth AS id, title
        FROM number, unnest(%(titles)s::text[]) WITH ORDINALITY AS titles (title, nth)
    ) n
    RETURNING id AS task_id, {_SNAPSHOT} AS after
)
INSERT INTO task_changes (user_id, call_id, task_id, after, created_at)
SELECT %(user)s, %(call)s, task_id, after, %(logged_at)s FROM made ORDER BY task_id
RETURNING before, after"""

_EDIT = f"""
WITH written AS (
    INSERT INTO tasks (user_id, {TASK_COLUMNS})
    SELECT %(user)s, {TASK_COLUMNS} FROM jsonb_to_recordset(%(rows)s) AS r ({_JSON_COLUMNS})
    ON CONFLICT (user_id, id) DO UPDATE SET title = excluded.title, description = excluded.description,
        status = excluded.status, created_at = excluded.created_at, updated_at = excluded.updated_at,
        completed_at = excluded.completed_at, due_on = excluded.due_on, due_time = excluded.due_time,
        priority = excluded.priority, labels = excluded.labels, repeat = excluded.repeat, series = excluded.series
), deleted AS (
    DELETE FROM tasks WHERE user_id = %(user)s AND id = ANY(%(ids)s::bigint[])
)
INSERT INTO task_changes (user_id, call_id, task_id, before, after, undoes, created_at)
SELECT %(user)s, %(call)s, task_id, before, after, undoes, %(logged_at)s
FROM jsonb_to_recordset(%(changes)s) AS c (nth integer, task_id bigint, before jsonb, after jsonb, undoes bigint)
ORDER BY nth"""

# The arguments of these calls contain no text, because their rows outlive the log of changes.
_ADD_EACH = f"""
WITH rows AS (
    SELECT * FROM jsonb_to_recordset(%(rows)s) AS r ({_JSON_COLUMNS}, key text, after jsonb)
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


async def insert_tasks(
    tx: Transaction, caller: Caller, call: int, titles: Sequence[str], template: Task
) -> list[LoggedChange]:
    """Adds tasks with these titles and the other fields of `template`, which is not stored."""
    rows = await tx.execute(
        _ADD,
        call=call,
        titles=[*titles],
        many=len(titles),
        description=template.description,
        due_on=template.due_on,
        due_time=template.due_time,
        priority=template.priority,
        labels=[*template.labels],
        repeat=template.repeat,
        moment=template.created_at,
        logged_at=caller.clock(),
    )
    return [parse_change(row) for row in await rows.fetchall()]


async def insert_imported(tx: Transaction, caller: Caller, tasks: Mapping[str, Task]) -> None:
    """Adds tasks with ids, each in a call of its own; their idempotency keys must be new."""
    rows = [{**task.as_json(), "key": key, "after": task.as_json()} for key, task in tasks.items()]
    values = {"actor": caller.actor, "batch": caller.batch, "rows": Jsonb(rows)}
    await tx.execute(_ADD_EACH, **values, logged_at=caller.clock())


async def lock_tasks(tx: Transaction, ids: Sequence[int]) -> dict[int, Task]:
    rows = await tx.execute(_LOCK, ids=[*ids])
    return {row["id"]: Task.model_validate(row) for row in await rows.fetchall()}


async def reserve_ids(tx: Transaction, count: int) -> range:
    row = await (await tx.execute(_RESERVE_IDS, many=count)).fetchone()
    last = row["last_task_id"] if row else 0
    return range(last - count + 1, last + 1)


async def write_changes(tx: Transaction, caller: Caller, call: int, changes: Sequence[LoggedChange]) -> None:
    """Writes the tasks and logs the changes; several changes of one task follow each other.

    Errors, such as `OneIsOpen`, are raised at the end of the transaction.
    """
    last = {change.task.id: change for change in changes}
    # Completed tasks first, so that two tasks of a repeat are never open at the same time.
    tasks = sorted((change.after for change in last.values() if change.after), key=lambda task: task.status)
    log = [
        {
            "nth": nth,
            "task_id": change.task.id,
            "before": change.before and change.before.as_json(),
            "after": change.after and change.after.as_json(),
            "undoes": change.undoes,
        }
        for nth, change in enumerate(changes)
    ]
    await tx.execute(
        _EDIT,
        call=call,
        rows=Jsonb([task.as_json() for task in tasks]),
        ids=[id for id, change in last.items() if change.after is None],
        changes=Jsonb(log),
        logged_at=caller.clock(),
    )


def translate_error(error: psycopg.Error) -> Exception | None:
    return OneIsOpen() if error.diag.constraint_name == ONE_OPEN else None
