from datetime import datetime
from typing import Any

from sqlalchemy import (
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    Double,
    ForeignKeyConstraint,
    Identity,
    Index,
    LargeBinary,
    Text,
    func,
    text,
)
from sqlalchemy.dialects.postgresql import JSONB, TIMESTAMP
from sqlmodel import Field, SQLModel

from service.database import utc_now


class Conversation(SQLModel, table=True):
    """A ChatKit thread."""

    __tablename__ = "conversations"  # pyright: ignore[reportAssignmentType]

    user_id: str = Field(sa_column=Column(Text, primary_key=True))
    id: str = Field(sa_column=Column(Text, primary_key=True))
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
        ForeignKeyConstraint(
            ["user_id", "conversation_id"], ["conversations.user_id", "conversations.id"], ondelete="CASCADE"
        ),
        Index("messages_in_order", "user_id", "conversation_id", "seq", unique=True),
        # Few among many: what a change of a task redraws, and what stands in for the messages before it.
        Index(
            "messages_apart",
            "user_id",
            "conversation_id",
            "kind",
            "seq",
            postgresql_where=text("kind IN ('widget', 'summary')"),
        ),
    )

    user_id: str = Field(sa_column=Column(Text, primary_key=True))
    conversation_id: str = Field(sa_column=Column(Text, primary_key=True))
    id: str = Field(sa_column=Column(Text, primary_key=True))
    seq: int | None = Field(default=None, sa_column=Column(BigInteger, Identity(always=True), nullable=False))
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

    It outlives the conversation, without any text: what was used stays counted. `worker` is the process it runs in.
    """

    __tablename__ = "runs"  # pyright: ignore[reportAssignmentType]
    __table_args__ = (
        CheckConstraint("status IN ('running', 'waiting', 'ended')", name="runs_status"),
        CheckConstraint("(status = 'ended') = (outcome IS NOT NULL)", name="runs_ended_with_one_outcome"),
        CheckConstraint("outcome IN ('completed', 'failed', 'cancelled', 'interrupted')", name="runs_known_outcome"),
        CheckConstraint("conversation_id IS NOT NULL OR state IS NULL", name="runs_kept_without_text"),
        CheckConstraint("lease_seconds > 0 AND lease_seconds <= 3600", name="runs_lease"),
        ForeignKeyConstraint(
            ["user_id", "conversation_id"],
            ["conversations.user_id", "conversations.id"],
            ondelete="SET NULL (conversation_id)",
        ),
        Index(
            "runs_one_per_conversation",
            "user_id",
            "conversation_id",
            unique=True,
            postgresql_where=text("status IN ('running', 'waiting')"),
        ),
        Index("runs_by_conversation", "user_id", "conversation_id"),
        Index("runs_by_owner", "user_id", "started_at"),
    )

    user_id: str = Field(sa_column=Column(Text, primary_key=True))
    id: str = Field(sa_column=Column(Text, primary_key=True))
    conversation_id: str | None = Field(sa_column=Column(Text))
    worker: str | None = Field(default=None, sa_column=Column(Text))
    status: str = Field(sa_column=Column(Text, nullable=False))
    outcome: str | None = Field(default=None, sa_column=Column(Text))
    stop_requested: bool = Field(default=False, sa_column=Column(Boolean, nullable=False, server_default=text("false")))
    usage: dict[str, Any] | None = Field(default=None, sa_column=Column(JSONB(none_as_null=True)))
    state: dict[str, Any] | None = Field(default=None, sa_column=Column(JSONB(none_as_null=True)))
    heartbeat_at: datetime = Field(
        default_factory=utc_now, sa_column=Column(TIMESTAMP(timezone=True), nullable=False, server_default=func.now())
    )
    lease_seconds: float = Field(default=15.0, sa_column=Column(Double, nullable=False, server_default=text("15")))
    started_at: datetime = Field(
        default_factory=utc_now, sa_column=Column(TIMESTAMP(timezone=True), nullable=False, server_default=func.now())
    )
    ended_at: datetime | None = Field(default=None, sa_column=Column(TIMESTAMP(timezone=True)))


class EndedSession(SQLModel, table=True):
    """A session of the page that its person signed out of before it expires; `id` is the one its cookie names."""

    __tablename__ = "ended_sessions"  # pyright: ignore[reportAssignmentType]

    user_id: str = Field(sa_column=Column(Text, primary_key=True))
    id: str = Field(sa_column=Column(Text, primary_key=True))
    expires_at: datetime = Field(sa_column=Column(TIMESTAMP(timezone=True), nullable=False))


class Profile(SQLModel, table=True):
    """What is kept of a person beside their conversations.

    The time zone that their client last named, and the SHA-256 of the secret in their calendar's address.
    """

    __tablename__ = "profiles"  # pyright: ignore[reportAssignmentType]
    __table_args__ = (
        CheckConstraint("octet_length(calendar_hash) = 32", name="profiles_calendar_hash"),
        Index("profiles_by_calendar", "calendar_hash", unique=True),
    )

    user_id: str = Field(sa_column=Column(Text, primary_key=True))
    time_zone: str | None = Field(default=None, sa_column=Column(Text))
    calendar_hash: bytes | None = Field(default=None, sa_column=Column(LargeBinary))
