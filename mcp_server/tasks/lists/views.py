"""The views of the page's list: a page of one with the numbers of its sections, and the numbers of all views."""

import asyncio
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import date, datetime
from typing import Annotated, Any, Literal, LiteralString, get_type_hints
from zoneinfo import ZoneInfo

from pydantic import BaseModel, ConfigDict, Field

from common.database import Transaction
from mcp_server import arguments
from mcp_server.arguments import Argument, list_arguments
from mcp_server.tasks import zones
from mcp_server.tasks.changes import UNDO_PERIOD, Caller
from mcp_server.tasks.lists import reads, statements
from mcp_server.tasks.lists.pages import Selection
from mcp_server.tasks.lists.query import ListQuery
from mcp_server.tasks.results import Result, render_listed_row
from mcp_server.tasks.zones import Now

MAX_OFFSET = 10_000
_MAX_LABELS = 200
# In a search, as the grammar of typed texts reads it; "#12" is the text of a title.
_LABEL = re.compile(r"#(?![\d.,:;/!?()\[\]+-]*\Z)\S{1,40}")
_MAX_DAYS = 500  # sections of a view
View = Literal["today", "upcoming", "all", "done", "deleted"]
Sort = Literal["date", "priority", "title", "added"]
_FILTERS: Mapping[View, Mapping[str, Any]] = {
    "today": {"status": "pending", "due": "..today"},
    "upcoming": {"status": "pending", "due": "tomorrow.."},
    "all": {"status": "pending"},
    "done": {"status": "completed"},
    "deleted": {"status": "deleted"},
}
_BY_DATE: Mapping[View, Any] = {"done": "completed", "deleted": "created"}

_IS_OVERDUE = "(due_on < %(sort_day)s::date OR due_on = %(sort_day)s::date AND due_time < %(sort_time)s::time)"
_PENDING_KEY = f"""CASE WHEN due_on IS NULL THEN 'undated' WHEN {_IS_OVERDUE} THEN 'overdue'
    WHEN due_on = %(sort_day)s::date THEN 'today' ELSE 'coming' END"""
_QUARTER_SECONDS = 900
_KEYS: Mapping[View, LiteralString] = {
    "today": _PENDING_KEY,
    "upcoming": "due_on::text",
    "all": _PENDING_KEY,
    "done": "floor(extract(epoch FROM completed_at) / 900)::bigint",
    "deleted": "floor(extract(epoch FROM deleted_at) / 900)::bigint",
}
_PENDING_ORDER = ("overdue", "today", "coming", "undated")
_COUNT = f"""
SELECT
    count(*) FILTER (WHERE status = 'pending' AND due_on <= %(sort_day)s::date) AS today,
    count(*) FILTER (WHERE status = 'pending' AND {_IS_OVERDUE}) AS overdue,
    count(*) FILTER (WHERE status = 'pending' AND due_on > %(sort_day)s::date) AS upcoming,
    count(*) FILTER (WHERE status = 'pending') AS "all",
    count(*) FILTER (WHERE status = 'completed') AS done,
    (SELECT count(*) FROM {statements.DELETED}) AS deleted
FROM tasks WHERE user_id = %(user)s"""
_COUNT_LABELS = """
SELECT label, count(*) AS count FROM tasks, unnest(labels) AS label
WHERE user_id = %(user)s AND status = 'pending' GROUP BY label ORDER BY count(*) DESC, label LIMIT %(most)s"""


