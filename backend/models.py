from datetime import datetime
from typing import Any

from sqlalchemy import (
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    ForeignKey,
    Identity,
    Index,
    Text,
    func,
    text,
)
from sqlalchemy.dialects.postgresql import JSONB, TIMESTAMP
from sqlmodel import Field, SQLModel

from database import utc_now


class Conversation(SQLModel, table=True):
    """A ChatKit thread."""

    __tablename__ = "conversations"  # pyright: ignore[reportAssignmentType]
    __table_args__ = (Index("conversations_by_owner", "user_id", "id"),)

    id: str = Field(sa_column=Column(Text, primary_key=True))
    user_id: str = Field(sa_column=Column(Text, nullable=False))
    title: str | None = Field(default=None, sa_column=Column(Text))
    status: dict[str, Any] = Field(sa_column=Column(JSONB, nullable=False))
    allowed_image_domains: list[str] | None = Field(default=None, sa_column=Column(JSONB(none_as_null=True)))
    details: dict[str, Any] = Field(
        default_factory=dict, sa_column=Column("metadata", JSONB, nullable=False, server_default="{}")
    )
    created_at: datetime = Field(
        default_factory=utc_now, sa_column=Column(TIMESTAMP(timezone=True), nullable=False, server_default=func.now())
    )


class Message(SQLModel, table=True):
    """A ChatKit thread item, whole; `seq` is the only order, and `superseded_by` is the run that replaced the row."""

    __tablename__ = "messages"  # pyright: ignore[reportAssignmentType]
    __table_args__ = (
        CheckConstraint("id <> '__fake_id__'", name="messages_real_id"),
        Index("messages_in_order", "conversation_id", "seq"),
        # Few among many: what a change of a task redraws, and what stands in for the messages before it.
        Index(
            "messages_apart",
            "conversation_id",
            "kind",
            "seq",
            postgresql_where=text("kind IN ('widget', 'summary')"),
        ),
    )

    conversation_id: str = Field(
        sa_column=Column(Text, ForeignKey("conversations.id", ondelete="CASCADE"), primary_key=True)
    )
    id: str = Field(sa_column=Column(Text, primary_key=True))
    user_id: str = Field(sa_column=Column(Text, nullable=False))
    seq: int | None = Field(
        default=None, sa_column=Column(BigInteger, Identity(always=True), nullable=False, unique=True)
    )
    run_id: str | None = Field(default=None, sa_column=Column(Text))
    role: str = Field(sa_column=Column(Text, nullable=False))
    kind: str = Field(sa_column=Column(Text, nullable=False))
    item: dict[str, Any] = Field(sa_column=Column(JSONB, nullable=False))
    superseded_by: str | None = Field(default=None, sa_column=Column(Text))
    feedback: str | None = Field(default=None, sa_column=Column(Text))
    created_at: datetime = Field(
        default_factory=utc_now, sa_column=Column(TIMESTAMP(timezone=True), nullable=False, server_default=func.now())
    )


class Run(SQLModel, table=True):
    """One turn of the assistant, and the lease on its conversation while it is running or waiting.

    It outlives the conversation, without any text: what was used stays counted.
    """

    __tablename__ = "runs"  # pyright: ignore[reportAssignmentType]
    __table_args__ = (
        CheckConstraint("status IN ('running', 'waiting', 'ended')", name="runs_status"),
        CheckConstraint("(status = 'ended') = (outcome IS NOT NULL)", name="runs_ended_with_one_outcome"),
        CheckConstraint("outcome IN ('completed', 'failed', 'cancelled', 'interrupted')", name="runs_known_outcome"),
        CheckConstraint("conversation_id IS NOT NULL OR state IS NULL", name="runs_kept_without_text"),
        Index(
            "runs_one_per_conversation",
            "conversation_id",
            unique=True,
            postgresql_where=text("status IN ('running', 'waiting')"),
        ),
        Index("runs_by_conversation", "conversation_id"),
        Index("runs_by_owner", "user_id", "started_at"),
    )

    id: str = Field(sa_column=Column(Text, primary_key=True))
    conversation_id: str | None = Field(
        sa_column=Column(Text, ForeignKey("conversations.id", ondelete="SET NULL"), nullable=True)
    )
    user_id: str = Field(sa_column=Column(Text, nullable=False))
    status: str = Field(sa_column=Column(Text, nullable=False))
    outcome: str | None = Field(default=None, sa_column=Column(Text))
    stop_requested: bool = Field(default=False, sa_column=Column(Boolean, nullable=False, server_default=text("false")))
    usage: dict[str, Any] | None = Field(default=None, sa_column=Column(JSONB(none_as_null=True)))
    state: dict[str, Any] | None = Field(default=None, sa_column=Column(JSONB(none_as_null=True)))
    heartbeat_at: datetime = Field(
        default_factory=utc_now, sa_column=Column(TIMESTAMP(timezone=True), nullable=False, server_default=func.now())
    )
    started_at: datetime = Field(
        default_factory=utc_now, sa_column=Column(TIMESTAMP(timezone=True), nullable=False, server_default=func.now())
    )
    ended_at: datetime | None = Field(default=None, sa_column=Column(TIMESTAMP(timezone=True)))
