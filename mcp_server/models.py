from datetime import date, datetime, time
from typing import Any

from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    Column,
    Computed,
    Date,
    ForeignKeyConstraint,
    Identity,
    Index,
    SmallInteger,
    Text,
    func,
    text,
)
from sqlalchemy.dialects.postgresql import ARRAY, JSONB, TIME, TIMESTAMP
from sqlmodel import Field, SQLModel

from common.clock import utc_now
from mcp_server.tasks.task import ONE_OPEN

_LABELS = " || ".join(f"COALESCE(' '::text || labels[{n}], ''::text)" for n in range(1, 11))
SEARCHED_TEXT = f"title || ' '::text || description || {_LABELS}"
"""The text of a task that a search looks at, in SQL."""

LONG_AGO = "'-infinity'::timestamp with time zone"
# As PostgreSQL prints it, because Alembic compares the two.
_COMPLETION = f"(\nCASE\n    WHEN completed_at IS NULL THEN {LONG_AGO}\n    ELSE completed_at\nEND)"


def fold(text: str) -> str:
    return f"lower(regexp_replace(NORMALIZE({text}, NFKD), '[\\u0300-\\u036F]'::text, ''::text, 'g'::text))"


class UserRow(SQLModel, table=True):
    __tablename__ = "people"  # pyright: ignore[reportAssignmentType]
    __table_args__ = (CheckConstraint("week_starts BETWEEN 1 AND 7", name="people_week_starts"),)

    user_id: str = Field(sa_column=Column(Text, primary_key=True))
    last_task_id: int = Field(default=0, sa_column=Column(BigInteger, nullable=False, server_default=text("0")))
    time_zone: str | None = Field(default=None, sa_column=Column(Text))
    week_starts: int | None = Field(default=None, sa_column=Column(SmallInteger))


class TaskRow(SQLModel, table=True):
    """A task, whose id is counted for each user.

    The due date is in the user's local time. Priority 1 is high, 3 is low. The tasks of one repeat have the id of the
    first as their `series`.
    """

    __tablename__ = "tasks"  # pyright: ignore[reportAssignmentType]
    __table_args__ = (
        CheckConstraint("char_length(title) BETWEEN 1 AND 200", name="tasks_title_length"),
        CheckConstraint("char_length(description) <= 4000", name="tasks_description_length"),
        CheckConstraint("status IN ('pending', 'completed')", name="tasks_status"),
        CheckConstraint("due_time IS NULL OR due_on IS NOT NULL", name="tasks_due_time"),
        CheckConstraint("priority BETWEEN 1 AND 3", name="tasks_priority"),
        CheckConstraint("cardinality(labels) <= 10", name="tasks_labels"),
        CheckConstraint(
            "repeat IS NULL OR (due_on IS NOT NULL AND series IS NOT NULL AND char_length(repeat) <= 200)",
            name="tasks_repeat",
        ),
        Index("tasks_by_owner_and_status", "user_id", "status", "id"),
        Index("tasks_by_due", "user_id", "due_on", "id", postgresql_where=text("status = 'pending'")),
        Index(
            "tasks_by_completion",
            "user_id",
            text(_COMPLETION),
            "id",
            postgresql_where=text("status = 'completed'"),
        ),
        Index(
            ONE_OPEN,
            "user_id",
            "series",
            unique=True,
            postgresql_where=text("status = 'pending'"),
        ),
    )

    user_id: str = Field(sa_column=Column(Text, primary_key=True))
    id: int = Field(sa_column=Column(BigInteger, primary_key=True, autoincrement=False))
    title: str = Field(sa_column=Column(Text, nullable=False))
    description: str = Field(default="", sa_column=Column(Text, nullable=False, server_default=""))
    status: str = Field(default="pending", sa_column=Column(Text, nullable=False, server_default="pending"))
    created_at: datetime = Field(
        default_factory=utc_now, sa_column=Column(TIMESTAMP(timezone=True), nullable=False, server_default=func.now())
    )
    updated_at: datetime = Field(
        default_factory=utc_now, sa_column=Column(TIMESTAMP(timezone=True), nullable=False, server_default=func.now())
    )
    completed_at: datetime | None = Field(default=None, sa_column=Column(TIMESTAMP(timezone=True)))
    due_on: date | None = Field(default=None, sa_column=Column(Date))
    due_time: time | None = Field(default=None, sa_column=Column(TIME(precision=0)))
    priority: int | None = Field(default=None, sa_column=Column(SmallInteger))
    labels: list[str] = Field(default=[], sa_column=Column(ARRAY(Text), nullable=False, server_default="{}"))
    repeat: str | None = Field(default=None, sa_column=Column(Text))
    series: int | None = Field(default=None, sa_column=Column(BigInteger))
    folded: str | None = Field(default=None, sa_column=Column(Text, Computed(fold(SEARCHED_TEXT), persisted=True)))


