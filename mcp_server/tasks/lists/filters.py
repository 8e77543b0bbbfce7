"""Which tasks are in a list: the conditions, and their values for a wish."""

from collections.abc import Mapping
from datetime import date, datetime, time, timedelta
from typing import Any

from sqlalchemy import Date, Text, Time, all_, and_, bindparam, cast, false, func, literal_column, or_, select
from sqlalchemy.dialects.postgresql import ARRAY, TIMESTAMP

from mcp_server.models import folded
from mcp_server.tasks import dates
from mcp_server.tasks.dates import Range
from mcp_server.tasks.lists.wishes import Wish
from mcp_server.tasks.task import PRIORITIES, TASKS
from mcp_server.tasks.zones import Now

_MOMENT = TIMESTAMP(timezone=True)
_WORD = func.unnest(bindparam("words", type_=ARRAY(Text))).table_valued("word").render_derived()
# Folded once in each statement, and then escaped: some letters fold into one that LIKE does not take literally.
_PATTERN: Any = literal_column(rf"'%' || regexp_replace({folded('word')}, '([\\%_])', '\\\1', 'g') || '%'", Text)
_PATTERNS = func.array(select(_PATTERN).select_from(_WORD).scalar_subquery(), type_=ARRAY(Text))


def conditions(rows: Any) -> Mapping[str, Any]:
    """Of rows with the columns of tasks, by the names of their values in the parameters."""
    return {
        "status": rows.c.status == bindparam("status"),
        "completed": rows.c.status == literal_column("'completed'"),  # as the index has it
        "words": _unforeseen(rows.c.folded.like(all_(_PATTERNS))),
        "undated": rows.c.due_on.is_(None),
        "dated": rows.c.due_on.is_not(None),
        "first": rows.c.due_on >= bindparam("first", type_=Date),
        "last": rows.c.due_on <= bindparam("last", type_=Date),
        "overdue": or_(
            rows.c.due_on < bindparam("today", type_=Date),
            and_(rows.c.due_on == bindparam("today", type_=Date), rows.c.due_time < bindparam("clock", type_=Time)),
        ),
        "done_from": rows.c.completed_at >= bindparam("done_from", type_=_MOMENT),
        "done_before": rows.c.completed_at < bindparam("done_before", type_=_MOMENT),
        "label": _unforeseen(rows.c.labels.contains(cast(bindparam("label", type_=ARRAY(Text)), ARRAY(Text)))),
        "priority": rows.c.priority == bindparam("priority"),
        "no priority": rows.c.priority.is_(None),
    }


def _unforeseen(condition: Any) -> Any:
    """What no index serves, as something that PostgreSQL takes for likely: it then reads the person's tasks in their
    order, and not everybody's to find a rare one.
    """
    return func.coalesce(condition, false())


_NAMES = tuple(conditions(TASKS))


def names(values: Mapping[str, Any]) -> tuple[str, ...]:
    """Those of the conditions that have values."""
    return tuple(name for name in _NAMES if name in values)


def values(wish: Wish, now: Now) -> dict[str, Any]:
    """The values of the conditions that hold, by the conditions' names."""
    found: dict[str, Any] = {"status": wish.status} if wish.status == "pending" else {}
    if wish.status == "completed":
        found["completed"] = True
    if wish.query is not None:
        found["words"] = [*dict.fromkeys(wish.query.split())]
    if wish.label is not None:
        found["label"] = [wish.label]
    if wish.priority == "none":
        found["no priority"] = True
    elif wish.priority is not None:
        found["priority"] = PRIORITIES.index(wish.priority) + 1
    if wish.due is not None:
        found |= _due(dates.read_range(wish.due, now=now.local))
    if wish.done is not None:
        found |= _done(dates.read_done(wish.done, now=now.local), now)
    return found


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

    found = {"done_from": midnight(wanted.first)} if wanted.first else {}
    return found | ({"done_before": midnight(wanted.last + timedelta(days=1))} if wanted.last else {})
