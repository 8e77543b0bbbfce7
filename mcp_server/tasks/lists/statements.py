"""The statements of a list: a page of it, how many tasks there are in it, and its titles."""

from collections.abc import Sequence
from typing import Any, LiteralString

from mcp_server.tasks.changes import CAN_BE_UNDONE
from mcp_server.tasks.lists.query import Position, Sorting
from mcp_server.tasks.lists.spelling import fold_accents
from mcp_server.tasks.task import PRIORITIES, TASK_COLUMNS

PAGE_BYTES = 64_000  # of titles and descriptions: whoever reads a page reads it at once
_NO_PRIORITY = len(PRIORITIES) + 1

# Of labels the letters alone: as JSON they stand in brackets and quotes.
_SEARCHED_TEXT = """(before->>'title') || ' ' || (before->>'description') || ' '
    || translate(coalesce(before->>'labels', ''), '[],"', '    ')"""
# The tasks that were deleted and can be restored, from the log, as rows of tasks, with the id and the moment of the
# change that deleted them. Whether one exists again needs no look: what restores a task undoes its deletion.
DELETED = f"""(
    SELECT c.task_id AS id, before->>'title' AS title, before->>'description' AS description,
        before->>'status' AS status, (before->>'created_at')::timestamptz AS created_at,
        (before->>'updated_at')::timestamptz AS updated_at, (before->>'completed_at')::timestamptz AS completed_at,
        (before->>'due_on')::date AS due_on, (before->>'due_time')::time(0) AS due_time,
        (before->>'priority')::smallint AS priority,
        ARRAY(SELECT jsonb_array_elements_text(coalesce(before->'labels', '[]'))) AS labels,
        before->>'repeat' AS repeat, (before->>'series')::bigint AS series,
        {fold_accents(_SEARCHED_TEXT)} AS folded, c.id AS deletion, c.created_at AS deleted_at
    FROM task_changes c
    WHERE c.user_id = %(user)s AND c.created_at > %(since)s AND c.after IS NULL AND {CAN_BE_UNDONE}
) deleted"""
_TASKS = "(SELECT * FROM tasks WHERE user_id = %(user)s) tasks"

# As the index `tasks_by_completion` has it: with a CASE, which row-level security takes for safe to look at before it
# has said whose row it is; a coalesce it does not.
COMPLETION = "(CASE WHEN completed_at IS NULL THEN '-infinity'::timestamptz ELSE completed_at END)"
# What is due without a day or a time comes after what has one.
_DUE_KEYS: tuple[LiteralString, ...] = ("coalesce(due_on, 'infinity'::date)", "coalesce(due_time, '24:00'::time)")
_LAST_DUE: tuple[LiteralString, ...] = ("%(last_day)s::date", "%(last_time)s::time")
# What a list is ordered by, and the same of the last task of the page before.
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


def position_values(position: Position) -> dict[str, Any]:
    """What the position is in the order."""
    return {
        "after": position.after,
        "last_urgency": position.urgency or _NO_PRIORITY,
        "last_day": position.day or "infinity",
        "last_time": position.time or "24:00",
        "last_moment": position.moment.isoformat() if position.moment else "-infinity",
    }


def page(conditions: Sequence[LiteralString], sorting: Sorting, *, deleted: bool, continues: bool) -> LiteralString:
    """A page: of its tasks, in its order, those that fit into `PAGE_BYTES`, the first in any case.

    The last column, `found`, is how many there were before: the others never leave the database.
    """
    keys, last = _KEYS[sorting]
    comparison = "<" if sorting in _NEWEST_FIRST else ">"
    beyond: list[LiteralString] = [f"({', '.join(keys)}) {comparison} ({', '.join(last)})"] if continues else []
    order = _order(sorting)
    columns = f"{TASK_COLUMNS}, deletion, deleted_at" if deleted else TASK_COLUMNS
    return f"""
SELECT * FROM (
    SELECT page.*, count(*) OVER () AS found, coalesce(sum(octet_length(title) + octet_length(description)) OVER (
        ORDER BY {order} ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), 0) AS bytes_before
    FROM (
        SELECT {columns} FROM {_rows(deleted)}{_where([*conditions, *beyond])} ORDER BY {order} LIMIT %(most)s::bigint
    ) page
) sized
WHERE bytes_before < %(page_bytes)s
ORDER BY {order}"""


def count(conditions: Sequence[LiteralString], *, deleted: bool) -> LiteralString:
    """How many there are, but no more than `counted`."""
    return f"""
SELECT count(*) AS total
FROM (SELECT FROM {_rows(deleted)}{_where(conditions)} LIMIT %(counted)s::bigint) counted"""


def titles(conditions: Sequence[LiteralString], *, deleted: bool) -> LiteralString:
    """The ids and titles of the newest."""
    order = _order("deleted") if deleted else "id DESC"
    return f"SELECT id, title FROM {_rows(deleted)}{_where(conditions)} ORDER BY {order} LIMIT %(most)s::bigint"


def _rows(deleted: bool) -> LiteralString:
    return DELETED if deleted else _TASKS


def _where(conditions: Sequence[LiteralString]) -> LiteralString:
    return f" WHERE {' AND '.join(conditions)}" if conditions else ""


def _order(sorting: Sorting) -> LiteralString:
    keys, _ = _KEYS[sorting]
    return ", ".join([f"{key} DESC" for key in keys] if sorting in _NEWEST_FIRST else keys)
