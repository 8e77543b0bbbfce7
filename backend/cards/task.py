"""Tasks as the tools return them, as far as they are shown. Only the id and the title are in every result."""

from datetime import date, datetime
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, model_validator

from common.task_words import read_due


class TaskFields(BaseModel):
    """The fields of a task that have one form in the tools' results, in cards and in the HTTP API."""

    id: int
    title: str
    description: str = ""
    priority: Literal["high", "medium", "low"] | None = None
    labels: list[str] = []
    repeat: str | None = None
    remind: int | Literal["none"] | None = None
    """Minutes before the due time."""


def _combine_due(value: Any) -> Any:
    match value:
        case {"date": str(day), "time": str() | None as time}:
            return read_due(day, time)
        case _:
            return value


Due = Annotated[datetime | date, BeforeValidator(_combine_due)]
"""A day, or a day and a time, by the user's clock."""


class Following(BaseModel):
    id: int
    due: Due


class Task(TaskFields):
    status: Literal["pending", "completed", "deleted"] = "deleted"
    due: Due | None = None
    next: Following | None = None

    @model_validator(mode="before")
    @classmethod
    def _set_deleted_status(cls, values: Any) -> Any:
        return {**values, "status": "deleted"} if isinstance(values, dict) and values.get("deleted") else values


class ChangedTask(Task):
    """A result of a tool that changes tasks: the first of them, and the others of the same call."""

    also: tuple[Task, ...] = ()

    @property
    def tasks(self) -> list[Task]:
        return [self, *self.also]


class TaskPage(BaseModel):
    tasks: list[Task]
    next_cursor: str | None
    total: int | None = None
    now: Annotated[datetime, AfterValidator(lambda now: now.replace(tzinfo=None))] | None = None
    """What the user's clock shows."""
