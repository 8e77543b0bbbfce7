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
    Integer,
    LargeBinary,
    Text,
    func,
    text,
)
from sqlalchemy.dialects.postgresql import JSONB, TIMESTAMP
from sqlmodel import Field, SQLModel

from service.database import utc_now


def _of_conversation() -> ForeignKeyConstraint:
    return ForeignKeyConstraint(
        ["user_id", "conversation_id"], ["conversations.user_id", "conversations.id"], ondelete="CASCADE"
    )


def _moment() -> Column[datetime]:
    return Column(TIMESTAMP(timezone=True), nullable=False, server_default=func.now())


class Conversation(SQLModel, table=True):
    """A ChatKit thread.

    `name` is what its person calls it at the run API, and `leaf_run_id` the run that the shown path ends with.
    """

    __tablename__ = "conversations"  # pyright: ignore[reportAssignmentType]
    __table_args__ = (
        Index("conversations_by_name", "user_id", "name", unique=True, postgresql_where=text("name IS NOT NULL")),
    )

    user_id: str = Field(sa_column=Column(Text, primary_key=True))
    id: str = Field(sa_column=Column(Text, primary_key=True))
    title: str | None = Field(default=None, sa_column=Column(Text))
    status: dict[str, Any] = Field(sa_column=Column(JSONB, nullable=False))
    allowed_image_domains: list[str] | None = Field(default=None, sa_column=Column(JSONB(none_as_null=True)))
    details: dict[str, Any] = Field(
        default_factory=dict, sa_column=Column("metadata", JSONB, nullable=False, server_default="{}")
    )
    name: str | None = Field(default=None, sa_column=Column(Text))
    leaf_run_id: str | None = Field(default=None, sa_column=Column(Text))
    created_at: datetime = Field(
        default_factory=utc_now, sa_column=Column(TIMESTAMP(timezone=True), nullable=False, server_default=func.now())
    )


class Message(SQLModel, table=True):
    """A ChatKit thread item, whole; `seq` is the only order, and `superseded_by` is the run that replaced the row.

    `usage` is what the request to the model took that it came of, on the last of the rows that did.
    """

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
    usage: dict[str, Any] | None = Field(default=None, sa_column=Column(JSONB(none_as_null=True)))
    created_at: datetime = Field(
        default_factory=utc_now, sa_column=Column(TIMESTAMP(timezone=True), nullable=False, server_default=func.now())
    )


