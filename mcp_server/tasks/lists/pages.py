"""The list of a person's tasks, a page at a time."""

from base64 import b64decode, urlsafe_b64encode
from collections.abc import Mapping
from datetime import date, datetime, time, timedelta
from functools import cache
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field
from sqlalchemy import Date, String, Text, Time, and_, bindparam, cast, func, literal, or_, select, tuple_
from sqlalchemy.dialects.postgresql import ARRAY, TIMESTAMP
from sqlmodel.ext.asyncio.session import AsyncSession

from mcp_server.arguments import MAX_ID, Order, Status
from mcp_server.errors import CursorOfOtherList, CursorUnknown, shown
from mcp_server.tasks import dates, zones
from mcp_server.tasks.changes import OWNER, Caller
from mcp_server.tasks.dates import Due, Range
from mcp_server.tasks.fields import label_of
from mcp_server.tasks.task import MOST_COUNTED, PRIORITIES, TASKS, Stored, Task, TaskPage
from mcp_server.tasks.zones import Now

PAGE_BYTES = 64_000  # of titles and descriptions: whoever reads a page reads it at once
_NO_PRIORITY = len(PRIORITIES) + 1

_NEVER, _END_OF_DAY = cast(literal("infinity", String), Date), cast(literal("24:00", String), Time)


def _keys(rows: Any, order: Order) -> tuple[Any, ...]:
    """What the list is ordered by: what is due without a day or a time comes after what has one."""
    day, clock = func.coalesce(rows.c.due_on, _NEVER), func.coalesce(rows.c.due_time, _END_OF_DAY)
    urgency = func.coalesce(rows.c.priority, _NO_PRIORITY)
    before_id = {"created": (), "due": (day, clock), "priority": (urgency, day, clock)}
    return (*before_id[order], rows.c.id)


_LAST_KEYS: Mapping[Order, tuple[Any, ...]] = {
    "created": (),
    "due": (cast(bindparam("last_day", type_=Text), Date), cast(bindparam("last_time", type_=Text), Time)),
    "priority": (
        bindparam("last_urgency", type_=TASKS.c.priority.type),
        cast(bindparam("last_day", type_=Text), Date),
        cast(bindparam("last_time", type_=Text), Time),
    ),
}
_MOMENT = TIMESTAMP(timezone=True)
_CONDITIONS: Mapping[str, Any] = {
    "status": TASKS.c.status == bindparam("status"),
    "undated": TASKS.c.due_on.is_(None),
    "dated": TASKS.c.due_on.is_not(None),
    "first": TASKS.c.due_on >= bindparam("first", type_=Date),
    "last": TASKS.c.due_on <= bindparam("last", type_=Date),
    "overdue": or_(
        TASKS.c.due_on < bindparam("today", type_=Date),
        and_(TASKS.c.due_on == bindparam("today", type_=Date), TASKS.c.due_time < bindparam("clock", type_=Time)),
    ),
    "done_from": TASKS.c.completed_at >= bindparam("done_from", type_=_MOMENT),
    "done_before": TASKS.c.completed_at < bindparam("done_before", type_=_MOMENT),
    "label": TASKS.c.labels.contains(cast(bindparam("label", type_=ARRAY(Text)), ARRAY(Text))),
    "priority": TASKS.c.priority == bindparam("priority"),
    "no priority": TASKS.c.priority.is_(None),
}


