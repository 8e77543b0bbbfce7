"""Tasks as the tools tell of them, as far as they are shown. Only the number and the title are in every result."""

from datetime import date, datetime
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, model_validator


def _moment(value: Any) -> Any:
    """Parses "Fri 2026-11-27", or with " 15:00" after it."""
    if not isinstance(value, str):
        return value
    _, _, moment = value.partition(" ")
    return datetime.fromisoformat(moment) if ":" in moment else date.fromisoformat(moment)


Due = Annotated[datetime | date, BeforeValidator(_moment)]
"""A day, or a day and a time, by the person's clock."""


class Following(BaseModel):
    id: int
    due: Due


class Task(BaseModel):
    id: int
    title: str
    description: str = ""
    status: Literal["pending", "completed", "deleted"] = "deleted"
    due: Due | None = None
    priority: Literal["high", "medium", "low"] | None = None
    labels: tuple[str, ...] = ()
    repeat: str | None = None
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
    now: Annotated[datetime, BeforeValidator(_moment)] | None = None
    """What the person's clock shows."""
