from datetime import date, datetime, time
from typing import Any

from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    Column,
    Computed,
    ForeignKeyConstraint,
    Identity,
    Index,
    Integer,
    SmallInteger,
    Text,
    func,
    text,
)
from sqlalchemy.dialects.postgresql import ARRAY, JSONB, TIME, TIMESTAMP
from sqlmodel import Field, SQLModel

from mcp_server.tasks.fields import COLUMNS, ONE_OPEN
from mcp_server.tasks.lists.spelling import FOLD_ACCENTS
from mcp_server.tasks.lists.statements import COMPLETION, DUE_DAY, DUE_TIME, URGENCY

_LABELS = " || ".join(f"COALESCE(' '::text || labels[{n}], ''::text)" for n in range(1, 11))
_SEARCHED_TEXT = f"title || ' '::text || description || {_LABELS}"


def _index(name: str, *columns: Any, where: str, unique: bool = False) -> Index:
    return Index(name, "user_id", *columns, unique=unique, postgresql_where=text(where))


def _time() -> Column[datetime]:
    return Column(TIMESTAMP(timezone=True), nullable=False, server_default=func.now())


def _row_id() -> Column[int]:
    return Column(BigInteger, Identity(always=True), primary_key=True)


class _OwnedRow(SQLModel):
    user_id: str = Field(primary_key=True, sa_type=Text)


class UserRow(_OwnedRow, table=True):
    __tablename__ = "people"  # pyright: ignore[reportAssignmentType]
    __table_args__ = (CheckConstraint("week_starts BETWEEN 1 AND 7", name="people_week_starts"),)

    last_task_id: int = Field(sa_type=BigInteger, sa_column_kwargs={"server_default": text("0")})
    week_starts: int | None = Field(sa_type=SmallInteger)


class TaskRow(_OwnedRow, table=True):
    """A task, whose id is counted for each user.

    The due date is in the user's local time. Priority 1 is high, 3 is low. The tasks of one repeat have the id of the
    first as their `series`.

    When it alerts is no field of a task: `alert_at` is computed by the backend while `alert_stale_since` is set, which
    triggers of `migrations/alerts.py` do.
    """

    __tablename__ = "tasks"  # pyright: ignore[reportAssignmentType]
    __table_args__ = (
        *(
            CheckConstraint(column.check, name=f"tasks_{column.check_name or name}")
            for name, column in COLUMNS.items()
            if column.check
        ),
        Index("tasks_by_owner_and_status", "user_id", "status", "id"),
        _index("tasks_by_due", text(DUE_DAY), text(URGENCY), text(DUE_TIME), "id", where="status = 'pending'"),
        _index("tasks_by_completion", text(COMPLETION), "id", where="status = 'completed'"),
        _index(ONE_OPEN, "series", unique=True, where="status = 'pending'"),
        Index("tasks_by_alert", "alert_at", "user_id", "id", postgresql_where=text("alert_at IS NOT NULL")),
        Index("tasks_by_stale_alert", "alert_stale_since", postgresql_where=text("alert_stale_since IS NOT NULL")),
    )

    id: int = Field(sa_column=Column(BigInteger, primary_key=True, autoincrement=False))
    title: str = Field(sa_type=Text)
    description: str = Field(sa_type=Text, sa_column_kwargs={"server_default": ""})
    status: str = Field(sa_type=Text, sa_column_kwargs={"server_default": "pending"})
    created_at: datetime = Field(sa_column=_time())
    updated_at: datetime = Field(sa_column=_time())
    completed_at: datetime | None = Field(sa_column=Column(TIMESTAMP(timezone=True)))
    due_on: date | None
    due_time: time | None = Field(sa_column=Column(TIME(precision=0)))
    priority: int | None = Field(sa_type=SmallInteger)
    labels: list[str] = Field(sa_column=Column(ARRAY(Text), nullable=False, server_default="{}"))
    repeat: str | None = Field(sa_type=Text)
    series: int | None = Field(sa_type=BigInteger)
    remind: int | None = Field(sa_type=Integer)
    snoozed_until: datetime | None = Field(sa_column=Column(TIMESTAMP(timezone=True)))
    alert_at: datetime | None = Field(sa_column=Column(TIMESTAMP(timezone=True)))
    alert_stale_since: datetime | None = Field(sa_column=Column(TIMESTAMP(timezone=True)))
    folded: str | None = Field(sa_column=Column(Text, Computed(FOLD_ACCENTS.format(_SEARCHED_TEXT), persisted=True)))


class TaskCall(_OwnedRow, table=True):
    """A call that changed tasks; calls of a `batch` are undone together."""

    __tablename__ = "task_calls"  # pyright: ignore[reportAssignmentType]
    __table_args__ = (
        CheckConstraint("operation IN ('add', 'complete', 'update', 'delete', 'undo')", name="task_calls_operation"),
        _index("task_calls_one_per_key", "idempotency_key", unique=True, where="idempotency_key IS NOT NULL"),
        Index("task_calls_by_age", "created_at", postgresql_using="brin"),
        _index("task_calls_by_batch", "batch", "id", where="batch IS NOT NULL"),
    )

    id: int = Field(sa_column=_row_id())
    operation: str = Field(sa_type=Text)
    arguments: dict[str, Any] = Field(sa_type=JSONB)
    actor: str = Field(sa_type=Text)
    idempotency_key: str | None = Field(sa_type=Text)
    batch: str | None = Field(sa_type=Text)
    created_at: datetime = Field(sa_column=_time())


class TaskChange(_OwnedRow, table=True):
    """A task before and after a call; `undoes` is the id of the change that this one undoes.

    `is_change` is whether the two differ, and `series` the task's; rows from before version 0029 have neither.
    """

    __tablename__ = "task_changes"  # pyright: ignore[reportAssignmentType]
    __table_args__ = (
        ForeignKeyConstraint(
            ["user_id", "call_id"],
            ["task_calls.user_id", "task_calls.id"],
            name="task_changes_call_fkey",
            ondelete="CASCADE",
            deferrable=True,  # for `./todo user adopt`
        ),
        Index("task_changes_by_task", "user_id", "task_id", "id"),
        Index("task_changes_by_call", "user_id", "call_id", "id"),
        _index("task_changes_of_undo", "undoes", where="undoes IS NOT NULL"),
        _index("task_changes_of_deletion", "created_at", "id", where="after IS NULL AND undoes IS NULL"),
    )

    id: int = Field(sa_column=_row_id())
    call_id: int = Field(sa_type=BigInteger)
    task_id: int | None = Field(sa_type=BigInteger)
    before: dict[str, Any] | None = Field(sa_type=JSONB)
    after: dict[str, Any] | None = Field(sa_type=JSONB)
    undoes: int | None = Field(sa_type=BigInteger)
    created_at: datetime = Field(sa_column=_time())
    is_change: bool | None
    series: int | None = Field(sa_type=BigInteger)
