"""The SQL statements of a list: a page, the number of its tasks, and its titles."""

from collections.abc import Sequence
from typing import Any, LiteralString

from mcp_server.tasks.changes import CAN_BE_UNDONE
from mcp_server.tasks.fields import LOGGED_COLUMNS, PRIORITIES, TASK_COLUMNS
from mcp_server.tasks.lists.query import Position, Sorting
from mcp_server.tasks.lists.spelling import FOLD_ACCENTS

MAX_PAGE_BYTES = 64_000  # of titles and descriptions in a page
_NO_PRIORITY = len(PRIORITIES) + 1

# Labels without the brackets and quotes of their JSON.
_SEARCHED_TEXT = """(before->>'title') || ' ' || (before->>'description') || ' '
    || translate(coalesce(before->>'labels', ''), '[],"', '    ')"""
# The deleted tasks that can be restored, from the log, as rows of tasks, with the id and time of the deletion. Restored
# tasks are not among them, because restoring undoes the deletion.
DELETED = f"""(
    SELECT c.task_id AS id, {LOGGED_COLUMNS},
        {FOLD_ACCENTS.format(_SEARCHED_TEXT)} AS folded, c.id AS deletion, c.created_at AS deleted_at
    FROM task_changes c
    WHERE c.user_id = %(user)s AND c.created_at > %(since)s AND c.after IS NULL AND {CAN_BE_UNDONE}
) deleted"""
_TASKS = "(SELECT * FROM tasks WHERE user_id = %(user)s) tasks"

# As PostgreSQL prints the index `tasks_by_completion`, because Alembic compares the two. It is a CASE, which is
# leakproof and so may be evaluated before row-level security; a coalesce is not.
COMPLETION = """(
CASE
    WHEN completed_at IS NULL THEN '-infinity'::timestamp with time zone
    ELSE completed_at
END)"""
# Tasks without a day or time come after those with one.
_DUE_KEYS: tuple[LiteralString, ...] = ("coalesce(due_on, 'infinity'::date)", "coalesce(due_time, '24:00'::time)")
_LAST_DUE: tuple[LiteralString, ...] = ("%(last_day)s::date", "%(last_time)s::time")
# The sort keys of each order, and their values for the last task of the page before.
_KEYS: dict[Sorting, tuple[tuple[LiteralString, ...], tuple[LiteralString, ...]]] = {
    "created": (("id",), ("%(after)s::bigint",)),
    "due": ((*_DUE_KEYS, "id"), (*_LAST_DUE, "%(after)s::bigint")),
    "priority": (
        ("coalesce(priority, 4)", *_DUE_KEYS, "id"),
        ("%(last_urgency)s::integer", *_LAST_DUE, "%(after)s::bigint"),
    ),
    "completed": ((COMPLETION, "id"), ("%(last_moment)s::timestamptz", "%(after)s::bigint")),
    "deleted": (("deleted_at", "deletion"), ("%(last_moment)s::timestamptz", "%(after)s::bigint")),
}
_NEWEST_FIRST = ("completed", "deleted")


def get_position_values(position: Position) -> dict[str, Any]:
    return {
        "after": position.after,
        "last_urgency": position.urgency or _NO_PRIORITY,
        "last_day": position.day or "infinity",
        "last_time": position.time or "24:00",
        "last_moment": position.moment.isoformat() if position.moment else "-infinity",
    }


def select_page(
    conditions: Sequence[LiteralString], sorting: Sorting, *, deleted: bool, continues: bool
) -> LiteralString:
    """Returns the statement of a page with the tasks that fit into `MAX_PAGE_BYTES`, at least one.

    The column `matches` is their number before that limit.
    """
    keys, last = _KEYS[sorting]
    comparison = "<" if sorting in _NEWEST_FIRST else ">"
    after_position: list[LiteralString] = [f"({', '.join(keys)}) {comparison} ({', '.join(last)})"] if continues else []
    order = _render_order(sorting)
    columns = f"{TASK_COLUMNS}, deletion, deleted_at" if deleted else TASK_COLUMNS
    return f"""
SELECT * FROM (
    SELECT page.*, count(*) OVER () AS matches, coalesce(sum(octet_length(title) + octet_length(description)) OVER (
        ORDER BY {order} ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), 0) AS bytes_before
    FROM (
        SELECT {columns} FROM {_get_source(deleted)}{_render_where([*conditions, *after_position])} ORDER BY {order}
        LIMIT %(most)s::bigint
    ) page
) sized
WHERE bytes_before < %(page_bytes)s
ORDER BY {order}"""


def count_tasks(conditions: Sequence[LiteralString], *, deleted: bool) -> LiteralString:
    return f"""
SELECT count(*) AS total
FROM (SELECT FROM {_get_source(deleted)}{_render_where(conditions)} LIMIT %(counted)s::bigint) counted"""


def select_titles(conditions: Sequence[LiteralString], *, deleted: bool) -> LiteralString:
    order = _render_order("deleted") if deleted else "id DESC"
    source = f"{_get_source(deleted)}{_render_where(conditions)}"
    return f"SELECT id, title FROM {source} ORDER BY {order} LIMIT %(most)s::bigint"


def _get_source(deleted: bool) -> LiteralString:
    return DELETED if deleted else _TASKS


def _render_where(conditions: Sequence[LiteralString]) -> LiteralString:
    return f" WHERE {' AND '.join(conditions)}" if conditions else ""


def _render_order(sorting: Sorting) -> LiteralString:
    keys, _ = _KEYS[sorting]
    return ", ".join([f"{key} DESC" for key in keys] if sorting in _NEWEST_FIRST else keys)
