"""The SQL statements of a list: a page, the numbers of its tasks, and its titles."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any, LiteralString

from mcp_server.tasks.changes import CAN_BE_UNDONE
from mcp_server.tasks.fields import LOGGED_COLUMNS, PRIORITIES, TASK_COLUMNS
from mcp_server.tasks.lists import spelling
from mcp_server.tasks.lists.query import Position, Sorting
from mcp_server.tasks.lists.spelling import FOLD_ACCENTS, fold_letters

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

# Sort keys as PostgreSQL prints them in the indexes `tasks_by_due` and `tasks_by_completion`, because Alembic compares
# the two. Each is a CASE, which is leakproof and so may be evaluated before row-level security; a coalesce is not.
# Tasks without a day, priority or time come after those with one.
DUE_DAY = """(
CASE
    WHEN due_on IS NULL THEN 'infinity'::date
    ELSE due_on
END)"""
URGENCY = """(
CASE
    WHEN priority IS NULL THEN 4
    ELSE priority::integer
END)"""
DUE_TIME = """(
CASE
    WHEN due_time IS NULL THEN '24:00:00'::time without time zone
    ELSE due_time
END)"""
COMPLETION = """(
CASE
    WHEN completed_at IS NULL THEN '-infinity'::timestamp with time zone
    ELSE completed_at
END)"""
# Within a day, first what is overdue at the time by which a list is sorted.
_IS_AHEAD = "(CASE WHEN due_on = %(sort_day)s::date AND due_time < %(sort_time)s::time THEN 0 ELSE 1 END)"
_IS_LAST_AHEAD = """(CASE WHEN %(last_day)s::date = %(sort_day)s::date AND %(last_time)s::time < %(sort_time)s::time
    THEN 0 ELSE 1 END)"""
_Key = tuple[LiteralString, LiteralString]
"""A sort key, and its value for the last task of the page before."""
_DAY: _Key = (DUE_DAY, "%(last_day)s::date")
_TIME: _Key = (DUE_TIME, "%(last_time)s::time")
_URGENCY: _Key = (URGENCY, "%(last_urgency)s::integer")
_ID: _Key = ("id", "%(after)s::bigint")
_MOMENT = "%(last_moment)s::timestamptz"


def _fold_title(title: LiteralString) -> LiteralString:
    # In the order of code points, which is the same on each server.
    return f'({fold_letters(FOLD_ACCENTS.format(title))}) COLLATE "C"'


_KEYS: dict[Sorting, tuple[_Key, ...]] = {
    "created": (_ID,),
    "added": (_ID,),
    "due": (_DAY, _URGENCY, _TIME, _ID),
    "date": (_DAY, (_IS_AHEAD, _IS_LAST_AHEAD), _URGENCY, _TIME, _ID),
    "priority": (_URGENCY, _DAY, _TIME, _ID),
    "title": ((_fold_title("title"), _fold_title("%(last_title)s::text")), _ID),
    "completed": ((COMPLETION, _MOMENT), _ID),
    "deleted": (("deleted_at", _MOMENT), ("deletion", "%(after)s::bigint")),
}
_NEWEST_FIRST = ("added", "completed", "deleted")


def get_position_values(position: Position) -> dict[str, Any]:
    return {
        "after": position.after,
        "last_urgency": position.urgency or _NO_PRIORITY,
        "last_day": position.day or "infinity",
        "last_time": position.time or "24:00",
        "last_title": position.title or "",
        "last_moment": position.moment.isoformat() if position.moment else "-infinity",
    }


def get_sort_values(sorting: Sorting, clock: datetime) -> dict[str, Any]:
    """Returns the values of an order, which may depend on the user's time and on the letters that are equivalent."""
    if sorting == "title":
        return dict(spelling.VALUES)
    return {"sort_day": clock.date(), "sort_time": clock.time()} if sorting == "date" else {}


def select_page(
    conditions: Sequence[LiteralString], sorting: Sorting, *, deleted: bool, continues: bool
) -> LiteralString:
    """Returns the statement of a page with the tasks that fit into `MAX_PAGE_BYTES`, at least one.

    The column `matches` is their number before that limit. Tasks are sorted by their ids and keys alone, because a sort
    of whole rows needs as much memory as all descriptions.
    """
    keys, last = zip(*_KEYS[sorting], strict=True)
    comparison = "<" if sorting in _NEWEST_FIRST else ">"
    after_position: list[LiteralString] = [f"({', '.join(keys)}) {comparison} ({', '.join(last)})"] if continues else []
    order, where = _render_order(sorting), _render_where([*conditions, *after_position])
    limits: LiteralString = f"ORDER BY {order} OFFSET %(offset)s::bigint LIMIT %(most)s::bigint"
    page: LiteralString
    if deleted:
        page = f"SELECT {TASK_COLUMNS}, deletion, deleted_at FROM {DELETED}{where} {limits}"
    else:
        page = f"""
        SELECT {TASK_COLUMNS}, snoozed_until FROM (SELECT id AS chosen FROM {_TASKS}{where} {limits}) ids
        JOIN tasks ON user_id = %(user)s AND id = chosen"""
    return f"""
SELECT * FROM (
    SELECT page.*, count(*) OVER () AS matches, coalesce(sum(octet_length(title) + octet_length(description)) OVER (
        ORDER BY {order} ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), 0) AS bytes_before
    FROM ({page}) page
) sized
WHERE bytes_before < %(page_bytes)s
ORDER BY {order}"""


def count_tasks(conditions: Sequence[LiteralString], *, deleted: bool) -> LiteralString:
    return f"""
SELECT count(*) AS total
FROM (SELECT FROM {_get_source(deleted)}{_render_where(conditions)} LIMIT %(counted)s::bigint) counted"""


def count_sections(conditions: Sequence[LiteralString], key: LiteralString, *, deleted: bool) -> LiteralString:
    """Returns the statement of one row: pairs of a section's key and the number of all its tasks."""
    return f"""
SELECT coalesce(json_agg(json_build_array(key, number)), '[]') AS sections FROM (
    SELECT {key} AS key, count(*) AS number FROM {_get_source(deleted)}{_render_where(conditions)} GROUP BY key
) counted"""


def select_titles(conditions: Sequence[LiteralString], *, deleted: bool) -> LiteralString:
    order = _render_order("deleted") if deleted else "id DESC"
    source = f"{_get_source(deleted)}{_render_where(conditions)}"
    return f"SELECT id, title FROM {source} ORDER BY {order} LIMIT %(most)s::bigint"


def _get_source(deleted: bool) -> LiteralString:
    return DELETED if deleted else _TASKS


def _render_where(conditions: Sequence[LiteralString]) -> LiteralString:
    return f" WHERE {' AND '.join(conditions)}" if conditions else ""


def _render_order(sorting: Sorting) -> LiteralString:
    descending = " DESC" if sorting in _NEWEST_FIRST else ""
    return ", ".join([f"{key}{descending}" for key, _ in _KEYS[sorting]])
