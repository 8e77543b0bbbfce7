"""A user's tasks in PostgreSQL, read and written as its administrator instead of through the services."""

from collections.abc import Sequence
from typing import Any

import psycopg

from common.claims import Deed
from evals.case import CaseTask
from evals.judge import ListedTask

Connection = psycopg.Connection[Any]
PRIORITIES = ("", "high", "medium", "low")

_USER = "INSERT INTO people (user_id, last_task_id) VALUES (%s, %s)"
_TASK = """
INSERT INTO tasks (user_id, id, title, description, due_on, due_time, priority, labels, repeat, series, status,
                   completed_at)
VALUES (%(user)s, %(number)s, %(title)s, %(description)s, %(day)s, %(clock)s, %(level)s, %(labels)s, %(rule)s,
        %(series)s, %(status)s, %(done)s)
"""
_ROWS = """
SELECT id, title, description, concat_ws(' ', due_on, to_char(due_time, 'HH24:MI')), coalesce(priority, 0), labels,
       coalesce(repeat, ''), status
FROM tasks WHERE user_id = %s ORDER BY id
"""
_CHANGES = """
SELECT id, CASE WHEN before IS NULL THEN 'added' WHEN after IS NULL THEN 'deleted'
                WHEN (before->>'status', after->>'status') = ('pending', 'completed') THEN 'completed'
                ELSE 'changed' END
FROM task_changes
WHERE user_id = %s AND id > %s AND before IS DISTINCT FROM after ORDER BY id
"""


def seed(connection: Connection, user: str, tasks: Sequence[CaseTask]) -> None:
    connection.execute(_USER, [user, len(tasks)])
    for number, task in enumerate(tasks, 1):
        day, _, clock = task.due.partition(" ")
        columns = {"day": day or None, "clock": clock or None, "level": PRIORITIES.index(task.priority) or None}
        columns |= {"rule": task.repeat or None, "series": number if task.repeat else None}
        columns |= {"labels": sorted(task.labels), "status": "completed" if task.done else "pending"}
        connection.execute(_TASK, {**task.model_dump(), **columns, "user": user, "number": number})


def read_tasks(connection: Connection, user: str) -> dict[int, ListedTask]:
    found = connection.execute(_ROWS, [user]).fetchall()
    return {
        number: ListedTask(title, description, due, PRIORITIES[priority], tuple(labels), repeat, status)
        for number, title, description, due, priority, labels, repeat, status in found
    }


def read_changes(connection: Connection, user: str, after: int) -> list[tuple[int, Deed]]:
    """Returns the changes since a change, by their numbers in the log."""
    return connection.execute(_CHANGES, [user, after]).fetchall()
