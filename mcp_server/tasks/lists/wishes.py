"""What a list is asked for, and the cursor that goes on with it."""

from base64 import b64decode, urlsafe_b64encode
from datetime import date, time
from typing import Any, Literal

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field

from mcp_server.arguments import MAX_ID, Order, Status
from mcp_server.errors import CursorOfOtherList, CursorUnknown
from mcp_server.tasks.fields import label_of
from mcp_server.tasks.task import PRIORITIES
from service.tool_server.refusals import shown

Sorting = Literal[Order, "deleted"]


class Wish(BaseModel):
    """What a list is asked for; a cursor belongs to one wish."""

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
        return ", ".join(f"{name} {shown(value, longest=100)}" for name, value in given.items() if value is not None)

    def in_one_spelling(self) -> "Wish":
        """As every spelling of it is written in a cursor."""
        days = {
            name: text and " ".join(text.lower().split()) for name, text in (("due", self.due), ("done", self.done))
        }
        query = self.query and " ".join(self.query.split())
        return self.model_copy(update={"query": query, "label": self.label and label_of(self.label), **days})


class Position(BaseModel):
    """What a cursor holds: the last task of the page before, by all that it is ordered by, and the wish."""

    model_config = ConfigDict(strict=True, extra="forbid")

    v: Literal[2] = 2
    wish: Wish
    after: int = Field(ge=1, le=MAX_ID)
    """The task's id; in the order of deletion that of its deletion in the log."""
    urgency: int | None = Field(default=None, ge=1, le=len(PRIORITIES))
    day: str | None = Field(default=None, pattern=r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$")
    time: str | None = Field(default=None, pattern=r"^[0-9]{2}:[0-9]{2}:[0-9]{2}$")
    moment: AwareDatetime | None = None
    """Of the deletion, or of the completion, if there was one."""


def written(wish: Wish, last: Any) -> str:
    """The cursor of the page after one that ends with this row."""
    if wish.sorting == "deleted":
        position = Position(wish=wish, after=last.deletion, moment=last.deleted_at)
    elif wish.sorting == "completed":
        position = Position(wish=wish, after=last.id, moment=last.completed_at)
    else:
        day, clock = last.due_on and last.due_on.isoformat(), last.due_time and last.due_time.isoformat()
        position = Position(wish=wish, after=last.id, urgency=last.priority, day=day, time=clock)
    return urlsafe_b64encode(position.model_dump_json(exclude_defaults=True).encode()).rstrip(b"=").decode()


def read(cursor: str, wish: Wish) -> Position:
    """Where the list of this wish goes on; raises `CursorUnknown` or `CursorOfOtherList`."""
    try:
        raw = b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True)
        position = Position.model_validate_json(raw)
        _ = position.day and date.fromisoformat(position.day), position.time and time.fromisoformat(position.time)
    except ValueError:
        raise CursorUnknown from None
    if position.wish != wish:
        raise CursorOfOtherList(wish=position.wish.in_words())
    if wish.sorting == "deleted" and position.moment is None:
        raise CursorUnknown
    return position
