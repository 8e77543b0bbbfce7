"""The statements of a list: a page of it, how many there are in it, and its titles."""

from collections.abc import Mapping
from functools import cache
from typing import Any

from sqlalchemy import Date, String, Text, Time, bindparam, cast, func, literal, select, tuple_
from sqlalchemy.dialects.postgresql import TIMESTAMP

from mcp_server.tasks.changes import OWNER
from mcp_server.tasks.lists.deleted import DELETED
from mcp_server.tasks.lists.filters import conditions
from mcp_server.tasks.lists.wishes import Position, Sorting
from mcp_server.tasks.task import PRIORITIES, TASKS, Stored, completion

PAGE_BYTES = 64_000  # of titles and descriptions: whoever reads a page reads it at once
_NO_PRIORITY = len(PRIORITIES) + 1
_NEVER, _END_OF_DAY = cast(literal("infinity", String), Date), cast(literal("24:00", String), Time)

_DAY, _TIME = (cast(bindparam(name, type_=Text), kind) for name, kind in (("last_day", Date), ("last_time", Time)))
_MOMENT = cast(bindparam("last_moment", type_=Text), TIMESTAMP(timezone=True))
_AFTER = bindparam("after", type_=TASKS.c.id.type)
_LAST_KEYS: Mapping[Sorting, tuple[Any, ...]] = {
    "created": (_AFTER,),
    "due": (_DAY, _TIME, _AFTER),
    "priority": (bindparam("last_urgency", type_=TASKS.c.priority.type), _DAY, _TIME, _AFTER),
    "completed": (_MOMENT, _AFTER),
    "deleted": (_MOMENT, _AFTER),
}
_NEWEST_FIRST = ("completed", "deleted")


def last(position: Position) -> dict[str, Any]:
    """What the position is in the order, as parameters."""
    return {
        "after": position.after,
        "last_urgency": position.urgency or _NO_PRIORITY,
        "last_day": position.day or "infinity",
        "last_time": position.time or "24:00",
        "last_moment": position.moment.isoformat() if position.moment else "-infinity",
    }


@cache
def page(names: tuple[str, ...], sorting: Sorting, *, deleted: bool, goes_on: bool) -> Any:
    """A page: of its tasks, in its order, those that fit into `PAGE_BYTES`, the first in any case.

    The last column, `found`, is how many there were before: the others never leave the database.
    """
    rows, mine = _rows(names, deleted=deleted)
    keys, after = tuple_(*_keys(rows, sorting)), tuple_(*_LAST_KEYS[sorting])
    beyond = [keys < after if sorting in _NEWEST_FIRST else keys > after] if goes_on else []
    columns = [column for column in rows.c if column.key in (*Stored.model_fields, "deletion", "deleted_at")]
    found = select(*columns).where(*mine, *beyond).order_by(*_order(rows, sorting))
    page = found.limit(bindparam("most")).subquery("page")
    texts = func.octet_length(page.c.title) + func.octet_length(page.c.description)
    before = func.coalesce(func.sum(texts).over(order_by=_order(page, sorting), rows=(None, -1)), 0).label("before")
    sized = select(*[*page.c, before, func.count().over().label("found")]).subquery("sized")
    return select(sized).where(sized.c.before < PAGE_BYTES).order_by(*_order(sized, sorting))


@cache
def count(names: tuple[str, ...], *, deleted: bool) -> Any:
    """How many there are, but no more than `counted`."""
    rows, mine = _rows(names, deleted=deleted)
    counted = select(literal(1)).select_from(rows).where(*mine).limit(bindparam("counted")).subquery()
    return select(func.count()).select_from(counted)


@cache
def titles(names: tuple[str, ...], *, deleted: bool) -> Any:
    """The numbers and titles of the newest."""
    rows, mine = _rows(names, deleted=deleted)
    newest_first = _order(rows, "deleted") if deleted else [rows.c.id.desc()]
    return select(rows.c.id, rows.c.title).where(*mine).order_by(*newest_first).limit(bindparam("most"))


def _rows(names: tuple[str, ...], *, deleted: bool) -> tuple[Any, list[Any]]:
    """What a list is made of, and which of it belong to it."""
    rows = DELETED if deleted else TASKS
    known = conditions(rows)
    return rows, [*([] if deleted else [TASKS.c.user_id == OWNER]), *(known[name] for name in names)]


def _keys(rows: Any, sorting: Sorting) -> tuple[Any, ...]:
    """What the list is ordered by: what is due without a day or a time comes after what has one."""
    if sorting == "deleted":
        return rows.c.deleted_at, rows.c.deletion
    if sorting == "completed":
        return completion(rows), rows.c.id
    day, clock = func.coalesce(rows.c.due_on, _NEVER), func.coalesce(rows.c.due_time, _END_OF_DAY)
    urgency = func.coalesce(rows.c.priority, _NO_PRIORITY)
    before_id = {"created": (), "due": (day, clock), "priority": (urgency, day, clock)}
    return (*before_id[sorting], rows.c.id)


def _order(rows: Any, sorting: Sorting) -> list[Any]:
    keys = _keys(rows, sorting)
    return [key.desc() for key in keys] if sorting in _NEWEST_FIRST else [*keys]