class ViewQuery(BaseModel):
    """The query string of a page of a view."""

    model_config = ConfigDict(frozen=True)

    view: Annotated[View, Argument("today, upcoming, all, done or deleted")]
    sort: Annotated[Sort, Argument("date, priority, title or added")] = "date"
    query: arguments.Query = None
    label: arguments.Label = None
    priority: arguments.PriorityFilter = None
    cursor: arguments.Cursor = None
    offset: Annotated[int, Argument(f"a whole number from 0 to {MAX_OFFSET:,}"), Field(ge=0, le=MAX_OFFSET)] = 0
    limit: Annotated[int, Argument("a whole number from 1 to 100"), Field(ge=1, le=100)] = 100

    @property
    def has_sections(self) -> bool:
        return self.sort == "date"

    def get_list_query(self) -> ListQuery:
        order = {"date": _BY_DATE.get(self.view, "date")}.get(self.sort, self.sort)
        words = (self.query or "").split()
        labels = [word for word in words if _LABEL.fullmatch(word)]
        texts = {
            "query": " ".join(word for word in words if word not in labels) or None,
            "query_labels": " ".join(labels) or None,
        }
        fields = {**texts, "label": self.label, "priority": self.priority, "order": order}
        return ListQuery.model_validate({**_FILTERS[self.view], **fields})


_ARGUMENTS = list_arguments(get_type_hints(ViewQuery, include_extras=True))
RULES = {name: argument.rule for name, argument in _ARGUMENTS.items()}


async def list_view(tx: Transaction, caller: Caller, query: ViewQuery) -> Result:
    """Returns a page of a view, after `offset` tasks from its cursor, with the numbers of all its sections.

    `last` is the number of the newest change, which is read first, so that none is missed.
    """
    now = await zones.get_now(tx, caller)
    selection = Selection.create(query.get_list_query(), query.cursor, now, caller)
    statement, values = selection.select_page(query.limit, query.offset)
    newest = await tx.execute(reads.NEWEST_CHANGE)
    page = await tx.execute(statement, **values)
    key = _KEYS[query.view] if query.has_sections else "'all'"
    counting = statements.count_sections(selection.conditions, key, deleted=selection.deleted)
    counted = await tx.execute(counting, **{**selection.values, **_get_clock(now)})
    # In a thread, because ten thousand moments take 10 ms.
    sections = await asyncio.to_thread(_render_sections, query, (await counted.fetchall())[0]["sections"], now.zone)
    return {
        **selection.render_page(await page.fetchall(), query.limit, caller, render=render_listed_row),
        "total": sum(section["count"] for section in sections),
        "sections": sections,
        "last": (await newest.fetchall())[0]["last"] or 0,
    }


def _get_clock(now: Now) -> dict[str, Any]:
    minute = now.local.replace(second=0, microsecond=0)
    return {"sort_day": minute.date(), "sort_time": minute.time()}


def _render_sections(query: ViewQuery, counted: Sequence[tuple[Any, int]], zone: ZoneInfo) -> list[Result]:
    """Returns the sections in the order of the view; what is beyond `_MAX_DAYS` days is one, `later` or `earlier`."""
    if not query.has_sections or query.view in ("today", "all"):
        numbers = dict[str, int](counted)
        return [{"key": key, "count": numbers[key]} for key in ("all", *_PENDING_ORDER) if key in numbers]
    is_past = query.view != "upcoming"
    days = _count_days(counted, zone) if is_past else Counter[str](dict(counted))
    keys = sorted(days, reverse=is_past)
    sections: list[Result] = [{"key": key, "count": days[key]} for key in keys[:_MAX_DAYS]]
    if rest := sum(days[key] for key in keys[_MAX_DAYS:]):
        sections.append({"key": "earlier" if is_past else "later", "count": rest})
    return sections


def _count_days(counted: Iterable[tuple[int, int]], zone: ZoneInfo) -> Counter[str]:
    """Counts by the user's days what was counted by quarters of an hour since 1970: each zone's days begin with one."""
    days = Counter[date]()
    for quarter, number in counted:
        days[datetime.fromtimestamp(quarter * _QUARTER_SECONDS, zone).date()] += number
    return Counter({day.isoformat(): number for day, number in days.items()})


async def count_views(tx: Transaction, caller: Caller) -> Result:
    """Returns the number of tasks of each view, those of `today` that are overdue, and the labels of pending tasks."""
    now = await zones.get_now(tx, caller)
    views = await tx.execute(_COUNT, since=now.instant - UNDO_PERIOD, **_get_clock(now))
    labels = await tx.execute(_COUNT_LABELS, most=_MAX_LABELS)
    return {**(await views.fetchall())[0], "labels": await labels.fetchall()}
