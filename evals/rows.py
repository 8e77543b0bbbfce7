"""A user's tasks in PostgreSQL, read and written as its administrator instead of through the services."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import psycopg

from evals.case import CaseTask
from evals.claims import Deed
from evals.judge import ListedTask

Connection = psycopg.Connection[Any]
PRIORITIES = ("", "high", "medium", "low")

_PERSON = "INSERT INTO people (user_id, last_task_id) VALUES (%s, %s)"
_TASK = """
INSERT INTO tasks (user_id, id, title, description, due_on, due_time, priority, labels, repeat, series, status,
                   completed_at)
VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s)
"""
_ROWS = """
SELECT id, title, description, concat_ws(' ', due_on, to_char(due_time, 'HH24:MI')), coalesce(priority, 0), labels,
       coalesce(repeat, ''), status
FROM tasks WHERE user_id = %s ORDER BY id
"""
_CHANGES = """
SELECT id, before->>'status', after->>'status' FROM task_changes
WHERE user_id = %s AND id > %s AND before IS DISTINCT FROM after ORDER BY id
"""


class LoggedChanges(NamedTuple):
    """The changes that the log has since a change; `last` is the number of the newest."""

    last: int
    writes: int
    deeds: frozenset[Deed]


def seed(connection: Connection, person: str, tasks: Sequence[CaseTask]) -> None:
    """Stores a new user's tasks, numbered from 1."""
    connection.execute(_PERSON, [person, len(tasks)])
    rows = [_create_row(person, number, task) for number, task in enumerate(tasks, 1)]
    with connection.cursor() as cursor:
        cursor.executemany(_TASK, rows)


def read_tasks(connection: Connection, person: str) -> dict[int, ListedTask]:
    found = connection.execute(_ROWS, [person]).fetchall()
    return {
        number: ListedTask(title, description, due, PRIORITIES[priority], tuple(labels), repeat, status)
        for number, title, description, due, priority, labels, repeat, status in found
    }


def read_changes(connection: Connection, person: str, after: int) -> LoggedChanges:
    found = connection.execute(_CHANGES, [person, after]).fetchall()
    deeds: frozenset[Deed] = frozenset(_name_change(before, now) for _, before, now in found)
    return LoggedChanges(found[-1][0] if found else after, len(found), deeds)


def _name_change(before: str | None, now: str | None) -> Deed:
    """Names a change by the statuses before and after, which are None without a task."""
    if before is None:
        return "added"
    if now is None:
        return "deleted"
    return "completed" if (before, now) == ("pending", "completed") else "changed"


def _create_row(person: str, number: int, task: CaseTask) -> list[Any]:
    day, _, clock = task.due.partition(" ")
    return [
        person,
        number,
        task.title,
        task.description,
        day or None,
        clock or None,
        PRIORITIES.index(task.priority) or None,
        sorted(task.labels),
        task.repeat or None,
        number if task.repeat else None,
        "completed" if task.done else "pending",
        task.done,
    ]
