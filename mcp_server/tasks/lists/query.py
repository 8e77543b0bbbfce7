"""The query of a list, and the cursor that continues it."""

from base64 import b64decode, urlsafe_b64encode
from collections.abc import Mapping
from datetime import date, time
from typing import Any, Literal

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field

from common.tool_server.errors import to_printable
from mcp_server.arguments import MAX_ID, Order, Status
from mcp_server.errors import CursorOfOtherList, CursorUnknown
from mcp_server.tasks.fields import label_of
from mcp_server.tasks.task import PRIORITIES

MOST_COUNTED = 2_000  # tasks of a list: to count a hundred thousand costs more than a page of them
Sorting = Literal[Order, "deleted"]


class ListQuery(BaseModel):
    """Which tasks a list has, and their order; a cursor belongs to one query."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)

    status: Status = "all"
    query: str | None = None
    due: str | None = None
    done: str | None = None
    label: str | None = None
    priority: Literal["high", "medium", "low", "none"] | None = None
    order: Order = "created"

    @property
    def sorting(self) -> "Sorting":
        """What was deleted comes in the order in which it was, the last first: that is what people look for."""
        return "deleted" if (self.status, self.order) == ("deleted", "created") else self.order

    def in_words(self) -> str:
        given = {name: value for name, value in vars(self).items() if (name, value) != ("order", "created")}
        return ", ".join(
            f"{name} {to_printable(value, longest=100)}" for name, value in given.items() if value is not None
        )

    def in_one_spelling(self) -> "ListQuery":
        """As every spelling of it is written in a cursor."""
        days = {
            name: text and " ".join(text.lower().split()) for name, text in (("due", self.due), ("done", self.done))
        }
        query = self.query and " ".join(self.query.split())
        return self.model_copy(update={"query": query, "label": self.label and label_of(self.label), **days})


class Position(BaseModel):
    """What a cursor holds: the query, and the last task of the page before, by all that it is ordered by."""

    model_config = ConfigDict(strict=True, extra="forbid")

    v: Literal[3] = 3
    query: ListQuery
    after: int = Field(ge=1, le=MAX_ID)
    """The task's id; in the order of deletion that of its deletion in the log."""
    urgency: int | None = Field(default=None, ge=1, le=len(PRIORITIES))
    day: str | None = Field(default=None, pattern=r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$")
    time: str | None = Field(default=None, pattern=r"^[0-9]{2}:[0-9]{2}:[0-9]{2}$")
    moment: AwareDatetime | None = None
    """Of the deletion, or of the completion, if there was one."""


def write_cursor(query: ListQuery, last: Mapping[str, Any]) -> str:
    """The cursor of the page after one that ends with this row."""
    if query.sorting == "deleted":
        position = Position(query=query, after=last["deletion"], moment=last["deleted_at"])
    elif query.sorting == "completed":
        position = Position(query=query, after=last["id"], moment=last["completed_at"])
    else:
        day, clock = (value and value.isoformat() for value in (last["due_on"], last["due_time"]))
        position = Position(query=query, after=last["id"], urgency=last["priority"], day=day, time=clock)
    return urlsafe_b64encode(position.model_dump_json(exclude_defaults=True).encode()).rstrip(b"=").decode()


def read_cursor(cursor: str, query: ListQuery) -> Position:
    """Where the list of this query continues; raises `CursorUnknown` or `CursorOfOtherList`."""
    try:
        raw = b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True)
        position = Position.model_validate_json(raw)
        _ = position.day and date.fromisoformat(position.day), position.time and time.fromisoformat(position.time)
    except ValueError:
        raise CursorUnknown from None
    if position.query != query:
        raise CursorOfOtherList(query=position.query.in_words())
    if query.sorting == "deleted" and position.moment is None:
        raise CursorUnknown
    return position
