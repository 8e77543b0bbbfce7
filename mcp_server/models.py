from datetime import datetime
from typing import Any

from sqlalchemy import BigInteger, CheckConstraint, Column, Identity, Index, Text, func, text
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


class TaskChange(SQLModel, table=True):
    """One change of one task: the audit log, and what makes a resent call harmless."""

    __tablename__ = "task_changes"  # pyright: ignore[reportAssignmentType]
    __table_args__ = (
        CheckConstraint("operation IN ('add', 'complete', 'update', 'delete')", name="task_changes_operation"),
        Index(
            "task_changes_one_per_key",
            "user_id",
            "idempotency_key",
            unique=True,
            postgresql_where=text("idempotency_key IS NOT NULL"),
        ),
        Index("task_changes_by_task", "user_id", "task_id", "id"),
        Index("task_changes_by_age", "created_at", postgresql_using="brin"),
    )

    user_id: str = Field(sa_column=Column(Text, primary_key=True))
    id: int | None = Field(default=None, sa_column=Column(BigInteger, Identity(always=True), primary_key=True))
    task_id: int | None = Field(default=None, sa_column=Column(BigInteger))
    operation: str = Field(sa_column=Column(Text, nullable=False))
    arguments: dict[str, Any] = Field(sa_column=Column(JSONB, nullable=False))
    before: dict[str, Any] | None = Field(default=None, sa_column=Column(JSONB(none_as_null=True)))
    after: dict[str, Any] | None = Field(default=None, sa_column=Column(JSONB(none_as_null=True)))
    actor: str = Field(sa_column=Column(Text, nullable=False))
    idempotency_key: str | None = Field(default=None, sa_column=Column(Text))
    created_at: datetime = Field(
        default_factory=utc_now, sa_column=Column(TIMESTAMP(timezone=True), nullable=False, server_default=func.now())
    )
