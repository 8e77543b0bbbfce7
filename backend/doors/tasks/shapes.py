"""What goes in and out at the door of the page's list."""

from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, JsonValue, StrictStr

View = Literal["today", "upcoming", "all", "done", "deleted"]
Priority = Literal["high", "medium", "low"]


class Task(BaseModel):
    """A task; `due` and `time` are by the person's clock, the other moments are instants."""

    id: int
    title: str
    description: str
    status: Literal["pending", "completed", "deleted"]
    due: str | None = None
    time: str | None = None
    priority: Priority | None = None
    labels: list[str] = []
    repeat: str | None = None
    completed: str | None = None
    deleted: str | None = None

    @classmethod
    def of(cls, told: Mapping[str, Any], *, gone: bool = False) -> Self:
        """One that a tool tells of, whose due is `Fri 2026-11-27 15:00`."""
        _, day, time = ((told["due"] or "") + "  ").split(" ")[:3]
        own = {name: told[name] for name in ("id", "title", "description", "priority", "labels", "repeat")}
        status = "deleted" if gone or told.get("deleted") else told["status"]
        moments = {"completed": told["completed_at"], "deleted": told.get("deleted_at")}
        return cls(**own, **moments, status=status, due=day or None, time=time or None)


class Day(BaseModel):
    day: str
    done: int


class Page(BaseModel):
    """A page of a view; `last` is the number of a change that it contains, as it does all before."""

    view: View
    now: str
    time_zone: str
    total: int
    tasks: list[Task]
    next_cursor: str | None
    last: int
    days: list[Day] | None = None
    """Of the view `done`, on its first page: how many are completed since each of the last days."""


class News(BaseModel):
    """What was changed since: the tasks, unless there are too many, when the view is to be read anew."""

    last: int
    task_ids: list[int]
    more: bool


class Done(BaseModel):
    """What became of the tasks of a change, which `batch` takes back."""

    tasks: list[Task]
    not_found: list[int]
    batch: str

    @classmethod
    def of(cls, told: Mapping[str, Any], *, batch: str) -> Self:
        """Those of a tool's result, then those that they have left behind."""
        results = [told, *told["also"]]
        left = [result["next"]["task"] for result in results if result.get("next")]
        return cls(tasks=[*map(_changed, results), *map(Task.of, left)], not_found=told["not_found"], batch=batch)


def _changed(result: Mapping[str, Any]) -> Task:
    return Task.of(result["task"], gone=True) if "task" in result else Task.of(result)


class _Asked(BaseModel):
    """The tools say what the values may be."""

    model_config = ConfigDict(extra="forbid")

    def given(self, *, without: Iterable[str] = ()) -> dict[str, Any]:
        return self.model_dump(exclude_unset=True, exclude=set(without))


class NewTask(_Asked):
    title: JsonValue
    description: JsonValue = None
    due: JsonValue = None
    priority: JsonValue = None
    labels: JsonValue = None
    repeat: JsonValue = None


class Change(_Asked):
    title: JsonValue = None
    description: JsonValue = None
    due: JsonValue = None
    priority: JsonValue = None
    labels: JsonValue = None
    add_labels: JsonValue = None
    remove_labels: JsonValue = None
    repeat: JsonValue = None
    status: JsonValue = None
    undo: Literal[True] | None = None
    also: JsonValue = None


class Undo(_Asked):
    batch: Annotated[StrictStr, Field(pattern=r"^[\x21-\x7e]{1,200}$")]