class Run(SQLModel, table=True):
    """One turn of the assistant, and the lease on its conversation while it is running or waiting.

    It outlives the conversation, without any text: what was used stays counted. So does what a running one was told,
    by a row of its own, without a conversation and with nothing in its usage. `worker` is the process it runs in.
    Runs are a tree: one goes on from the end of its parent, or stands beside the run that it edits, of whose rows it
    keeps those up to `kept_seq`. Of those beside each other one is `chosen`: where the shown path comes there, it goes
    on with that. `message_id` is the message that it answers. The events of a `followed` run are in `run_events`.
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
        Index("runs_by_conversation", "user_id", "conversation_id", "parent_run_id"),
        Index("runs_by_owner", "user_id", "started_at"),
        Index("runs_followed", "ended_at", postgresql_where=text("followed")),
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
    parent_run_id: str | None = Field(default=None, sa_column=Column(Text))
    edits_run_id: str | None = Field(default=None, sa_column=Column(Text))
    kept_seq: int | None = Field(default=None, sa_column=Column(BigInteger))
    chosen: bool = Field(default=True, sa_column=Column(Boolean, nullable=False, server_default=text("true")))
    message_id: str | None = Field(default=None, sa_column=Column(Text))
    followed: bool = Field(default=False, sa_column=Column(Boolean, nullable=False, server_default=text("false")))
    agent_runs: int = Field(default=0, sa_column=Column(Integer, nullable=False, server_default=text("0")))
    heartbeat_at: datetime = Field(
        default_factory=utc_now, sa_column=Column(TIMESTAMP(timezone=True), nullable=False, server_default=func.now())
    )
    lease_seconds: float = Field(default=15.0, sa_column=Column(Double, nullable=False, server_default=text("15")))
    started_at: datetime = Field(
        default_factory=utc_now, sa_column=Column(TIMESTAMP(timezone=True), nullable=False, server_default=func.now())
    )
    ended_at: datetime | None = Field(default=None, sa_column=Column(TIMESTAMP(timezone=True)))


class Approval(SQLModel, table=True):
    """A call of a run that waits for its person's consent, or did; `item_id` is the card that asks for it.

    `step_id` is the row of its step, `position` its place there, `key` its idempotency key, and `text` what it would
    do, in words: a line, and what it names in lines below. Where an `agent` wants to make it, `of_call` is the id of
    the assistant's call in that step for which the agent works. What is asked together has one `created_at`. `reach` is
    a fingerprint of what the card says that the call may reach, None where it says nothing of that.
    """

    __tablename__ = "approvals"  # pyright: ignore[reportAssignmentType]
    __table_args__ = (
        CheckConstraint("decision IN ('approved', 'refused')", name="approvals_known_decision"),
        CheckConstraint("(decision IS NULL) = (decided_at IS NULL)", name="approvals_decided_once"),
        CheckConstraint("(agent IS NULL) = (of_call IS NULL)", name="approvals_of_an_agent"),
        _of_conversation(),
        Index("approvals_by_run", "user_id", "conversation_id", "run_id", "position"),
    )

    user_id: str = Field(sa_column=Column(Text, primary_key=True))
    id: str = Field(sa_column=Column(Text, primary_key=True))
    conversation_id: str = Field(sa_column=Column(Text, nullable=False))
    run_id: str = Field(sa_column=Column(Text, nullable=False))
    step_id: str = Field(sa_column=Column(Text, nullable=False))
    position: int = Field(sa_column=Column(Integer, nullable=False))
    call: dict[str, Any] = Field(sa_column=Column(JSONB, nullable=False))
    key: str = Field(sa_column=Column(Text, nullable=False))
    text: str = Field(sa_column=Column(Text, nullable=False))
    item_id: str = Field(sa_column=Column(Text, nullable=False))
    decision: str | None = Field(default=None, sa_column=Column(Text))
    reason: str | None = Field(default=None, sa_column=Column(Text))
    created_at: datetime = Field(sa_column=_moment())
    decided_at: datetime | None = Field(default=None, sa_column=Column(TIMESTAMP(timezone=True)))
    agent: str | None = Field(default=None, sa_column=Column(Text))
    of_call: str | None = Field(default=None, sa_column=Column(Text))
    reach: str | None = Field(default=None, sa_column=Column(Text))


class RunInput(SQLModel, table=True):
    """A message that came while a run was answering: read by the model before its next request, or after its end.

    One that the model has read is a row of `messages` from then on; one that was overtaken is dropped.
    """

    __tablename__ = "run_inputs"  # pyright: ignore[reportAssignmentType]
    __table_args__ = (
        CheckConstraint("mode IN ('steer', 'follow_up')", name="run_inputs_known_mode"),
        _of_conversation(),
        Index("run_inputs_by_run", "user_id", "conversation_id", "run_id", "id"),
    )

    user_id: str = Field(sa_column=Column(Text, primary_key=True))
    id: str = Field(sa_column=Column(Text, primary_key=True))
    conversation_id: str = Field(sa_column=Column(Text, nullable=False))
    run_id: str = Field(sa_column=Column(Text, nullable=False))
    mode: str = Field(sa_column=Column(Text, nullable=False))
    said: dict[str, Any] = Field(sa_column=Column(JSONB, nullable=False))
    created_at: datetime = Field(sa_column=_moment())
    taken_at: datetime | None = Field(default=None, sa_column=Column(TIMESTAMP(timezone=True)))
    dropped_at: datetime | None = Field(default=None, sa_column=Column(TIMESTAMP(timezone=True)))


class RunEvent(SQLModel, table=True):
    """An event of a run's log, numbered from 1: what a reader in any process goes on from."""

    __tablename__ = "run_events"  # pyright: ignore[reportAssignmentType]
    __table_args__ = (ForeignKeyConstraint(["user_id", "run_id"], ["runs.user_id", "runs.id"], ondelete="CASCADE"),)

    user_id: str = Field(sa_column=Column(Text, primary_key=True))
    run_id: str = Field(sa_column=Column(Text, primary_key=True))
    seq: int = Field(sa_column=Column(BigInteger, primary_key=True, autoincrement=False))
    payload: dict[str, Any] = Field(sa_column=Column(JSONB, nullable=False))
    created_at: datetime = Field(sa_column=_moment())


