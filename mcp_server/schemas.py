"""The published schemas of the tools' results, whose docstrings are part of them; `tasks/results.py` has the code."""

from datetime import date, datetime
from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field, create_model

from mcp_server.tasks import fields
from mcp_server.tasks.fields import COLUMNS, DUE_COLUMNS
from mcp_server.tasks.lists.query import MAX_COUNTED


class Due(BaseModel):
    """A day, and perhaps a time, where the user is."""

    date: date
    time: str | None = Field(description="hh:mm; null: all day.")


def _publish_stored_fields() -> dict[str, Any]:
    published: dict[str, Any] = {}
    for name, field in fields.Task.model_fields.items():
        if name not in DUE_COLUMNS:
            column, kind = COLUMNS[name], field.annotation
            if column.words:
                words: Any = Literal[tuple(column.words)]
                kind = words | (None if column.has_only_words else kind)
            published[name] = (kind, Field(default=field.default, description=field.description))
    return published


class Task(create_model("StoredFields", **_publish_stored_fields())):
    """A task in a tool's result. What says nothing is left out of the text that a model reads."""

    user_id: str = Field(description="Whose task it is; `local` without sign-in.")
    due: Due | None = None
    deleted: Literal[True] | None = Field(default=None, description="true: it was deleted.")
    deleted_at: datetime | None = None


Whole = Annotated[dict[str, Any], Field(description="All fields of the task.")]
"""For programs; its schema would double the size of the list of tools."""


class Following(BaseModel):
    """The task that was added when a repeating one was completed."""

    id: int
    due: Due
    task: Whole


class OtherTask(Task):
    """One of the other tasks that a call changed."""

    next: Following | None = Field(default=None, description="The task that was added because this one repeats.")


class ChangedTask(OtherTask):
    """The first task that a call changed, with the others of the call."""

    also: tuple[OtherTask, ...] = ()
    not_found: tuple[int, ...] = ()


class OtherDeleted(BaseModel):
    id: int
    title: str
    deleted: Literal[True] = True
    task: Whole


class DeletedTask(OtherDeleted):
    also: tuple[OtherDeleted, ...] = ()
    not_found: tuple[int, ...] = ()


class Near(BaseModel):
    id: int
    title: str


class TaskPage(BaseModel):
    tasks: tuple[Task, ...]
    next_cursor: str | None = Field(description="Send it as cursor to get the next page; null on the last page.")
    total: int = Field(description=f"The number of tasks on all pages; {MAX_COUNTED} means that many or more.")
    now: datetime = Field(description="The user's date and time.")
    time_zone: str
    nearest: tuple[Near, ...] = Field(
        default=(), description="Tasks with similar titles, if query matches nothing; ask the user which one is meant."
    )