class Wish(BaseModel):
    """What a list is asked for; a cursor belongs to one wish."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)

    status: Status = "all"
    due: str | None = None
    done: str | None = None
    label: str | None = None
    priority: Literal["high", "medium", "low", "none"] | None = None
    order: Order = "created"

    def in_words(self) -> str:
        given = {name: value for name, value in vars(self).items() if (name, value) != ("order", "created")}
        return ", ".join(f"{name} {shown(value, longest=100)}" for name, value in given.items() if value is not None)

    def in_one_spelling(self) -> "Wish":
        """As every spelling of it is written in a cursor."""
        days = {
            name: text and " ".join(text.lower().split()) for name, text in (("due", self.due), ("done", self.done))
        }
        return self.model_copy(update={"label": self.label and label_of(self.label), **days})


class _Position(BaseModel):
    """What a cursor holds: the last task of the page before, by all that it is ordered by, and the wish."""

    model_config = ConfigDict(strict=True, extra="forbid")

    v: Literal[2] = 2
    wish: Wish
    after: int = Field(ge=1, le=MAX_ID)
    urgency: int | None = Field(default=None, ge=1, le=len(PRIORITIES))
    day: str | None = Field(default=None, pattern=r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$")
    time: str | None = Field(default=None, pattern=r"^[0-9]{2}:[0-9]{2}:[0-9]{2}$")


async def list_page(
    session: AsyncSession, caller: Caller, wish: Wish, *, cursor: str | None = None, limit: int = 50
) -> TaskPage:
    """Tasks in the order that is asked for; what is added or deleted between pages moves none of the others.

    A page has `limit` tasks, or as many as fit into `PAGE_BYTES`.
    """
    wish = wish.in_one_spelling()
    position = _read(cursor, wish) if cursor is not None else None
    now = await zones.now(session, caller)
    values = _values(wish, now)
    names = tuple(name for name in _CONDITIONS if name in values)
    last = _last(position) if position else {}
    params = {"owner": caller.user_id, "most": limit + 1, "counted": MOST_COUNTED, **values, **last}
    connection = await session.connection()
    rows = (await connection.execute(_page(names, wish.order, position is not None), params)).all()
    total = await connection.scalar(_count(names), params) if position or rows else 0
    page = [Stored.model_validate(row) for row in rows[:limit]]
    more = bool(rows) and rows[0].found > len(page)
    return TaskPage(
        tasks=tuple(Task.model_validate(task.told()) for task in page),
        next_cursor=_written(wish, page[-1]) if more else None,
        total=total or 0,
        now=dates.shown(Due(now.local.date(), now.local.time())),
        time_zone=now.zone.key,
    )


def _values(wish: Wish, now: Now) -> dict[str, Any]:
    """The values of the conditions that hold, by the conditions' names."""
    values: dict[str, Any] = {"status": wish.status} if wish.status != "all" else {}
    if wish.label is not None:
        values["label"] = [wish.label]
    if wish.priority == "none":
        values["no priority"] = True
    elif wish.priority is not None:
        values["priority"] = PRIORITIES.index(wish.priority) + 1
    if wish.due is not None:
        values |= _due(dates.read_range(wish.due, now=now.local))
    if wish.done is not None:
        values |= _done(dates.read_done(wish.done, now=now.local), now)
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


@cache
def _page(names: tuple[str, ...], order: Order, goes_on: bool) -> Any:
    """A page: of its tasks, in its order, those that fit into `PAGE_BYTES`, the first in any case.

    The last column, `found`, is how many there were before: the others never leave the database.
    """
    keys, after = _keys(TASKS, order), (*_LAST_KEYS[order], bindparam("after", type_=TASKS.c.id.type))
    mine = [TASKS.c.user_id == OWNER, *(_CONDITIONS[name] for name in names)]
    if goes_on:
        mine.append(tuple_(*keys) > tuple_(*after) if len(keys) > 1 else TASKS.c.id > after[-1])
    columns = [TASKS.c[name] for name in Stored.model_fields]
    page = select(*columns).where(*mine).order_by(*keys).limit(bindparam("most")).subquery("page")
    texts = func.octet_length(page.c.title) + func.octet_length(page.c.description)
    before = func.coalesce(func.sum(texts).over(order_by=_keys(page, order), rows=(None, -1)), 0).label("before")
    sized = select(*[*page.c, before, func.count().over().label("found")]).subquery("sized")
    return select(sized).where(sized.c.before < PAGE_BYTES).order_by(*_keys(sized, order))


@cache
def _count(names: tuple[str, ...]) -> Any:
    mine = (TASKS.c.user_id == OWNER, *(_CONDITIONS[name] for name in names))
    counted = select(literal(1)).where(*mine).limit(bindparam("counted")).subquery()
    return select(func.count()).select_from(counted)


def _last(position: _Position) -> dict[str, Any]:
    """What the position is in the order, as the parameters of the statement."""
    return {
        "after": position.after,
        "last_urgency": position.urgency or _NO_PRIORITY,
        "last_day": position.day or "infinity",
        "last_time": position.time or "24:00",
    }


def _written(wish: Wish, last: Stored) -> str:
    day, clock = last.due_on and last.due_on.isoformat(), last.due_time and last.due_time.isoformat()
    position = _Position(wish=wish, after=last.id, urgency=last.priority, day=day, time=clock)
    return urlsafe_b64encode(position.model_dump_json(exclude_defaults=True).encode()).rstrip(b"=").decode()


def _read(cursor: str, wish: Wish) -> _Position:
    try:
        raw = b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True)
        position = _Position.model_validate_json(raw)
        _ = position.day and date.fromisoformat(position.day), position.time and time.fromisoformat(position.time)
    except ValueError:
        raise CursorUnknown from None
    if position.wish != wish:
        raise CursorOfOtherList(wish=position.wish.in_words())
    return position