class AgentStep(SQLModel, table=True):
    """What an agent did for the assistant's call `call_id`, numbered within its run.

    What the content of each `kind` is, `backend.conversation.agents.steps` tells.
    """

    __tablename__ = "agent_steps"  # pyright: ignore[reportAssignmentType]
    __table_args__ = (
        CheckConstraint("kind IN ('task', 'step', 'output', 'end')", name="agent_steps_known_kind"),
        _of_conversation(),
        Index("agent_steps_by_conversation", "user_id", "conversation_id"),
    )

    user_id: str = Field(sa_column=Column(Text, primary_key=True))
    run_id: str = Field(sa_column=Column(Text, primary_key=True))
    call_id: str = Field(sa_column=Column(Text, primary_key=True))
    seq: int = Field(sa_column=Column(Integer, primary_key=True, autoincrement=False))
    conversation_id: str = Field(sa_column=Column(Text, nullable=False))
    agent: str = Field(sa_column=Column(Text, nullable=False))
    kind: str = Field(sa_column=Column(Text, nullable=False))
    content: dict[str, Any] = Field(sa_column=Column(JSONB, nullable=False))
    details: dict[str, Any] | None = Field(default=None, sa_column=Column(JSONB(none_as_null=True)))
    created_at: datetime = Field(sa_column=_moment())


class Consent(SQLModel, table=True):
    """A tool whose calls the person allows in a conversation without being asked, as long as its `reach` is that."""

    __tablename__ = "consents"  # pyright: ignore[reportAssignmentType]
    __table_args__ = (_of_conversation(),)

    user_id: str = Field(sa_column=Column(Text, primary_key=True))
    conversation_id: str = Field(sa_column=Column(Text, primary_key=True))
    tool: str = Field(sa_column=Column(Text, primary_key=True))
    created_at: datetime = Field(sa_column=_moment())
    reach: str | None = Field(default=None, sa_column=Column(Text))


class ApprovedTool(SQLModel, table=True):
    """A tool of another MCP server that the operator allows, as long as its SHA-256 stays that of what they saw.

    It is no person's: the services read it, and the owner alone writes.
    """

    __tablename__ = "approved_tools"  # pyright: ignore[reportAssignmentType]
    __table_args__ = (CheckConstraint("octet_length(hash) = 32", name="approved_tools_hash"),)

    server: str = Field(sa_column=Column(Text, primary_key=True))
    tool: str = Field(sa_column=Column(Text, primary_key=True))
    hash: bytes = Field(sa_column=Column(LargeBinary, nullable=False))
    approved_at: datetime = Field(sa_column=_moment())


class KeptRequest(SQLModel, table=True):
    """A POST that its program may send again, by the Idempotency-Key that it sent: the same is answered the same.

    `request` is a SHA-256 of what was asked for; the answer is that of the run, or `answer` with `status`.
    """

    __tablename__ = "kept_requests"  # pyright: ignore[reportAssignmentType]
    __table_args__ = (Index("kept_requests_by_age", "created_at", postgresql_using="brin"),)

    user_id: str = Field(sa_column=Column(Text, primary_key=True))
    key: str = Field(sa_column=Column(Text, primary_key=True))
    request: bytes = Field(sa_column=Column(LargeBinary, nullable=False))
    run_id: str | None = Field(default=None, sa_column=Column(Text))
    status: int | None = Field(default=None, sa_column=Column(Integer))
    answer: dict[str, Any] | None = Field(default=None, sa_column=Column(JSONB(none_as_null=True)))
    created_at: datetime = Field(sa_column=_moment())


class EndedSession(SQLModel, table=True):
    """A session of the page that its person signed out of before it expires; `id` is the one its cookie names."""

    __tablename__ = "ended_sessions"  # pyright: ignore[reportAssignmentType]

    user_id: str = Field(sa_column=Column(Text, primary_key=True))
    id: str = Field(sa_column=Column(Text, primary_key=True))
    expires_at: datetime = Field(sa_column=Column(TIMESTAMP(timezone=True), nullable=False))


class Profile(SQLModel, table=True):
    """What is kept of a person beside their conversations.

    The time zone that their client last named, the SHA-256 of the secret in their calendar's address, and what they
    want remembered.
    """

    __tablename__ = "profiles"  # pyright: ignore[reportAssignmentType]
    __table_args__ = (
        CheckConstraint("octet_length(calendar_hash) = 32", name="profiles_calendar_hash"),
        CheckConstraint("octet_length(memory) <= 65536", name="profiles_memory"),
        Index("profiles_by_calendar", "calendar_hash", unique=True),
    )

    user_id: str = Field(sa_column=Column(Text, primary_key=True))
    time_zone: str | None = Field(default=None, sa_column=Column(Text))
    calendar_hash: bytes | None = Field(default=None, sa_column=Column(LargeBinary))
    memory: str | None = Field(default=None, sa_column=Column(Text))
