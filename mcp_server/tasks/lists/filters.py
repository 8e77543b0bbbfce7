"""The SQL conditions of a list and their values."""

from collections.abc import Mapping
from datetime import date, datetime, time, timedelta
from typing import Any, LiteralString

from mcp_server.tasks import dates
from mcp_server.tasks.dates import Range
from mcp_server.tasks.fields import PRIORITIES
from mcp_server.tasks.lists import spelling
from mcp_server.tasks.lists.query import ListQuery
from mcp_server.tasks.lists.spelling import FOLD_ACCENTS, fold_letters, is_joint, remove_joints
from mcp_server.tasks.lists.statements import DUE_DAY
from mcp_server.tasks.zones import Now

# Folded once in each statement, and then escaped, because a folded letter may be special in LIKE.
_FOLDED_WORD = fold_letters(FOLD_ACCENTS.format("word"))
_PATTERNS = rf"""ARRAY(
    SELECT '%%' || regexp_replace({remove_joints(_FOLDED_WORD)}, '([\\%%_])', '\\\1', 'g') || '%%'
    FROM unnest(%(words)s::text[]) AS word)"""
_JOINT_PATTERNS = f"ARRAY(SELECT '%%' || {_FOLDED_WORD} || '%%' FROM unnest(%(joints)s::text[]) AS word)"
# The conditions by the names of their values. With coalesce(…, false) PostgreSQL expects many rows: it then reads the
# user's tasks in order, and not those of all users by an index.
_CONDITIONS: dict[str, LiteralString] = {
    "pending": "status = 'pending'",  # as in the indexes
    "completed": "status = 'completed'",
    "words": f"coalesce({remove_joints(fold_letters('folded'))} LIKE ALL ({_PATTERNS}), false)",
    "joints": f"coalesce({fold_letters('folded')} LIKE ALL ({_JOINT_PATTERNS}), false)",
    "undated": "due_on IS NULL",
    "dated": f"{DUE_DAY} < 'infinity'::date",  # by the index, as the two below
    "first": f"{DUE_DAY} >= %(first)s::date",
    "last": f"{DUE_DAY} <= %(last)s::date",
    "overdue": "(due_on < %(today)s::date OR due_on = %(today)s::date AND due_time < %(clock)s::time)",
    "done_from": "completed_at >= %(done_from)s",
    "done_before": "completed_at < %(done_before)s",
    "label": "coalesce(labels @> %(label)s::text[], false)",
    "priority": "priority = %(priority)s",
    "no_priority": "priority IS NULL",
}


def list_conditions(values: Mapping[str, Any]) -> list[LiteralString]:
    return [condition for name, condition in _CONDITIONS.items() if name in values]


def get_filter_values(query: ListQuery, now: Now) -> dict[str, Any]:
    values: dict[str, Any] = {query.status: True} if query.status in ("pending", "completed") else {}
    if query.query is not None:
        words = [*dict.fromkeys(query.query.split())]
        joints = [word for word in words if is_joint(word)]
        values |= {"words": [word for word in words if word not in joints], **spelling.VALUES}
        values |= {"joints": joints} if joints else {}
    if labels := [*filter(None, [query.label]), *(query.query_labels or "").split()]:
        values["label"] = labels
    if query.priority == "none":
        values["no_priority"] = True
    elif query.priority is not None:
        values["priority"] = PRIORITIES[query.priority]
    if query.due is not None:
        values |= _get_due_values(dates.read_due_range(query.due, now=now.local))
    if query.done is not None:
        values |= _get_completion_values(dates.read_completion_range(query.done, now=now.local), now)
    return values


def _get_due_values(days: Range) -> dict[str, Any]:
    if days.undated:
        return {"undated": True}
    if days.overdue_at is not None:
        return {"overdue": True, "today": days.overdue_at.date(), "clock": days.overdue_at.time()}
    ends = {"first": days.first, "last": days.last}
    return {"dated": True, **{name: day for name, day in ends.items() if day is not None}}


def _get_completion_values(days: Range, now: Now) -> dict[str, Any]:
    def midnight(day: date) -> datetime:
        return datetime.combine(day, time(), now.zone)

    values = {"done_from": midnight(days.first)} if days.first else {}
    return values | ({"done_before": midnight(days.last + timedelta(days=1))} if days.last else {})