class TaskCall(SQLModel, table=True):
    """A call that changed tasks; calls of a `batch` are undone together."""

    __tablename__ = "task_calls"  # pyright: ignore[reportAssignmentType]
    __table_args__ = (
        CheckConstraint("operation IN ('add', 'complete', 'update', 'delete', 'undo')", name="task_calls_operation"),
        Index(
            "task_calls_one_per_key",
            "user_id",
            "idempotency_key",
            unique=True,
            postgresql_where=text("idempotency_key IS NOT NULL"),
        ),
        Index("task_calls_by_age", "created_at", postgresql_using="brin"),
        Index("task_calls_by_batch", "user_id", "batch", "id", postgresql_where=text("batch IS NOT NULL")),
    )

    user_id: str = Field(sa_column=Column(Text, primary_key=True))
    id: int | None = Field(default=None, sa_column=Column(BigInteger, Identity(always=True), primary_key=True))
    operation: str = Field(sa_column=Column(Text, nullable=False))
    arguments: dict[str, Any] = Field(sa_column=Column(JSONB, nullable=False))
    actor: str = Field(sa_column=Column(Text, nullable=False))
    idempotency_key: str | None = Field(default=None, sa_column=Column(Text))
    batch: str | None = Field(default=None, sa_column=Column(Text))
    created_at: datetime = Field(
        default_factory=utc_now, sa_column=Column(TIMESTAMP(timezone=True), nullable=False, server_default=func.now())
    )


class TaskChange(SQLModel, table=True):
    """A task before and after a call; `undoes` is the id of the change that this one undoes."""

    __tablename__ = "task_changes"  # pyright: ignore[reportAssignmentType]
    __table_args__ = (
        ForeignKeyConstraint(
            ["user_id", "call_id"],
            ["task_calls.user_id", "task_calls.id"],
            name="task_changes_call_fkey",
            ondelete="CASCADE",
        ),
        Index("task_changes_by_task", "user_id", "task_id", "id"),
        Index("task_changes_by_call", "user_id", "call_id", "id"),
        Index(
            "task_changes_of_deletion",
            "user_id",
            "created_at",
            "id",
            postgresql_where=text("after IS NULL AND undoes IS NULL"),
        ),
    )

    user_id: str = Field(sa_column=Column(Text, primary_key=True))
    id: int | None = Field(default=None, sa_column=Column(BigInteger, Identity(always=True), primary_key=True))
    call_id: int = Field(sa_column=Column(BigInteger, nullable=False))
    task_id: int | None = Field(default=None, sa_column=Column(BigInteger))
    before: dict[str, Any] | None = Field(default=None, sa_column=Column(JSONB(none_as_null=True)))
    after: dict[str, Any] | None = Field(default=None, sa_column=Column(JSONB(none_as_null=True)))
    undoes: int | None = Field(default=None, sa_column=Column(BigInteger))
    created_at: datetime = Field(
        default_factory=utc_now, sa_column=Column(TIMESTAMP(timezone=True), nullable=False, server_default=func.now())
    )
