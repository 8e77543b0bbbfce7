"""A task as the tools tell of it, and how a statement's rows become one."""

from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field
from sqlalchemy import FromClause, cast, func, null
from sqlalchemy.dialects.postgresql import JSONB

from mcp_server.models import TaskRow
from service.database import to_utc

TASKS = TaskRow.metadata.tables["tasks"]

Moment = Annotated[datetime, AfterValidator(to_utc)]


class Task(BaseModel):
    model_config = ConfigDict(frozen=True)

    id: int
    title: str
    description: str
    status: Literal["pending", "completed"]
    created_at: Moment
    updated_at: Moment
    completed_at: Moment | None


class TaskPage(BaseModel):
    model_config = ConfigDict(frozen=True)

    tasks: tuple[Task, ...]
    next_cursor: str | None = Field(description="Give it as cursor to get the next page; null on the last one.")


class DeletedTask(BaseModel):
    model_config = ConfigDict(frozen=True)

    id: int
    title: str
    deleted: Literal[True]


def columns(rows: FromClause) -> list[Any]:
    return [rows.c[name] for name in Task.model_fields]


def snapshot(rows: FromClause) -> Any:
    return func.jsonb_build_object(*(part for name in Task.model_fields for part in (name, rows.c[name])))


NO_TASK = cast(null(), JSONB)
