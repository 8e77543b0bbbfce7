"""The query of a list and its cursor."""

from base64 import b64decode, urlsafe_b64encode
from collections.abc import Mapping
from datetime import date, datetime, time
from typing import Any, Literal

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, NaiveDatetime

from common.tool_server.errors import to_printable
from mcp_server.arguments import MAX_ID, Order, Status
from mcp_server.errors import CursorOfOtherList, CursorUnknown
from mcp_server.tasks.fields import PRIORITIES
from mcp_server.tasks.patches import normalize_label

MAX_COUNTED = 2_000  # tasks of a list; counting all of a long list would take longer than reading a page
PageOrder = Literal["date", "title", "added"]
"""Orders of the page's list alone: `date` is `due` with what is overdue today before the rest of the day."""
Sorting = Literal[Order, PageOrder, "deleted"]


class ListQuery(BaseModel):
    """The filters and order of a list; a cursor belongs to one query."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)

    status: Status = "all"
    query: str | None = None
    due: str | None = None
    done: str | None = None
    label: str | None = None
    query_labels: str | None = None
    """Further labels, with a space between them, which the page's search names as "#home"."""
    priority: Literal["high", "medium", "low", "none"] | None = None
    order: Order | PageOrder = "created"

    @property
    def sorting(self) -> Sorting:
        # Deleted tasks are listed by default in the order of their deletion, the last first.
        return "deleted" if (self.status, self.order) == ("deleted", "created") else self.order

    def describe(self) -> str:
        values = {name: value for name, value in vars(self).items() if (name, value) != ("order", "created")}
        return ", ".join(
            f"{name} {to_printable(value, max_length=100)}" for name, value in values.items() if value is not None
        )

    def normalize(self) -> "ListQuery":
        days = {
            name: text and " ".join(text.lower().split()) for name, text in (("due", self.due), ("done", self.done))
        }
        query = self.query and " ".join(self.query.split())
        labels = {
            "label": self.label and normalize_label(self.label),
            "query_labels": self.query_labels and " ".join(map(normalize_label, self.query_labels.split())),
        }
        return self.model_copy(update={"query": query, **labels, **days})


class Position(BaseModel):
    """The content of a cursor: the query, and the sort keys of the last task of the page before."""

    model_config = ConfigDict(strict=True, extra="forbid")

    v: Literal[4] = 4
    query: ListQuery
    after: int = Field(ge=1, le=MAX_ID)
    """The id of the task or, sorted by deletion, of its deletion in the log."""
    urgency: int | None = Field(default=None, ge=1, le=len(PRIORITIES))
    day: str | None = Field(default=None, pattern=r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$")
    time: str | None = Field(default=None, pattern=r"^[0-9]{2}:[0-9]{2}:[0-9]{2}$")
    moment: AwareDatetime | None = None
    """The time of the deletion or completion."""
    title: str | None = Field(default=None, max_length=200)
    clock: NaiveDatetime | None = None
    """Sorted by date: the user's time by which the first page was sorted, so that time moves no task between pages."""


def write_cursor(query: ListQuery, last: Mapping[str, Any], clock: datetime) -> str:
    """Writes the position after the task `last` of a list that was sorted by the user's time `clock`."""
    match query.sorting:
        case "deleted":
            position = Position(query=query, after=last["deletion"], moment=last["deleted_at"])
        case "completed":
            position = Position(query=query, after=last["id"], moment=last["completed_at"])
        case "title":
            position = Position(query=query, after=last["id"], title=last["title"])
        case sorting:
            day, hour = (value and value.isoformat() for value in (last["due_on"], last["due_time"]))
            sorted_at = clock if sorting == "date" else None
            position = Position(
                query=query, after=last["id"], urgency=last["priority"], day=day, time=hour, clock=sorted_at
            )
    return urlsafe_b64encode(position.model_dump_json(exclude_defaults=True).encode()).rstrip(b"=").decode()


def read_cursor(cursor: str, query: ListQuery) -> Position:
    """Raises `CursorUnknown` or `CursorOfOtherList`."""
    try:
        raw = b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True)
        position = Position.model_validate_json(raw)
        _ = position.day and date.fromisoformat(position.day), position.time and time.fromisoformat(position.time)
    except ValueError:
        raise CursorUnknown from None
    if position.query != query:
        raise CursorOfOtherList(query=position.query.describe())
    required = {"deleted": position.moment, "title": position.title, "date": position.clock}
    if required.get(query.sorting, True) is None:
        raise CursorUnknown
    return position
