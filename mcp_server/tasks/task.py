"""A task as it is stored, and as the tools tell of it."""

from datetime import date, datetime, time
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from common.clock import to_utc
from mcp_server.tasks.dates import Due, shown

TASK_COLUMNS = """id, title, description, status, created_at, updated_at, completed_at, due_on, due_time, priority,
    labels, repeat, series"""
MOST_COUNTED = 2_000  # tasks of a list: to count a hundred thousand costs more than a page of them
PRIORITIES = ("high", "medium", "low")  # 1, 2 and 3 in the database

Moment = Annotated[datetime, AfterValidator(to_utc)]


class StoredTask(BaseModel):
    """A row of `tasks` without its user; from the log, too, whose older rows lack the newer fields."""

    model_config = ConfigDict(frozen=True)

    id: int
    title: str
    description: str
    status: Literal["pending", "completed"]
    created_at: Moment
    updated_at: Moment
    completed_at: Moment | None
    due_on: date | None = None
    due_time: time | None = None
    priority: int | None = None
    labels: tuple[str, ...] = ()
    repeat: str | None = None
    series: int | None = None

    @classmethod
    def new(cls, title: str, moment: datetime) -> "StoredTask":
        """An open task without an id."""
        return cls(
            id=0,
            title=title,
            description="",
            status="pending",
            created_at=moment,
            updated_at=moment,
            completed_at=None,
        )

    @property
    def due(self) -> Due | None:
        return Due(self.due_on, self.due_time) if self.due_on else None

    def as_json(self) -> dict[str, Any]:
        return self.model_dump(mode="json")

    def render(self) -> dict[str, Any]:
        """The fields of a `Task`."""
        return {
            **self.model_dump(exclude={"due_on", "due_time"}),
            "due": shown(self.due) if self.due else None,
            "priority": PRIORITIES[self.priority - 1] if self.priority else None,
        }


class Task(BaseModel):
    """A task in a tool's result. What says nothing is left out of the text that a model reads, see `lean`."""

    model_config = ConfigDict(frozen=True)

    id: int
    title: str
    description: str
    status: Literal["pending", "completed"]
    due: str | None = Field(default=None, description="The day, and the time where the user is.")
    priority: Literal["high", "medium", "low"] | None = None
    labels: tuple[str, ...] = ()
    repeat: str | None = None
    series: int | None = Field(default=None, description="The id of the first task of a repeat.")
    created_at: Moment
    updated_at: Moment
    completed_at: Moment | None
    deleted: Literal[True] | None = Field(default=None, description="true: it was deleted.")
    deleted_at: Moment | None = None


Whole = Annotated[dict[str, Any], Field(description="All fields of the task.")]
"""For programs; its schema would double what the tools' list weighs."""


class Following(BaseModel):
    """The task that was added when a repeating one was completed."""

    model_config = ConfigDict(frozen=True)

    id: int
    due: str
    task: Whole


class OtherTask(Task):
    """One of the other tasks that a call changed."""

    next: Following | None = Field(default=None, description="The task that was added because this one repeats.")


class ChangedTask(OtherTask):
    """The first task that a call changed, with the others of the call."""

    also: tuple[OtherTask, ...] = ()
    not_found: tuple[int, ...] = ()


class OtherDeleted(BaseModel):
    model_config = ConfigDict(frozen=True)

    id: int
    title: str
    deleted: Literal[True] = True
    task: Whole


class DeletedTask(OtherDeleted):
    also: tuple[OtherDeleted, ...] = ()
    not_found: tuple[int, ...] = ()


class Near(BaseModel):
    model_config = ConfigDict(frozen=True)

    id: int
    title: str


class TaskPage(BaseModel):
    model_config = ConfigDict(frozen=True)

    tasks: tuple[Task, ...]
    next_cursor: str | None = Field(description="Send it as cursor to get the next page; null on the last page.")
    total: int = Field(description=f"The number of tasks on all pages; {MOST_COUNTED} means that many or more.")
    now: str = Field(description="The user's date and time.")
    time_zone: str
    nearest: tuple[Near, ...] = Field(
        default=(), description="Tasks with similar titles, if query matches nothing; ask the user which one is meant."
    )


def lean(result: BaseModel) -> dict[str, Any]:
    """The result without what says nothing to a model: no value, no text, no moment of the log, no series, and no
    task that stands there whole for programs."""
    return _lean(result.model_dump(mode="json"))


_UNTOLD = {"created_at", "updated_at", "deleted_at", "series", "task"}
_TOLD = {"tasks", "next_cursor", "total"}


def _lean(value: Any) -> Any:
    if isinstance(value, dict):
        kept = {name: _lean(inner) for name, inner in value.items() if name not in _UNTOLD}
        return {name: inner for name, inner in kept.items() if name in _TOLD or inner not in (None, "", [])}
    return [_lean(inner) for inner in value] if isinstance(value, list) else value
