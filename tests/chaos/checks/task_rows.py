"""What became of the tasks: each change is made once, and each task is as it was told."""

from collections import Counter
from collections.abc import Iterator
from typing import Any

import psycopg
from psycopg.rows import dict_row

from tests.chaos.record import Record, Wish

Row = dict[str, Any]


class TaskRows:
    """The tasks of all users with all that changed them, as a superuser reads them."""

    def __init__(self, admin_url: str) -> None:
        with psycopg.connect(admin_url) as connection, connection.cursor(row_factory=dict_row) as cursor:

            def read(sql: str) -> list[Row]:
                return cursor.execute(sql.encode()).fetchall()

            self.calls = read("SELECT * FROM task_calls ORDER BY id")
            self._tasks = read("SELECT id, title, status, due_on FROM tasks")
            self._changes = read(
                "SELECT task_id, before, after, operation, idempotency_key FROM task_changes "
                "JOIN task_calls ON task_calls.id = call_id AND task_calls.user_id = task_changes.user_id"
            )

    def problems(self, record: Record) -> Iterator[str]:
        yield from self._made_once()
        yield from self._wishes(record)

    def _made_once(self) -> Iterator[str]:
        keys = Counter(row["idempotency_key"] for row in self.calls)
        yield from (f"the key {key} acted {count} times" for key, count in keys.items() if count > 1)
        titles = Counter((row["after"] or {}).get("title") for row in self._changes if row["before"] is None)
        yield from (f"{title!r} was added {count} times" for title, count in titles.items() if count > 1)
        done = Counter((row["task_id"], row["operation"]) for row in self._changes)
        yield from (f"task {task}: {operation} {count} times" for (task, operation), count in done.items() if count > 1)

    def _wishes(self, record: Record) -> Iterator[str]:
        tasks = {row["title"]: row for row in self._tasks}
        numbers = {(row["after"] or {}).get("title"): row["task_id"] for row in self._changes if row["before"] is None}
        operations: dict[int, set[str]] = {}
        for row in self._changes:
            operations.setdefault(row["task_id"], set()).add(row["operation"])
        for title, wish in record.wishes.items():
            done = operations.get(numbers.get(title, 0), set())
            if done != _OPERATIONS[wish] or (title in tasks) != (wish != "deleted"):
                yield f"{title!r} is to be {wish}, and was {done}: {tasks.get(title)}"


_OPERATIONS: dict[Wish, set[str]] = {
    "there": {"add"},
    "completed": {"add", "complete"},
    "postponed": {"add", "update"},
    "deleted": {"add", "delete"},
}
