"""Which tasks are in a list: the conditions in SQL, and their values for a query."""

from collections.abc import Mapping
from datetime import date, datetime, time, timedelta
from typing import Any, LiteralString

from mcp_server.tasks import dates
from mcp_server.tasks.dates import Range
from mcp_server.tasks.lists import spelling
from mcp_server.tasks.lists.query import ListQuery
from mcp_server.tasks.lists.spelling import fold_accents, fold_letters
from mcp_server.tasks.task import PRIORITIES
from mcp_server.tasks.zones import Now

# Folded once in each statement, and then escaped: some letters fold into one that LIKE does not take literally.
_PATTERNS = rf"""ARRAY(
    SELECT '%%' || regexp_replace({fold_letters(fold_accents("word"))}, '([\\%%_])', '\\\1', 'g') || '%%'
    FROM unnest(%(words)s::text[]) AS word)"""
# The conditions by the names of their values. With coalesce(…, false), which no index serves, PostgreSQL takes a
# condition for likely: it then reads the user's tasks in their order, and not everybody's to find a rare one.
_CONDITIONS: dict[str, LiteralString] = {
    "status": "status = %(status)s",
    "completed": "status = 'completed'",  # as the index has it
    "words": f"coalesce({fold_letters('folded')} LIKE ALL ({_PATTERNS}), false)",
    "undated": "due_on IS NULL",
    "dated": "due_on IS NOT NULL",
    "first": "due_on >= %(first)s::date",
    "last": "due_on <= %(last)s::date",
    "overdue": "(due_on < %(today)s::date OR due_on = %(today)s::date AND due_time < %(clock)s::time)",
    "done_from": "completed_at >= %(done_from)s",
    "done_before": "completed_at < %(done_before)s",
    "label": "coalesce(labels @> %(label)s::text[], false)",
    "priority": "priority = %(priority)s",
    "no_priority": "priority IS NULL",
}


def conditions(values: Mapping[str, Any]) -> list[LiteralString]:
    """Those that have values, for rows with the columns of tasks."""
    return [condition for name, condition in _CONDITIONS.items() if name in values]


def filter_values(query: ListQuery, now: Now) -> dict[str, Any]:
    """The values of the conditions that hold, by the conditions' names."""
    values: dict[str, Any] = {"status": query.status} if query.status == "pending" else {}
    if query.status == "completed":
        values["completed"] = True
    if query.query is not None:
        values |= {"words": [*dict.fromkeys(query.query.split())], **spelling.VALUES}
    if query.label is not None:
        values["label"] = [query.label]
    if query.priority == "none":
        values["no_priority"] = True
    elif query.priority is not None:
        values["priority"] = PRIORITIES.index(query.priority) + 1
    if query.due is not None:
        values |= _due(dates.read_range(query.due, now=now.local))
    if query.done is not None:
        values |= _done(dates.read_done(query.done, now=now.local), now)
    return values


def _due(wanted: Range) -> dict[str, Any]:
    if wanted.undated:
        return {"undated": True}
    if wanted.overdue_at is not None:
        return {"overdue": True, "today": wanted.overdue_at.date(), "clock": wanted.overdue_at.time()}
    ends = {"first": wanted.first, "last": wanted.last}
    return {"dated": True, **{name: day for name, day in ends.items() if day is not None}}


def _done(wanted: Range, now: Now) -> dict[str, Any]:
    def midnight(day: date) -> datetime:
        return datetime.combine(day, time(), now.zone)

    values = {"done_from": midnight(wanted.first)} if wanted.first else {}
    return values | ({"done_before": midnight(wanted.last + timedelta(days=1))} if wanted.last else {})
