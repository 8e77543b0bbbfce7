from datetime import datetime
from typing import Any

from sqlalchemy import BigInteger, CheckConstraint, Column, ForeignKeyConstraint, Identity, Index, Text, func, text
from sqlalchemy.dialects.postgresql import JSONB, TIMESTAMP
from sqlmodel import Field, SQLModel

from service.database import utc_now


class Person(SQLModel, table=True):
    """What is kept of a person beside the tasks: the number of the last one that was added."""

    __tablename__ = "people"  # pyright: ignore[reportAssignmentType]

    user_id: str = Field(sa_column=Column(Text, primary_key=True))
    last_task_id: int = Field(default=0, sa_column=Column(BigInteger, nullable=False, server_default=text("0")))


class TaskRow(SQLModel, table=True):
    """A task; its id counts its person's own."""

    __tablename__ = "tasks"  # pyright: ignore[reportAssignmentType]
    __table_args__ = (
        CheckConstraint("char_length(title) BETWEEN 1 AND 200", name="tasks_title_length"),
        CheckConstraint("char_length(description) <= 4000", name="tasks_description_length"),
        CheckConstraint("status IN ('pending', 'completed')", name="tasks_status"),
        Index("tasks_by_owner_and_status", "user_id", "status", "id"),
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


class TaskCall(SQLModel, table=True):
    """One call that changed something: who acted, how, and what makes it harmless when it is sent again."""

    __tablename__ = "task_calls"  # pyright: ignore[reportAssignmentType]
    __table_args__ = (
        CheckConstraint("operation IN ('add', 'complete', 'update', 'delete')", name="task_calls_operation"),
        Index(
            "task_calls_one_per_key",
            "user_id",
            "idempotency_key",
            unique=True,
            postgresql_where=text("idempotency_key IS NOT NULL"),
        ),
        Index("task_calls_by_age", "created_at", postgresql_using="brin"),
    )

    user_id: str = Field(sa_column=Column(Text, primary_key=True))
    id: int | None = Field(default=None, sa_column=Column(BigInteger, Identity(always=True), primary_key=True))
    operation: str = Field(sa_column=Column(Text, nullable=False))
    arguments: dict[str, Any] = Field(sa_column=Column(JSONB, nullable=False))
    actor: str = Field(sa_column=Column(Text, nullable=False))
    idempotency_key: str | None = Field(default=None, sa_column=Column(Text))
    created_at: datetime = Field(
        default_factory=utc_now, sa_column=Column(TIMESTAMP(timezone=True), nullable=False, server_default=func.now())
    )


class TaskChange(SQLModel, table=True):
    """What a call made of one task."""

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
    )

    user_id: str = Field(sa_column=Column(Text, primary_key=True))
    id: int | None = Field(default=None, sa_column=Column(BigInteger, Identity(always=True), primary_key=True))
    call_id: int = Field(sa_column=Column(BigInteger, nullable=False))
    task_id: int | None = Field(default=None, sa_column=Column(BigInteger))
    before: dict[str, Any] | None = Field(default=None, sa_column=Column(JSONB(none_as_null=True)))
    after: dict[str, Any] | None = Field(default=None, sa_column=Column(JSONB(none_as_null=True)))
    created_at: datetime = Field(
        default_factory=utc_now, sa_column=Column(TIMESTAMP(timezone=True), nullable=False, server_default=func.now())
    )
