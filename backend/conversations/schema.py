"""The tables of conversations, runs and profiles, for Alembic."""

from collections.abc import Iterable
from datetime import date, datetime, time
from typing import Any, get_args

from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    Column,
    Computed,
    ForeignKeyConstraint,
    Index,
    MetaData,
    Text,
    func,
    text,
)
from sqlalchemy.dialects.postgresql import JSONB, TIMESTAMP
from sqlmodel import AutoString, Field, SQLModel

from backend.conversations.records import CallReason, CallState, EntryKind, Status
from backend.users.schedules import SkipReason


def _one_of(column: str, values: Iterable[str], name: str) -> CheckConstraint:
    return CheckConstraint(f"{column} IN ({', '.join(map(repr, values))})", name=name)


def _index(name: str, *columns: str, where: str, unique: bool = False) -> Index:
    return Index(name, "user_id", *columns, unique=unique, postgresql_where=text(where))


def _in_conversation(*, on_delete: str) -> ForeignKeyConstraint:
    return ForeignKeyConstraint(
        ["user_id", "conversation_id"],
        ["conversations.user_id", "conversations.id"],
        ondelete=on_delete,
        deferrable=True,  # for `./todo user adopt`
    )


def _time(*, nullable: bool = False) -> Column[datetime]:
    default = None if nullable else func.now()
    return Column(TIMESTAMP(timezone=True), nullable=nullable, server_default=default)


def _json(*, nullable: bool = True) -> Column[Any]:
    return Column(JSONB(none_as_null=True), nullable=nullable, server_default=None if nullable else "{}")


def _number(*, default: str | None = None, nullable: bool = True) -> Column[int]:
    return Column(BigInteger, nullable=nullable, server_default=text(default) if default else None)


_NEXT = "nextval('event_seq')"
_IS_ON = text("next_at IS NOT NULL AND NOT paused")


class _UserRow(SQLModel):
    metadata = MetaData()

    user_id: str = Field(primary_key=True)


class ConversationRow(_UserRow, table=True):
    __tablename__ = "conversations"  # pyright: ignore[reportAssignmentType]
    __table_args__ = (_index("conversations_by_name", "name", unique=True, where="name IS NOT NULL"),)

    id: str = Field(primary_key=True)
    name: str | None = None
    title: str | None = None
    details: dict[str, Any] = Field(sa_column=_json(nullable=False))
    created_at: datetime = Field(sa_column=_time())


class RunRow(_UserRow, table=True):
    """One answer, also a sub-agent's; it outlives its conversation, without any text, so that usage stays counted.

    `previous_run_id` is the run that it continues; the runs of a conversation are a tree, whose shown path is `active`.
    `parent_run_id` and `parent_call_id` are the run and the tool call that started a sub-agent; `top_run_id` is the
    run at the top of those. `process_id` is the advisory lock of the process that executes it.
    """

    __tablename__ = "runs"  # pyright: ignore[reportAssignmentType]
    __table_args__ = (
        _one_of("status", get_args(Status), "runs_status"),
        CheckConstraint("(status = 'running') = (process_id IS NOT NULL)", name="runs_lease"),
        CheckConstraint("(parent_run_id IS NULL) = (parent_call_id IS NULL)", name="runs_parent"),
        _in_conversation(on_delete="SET NULL (conversation_id)"),
        _index(
            "runs_one_at_a_time",
            "conversation_id",
            unique=True,
            where="status IN ('running', 'waiting') AND parent_call_id IS NULL",
        ),
        _index("runs_of_call", "parent_run_id", "parent_call_id", unique=True, where="parent_call_id IS NOT NULL"),
        _index("runs_path", "conversation_id", "seq", where="active AND parent_call_id IS NULL"),
        _index("runs_left", "conversation_id", "seq", where="NOT active AND parent_call_id IS NULL"),
        Index("runs_by_previous", "user_id", "conversation_id", "previous_run_id"),
        Index("runs_by_top", "user_id", "top_run_id"),
        Index("runs_running", "process_id", postgresql_where=text("status = 'running'")),
    )

    id: str = Field(primary_key=True)
    conversation_id: str | None = None
    seq: int = Field(sa_column=_number(default=_NEXT, nullable=False))
    previous_run_id: str | None = None
    parent_run_id: str | None = None
    parent_call_id: str | None = None
    top_run_id: str
    agent: str
    active: bool = Field(sa_column_kwargs={"server_default": text("true")})
    status: str
    process_id: int | None = Field(sa_column=_number())
    stop_requested: bool = Field(sa_column_kwargs={"server_default": text("false")})
    options: dict[str, Any] = Field(sa_column=_json(nullable=False))
    usage: dict[str, Any] | None = Field(sa_column=_json())
    error_code: str | None = None
    created_at: datetime = Field(sa_column=_time())
    running_since: datetime = Field(sa_column=_time())
    ended_at: datetime | None = Field(sa_column=_time(nullable=True))
    end_seq: int | None = Field(sa_column=_number())


class ModelTurnRow(_UserRow, table=True):
    __tablename__ = "model_turns"  # pyright: ignore[reportAssignmentType]
    __table_args__ = (
        ForeignKeyConstraint(["user_id", "run_id"], ["runs.user_id", "runs.id"], ondelete="CASCADE", deferrable=True),
    )

    run_id: str = Field(primary_key=True)
    number: int = Field(primary_key=True)
    seq: int = Field(sa_column=_number(default=_NEXT, nullable=False))
    model: str
    usage: dict[str, Any] | None = Field(sa_column=_json())
    seconds: float
    finish_reason: str | None = None
    replay: dict[str, Any] | None = Field(sa_column=_json())


class EntryRow(_UserRow, table=True):
    """Something said or noted. Without `seq` it waits in the steering queue of its run.

    `completion_seq` is set when a row that was stored while it grew is complete.
    """

    __tablename__ = "entries"  # pyright: ignore[reportAssignmentType]
    __table_args__ = (
        _one_of("kind", get_args(EntryKind), "entries_kind"),
        CheckConstraint("id <> '__fake_id__'", name="entries_real_id"),
        _in_conversation(on_delete="CASCADE"),
        Index("entries_in_order", "user_id", "conversation_id", "seq"),
        _index("entries_for_model", "conversation_id", "seq", where="kind IN ('summary', 'branch_note')"),
        _index("entries_queued", "run_id", where="seq IS NULL"),
    )

    run_id: str = Field(primary_key=True)
    id: str = Field(primary_key=True)
    conversation_id: str
    seq: int | None = Field(sa_column=_number(default=_NEXT))
    completion_seq: int | None = Field(sa_column=_number())
    last_seq: int | None = Field(
        sa_column=Column(BigInteger, Computed("coalesce(completion_seq, seq)", persisted=True))
    )
    kind: str
    text: str = Field(sa_column=Column(Text, nullable=False, server_default=""))
    details: dict[str, Any] | None = Field(sa_column=_json())
    complete: bool = Field(sa_column_kwargs={"server_default": "true"})
    model_turn: int = Field(sa_column_kwargs={"server_default": "0"})
    feedback: str | None = None
    created_at: datetime = Field(sa_column=_time())


class ToolCallRow(_UserRow, table=True):
    """A use of a tool. Each of its moments (request, approval request, decision, result) has a number of its own.

    `reach` is a fingerprint of what its approval card says that it may reach; `reason` tells why it was not made, and
    `decision_text` is what the user said about it.
    """

    __tablename__ = "tool_calls"  # pyright: ignore[reportAssignmentType]
    __table_args__ = (
        _one_of("state", get_args(CallState), "tool_calls_state"),
        _one_of("reason", get_args(CallReason), "tool_calls_reason"),
        CheckConstraint("decision_seq IS NULL OR approval_seq IS NOT NULL", name="tool_calls_decided_once"),
        _in_conversation(on_delete="CASCADE"),
        Index("tool_calls_in_order", "user_id", "conversation_id", "seq"),
    )

    run_id: str = Field(primary_key=True)
    id: str = Field(primary_key=True)
    conversation_id: str
    seq: int = Field(sa_column=_number(default=_NEXT, nullable=False))
    approval_seq: int | None = Field(sa_column=_number())
    decision_seq: int | None = Field(sa_column=_number())
    result_seq: int | None = Field(sa_column=_number())
    last_seq: int = Field(
        sa_column=Column(BigInteger, Computed("greatest(seq, approval_seq, decision_seq, result_seq)", persisted=True))
    )
    model_turn: int
    tool: str
    arguments: str
    state: str
    idempotency_key: str
    output: str | None = None
    details: dict[str, Any] | None = Field(sa_column=_json())
    seconds: float | None = None
    approval_text: str | None = None
    reach: str | None = None
    reason: str | None = None
    decision_text: str | None = None
    feedback: str | None = None
    created_at: datetime = Field(sa_column=_time())


class ConsentRow(_UserRow, table=True):
    """A tool whose calls the user allows in a conversation without approval, as long as its `reach` stays the same."""

    __tablename__ = "consents"  # pyright: ignore[reportAssignmentType]
    __table_args__ = (_in_conversation(on_delete="CASCADE"),)

    conversation_id: str = Field(primary_key=True)
    tool: str = Field(primary_key=True)
    reach: str | None = None
    created_at: datetime = Field(sa_column=_time())


class ScheduleRow(_UserRow, table=True):
    """A message that the user lets the assistant answer again and again.

    `next_on` and `at_time` are the next occurrence in local time, in `zone` or else the user's zone, and `next_at` is
    its instant, null after the last. `last_state` is what was seen of the run `last_run_id`; an occurrence without a
    run has `skipped_at` and `skip_reason`. Nobody else looks at a schedule that is due before `claimed_until`.
    """

    __tablename__ = "schedules"  # pyright: ignore[reportAssignmentType]
    __table_args__ = (
        _one_of("skip_reason", get_args(SkipReason), "schedules_skip_reason"),
        _one_of("last_state", get_args(Status), "schedules_last_state"),
        CheckConstraint("(next_on IS NULL) = (next_at IS NULL)", name="schedules_next"),
        _in_conversation(on_delete="SET NULL (conversation_id)"),
        Index("schedules_due", "next_at", postgresql_where=_IS_ON),
        _index("schedules_open", "id", where="last_state IN ('running', 'waiting')"),
    )

    id: str = Field(primary_key=True)
    text: str
    repeat: str
    at_time: time
    zone: str | None = None
    next_on: date | None = None
    next_at: datetime | None = Field(sa_column=_time(nullable=True))
    paused: bool = Field(sa_column_kwargs={"server_default": "false"})
    only_if_needed: bool = Field(sa_column_kwargs={"server_default": "false"})
    conversation_id: str | None = None
    claimed_until: datetime | None = Field(sa_column=_time(nullable=True))
    last_run_id: str | None = None
    last_state: str | None = None
    skipped_at: datetime | None = Field(sa_column=_time(nullable=True))
    skip_reason: str | None = None
    created_at: datetime = Field(sa_column=_time())


class RequestRow(_UserRow, table=True):
    __tablename__ = "requests"  # pyright: ignore[reportAssignmentType]
    __table_args__ = (Index("requests_by_time", "user_id", "created_at"),)

    id: str = Field(primary_key=True)
    created_at: datetime = Field(sa_column=_time())


class TokenUsageRow(_UserRow, table=True):
    """The model tokens of a user on a day (UTC), of all requests to the model."""

    __tablename__ = "token_usage"  # pyright: ignore[reportAssignmentType]

    day: date = Field(primary_key=True)
    input_tokens: int = Field(sa_column=_number(nullable=False))
    output_tokens: int = Field(sa_column=_number(nullable=False))


class ProfileRow(_UserRow, table=True):
    """What is stored about a user apart from conversations; only the user changes `name` and `time_zone`.

    `calendar_hash` is that of their calendar's address.
    """

    __tablename__ = "profiles"  # pyright: ignore[reportAssignmentType]
    __table_args__ = (
        CheckConstraint("octet_length(calendar_hash) = 32", name="profiles_calendar_hash"),
        CheckConstraint("octet_length(memory) <= 65536", name="profiles_memory"),
        CheckConstraint("char_length(name) <= 100", name="profiles_name"),
        Index("profiles_by_calendar", "calendar_hash", unique=True),
    )

    name: str | None = None
    time_zone: str | None = None
    calendar_hash: bytes | None = None
    memory: str | None = None


class IdempotencyKeyRow(_UserRow, table=True):
    """An idempotency key. `request` is a hash of the request; its response is the run, or `answer` with `status`."""

    __tablename__ = "kept_requests"  # pyright: ignore[reportAssignmentType]
    __table_args__ = (Index("kept_requests_by_age", "created_at", postgresql_using="brin"),)

    key: str = Field(primary_key=True)
    request: bytes
    run_id: str | None = None
    status: int | None = None
    answer: dict[str, Any] | None = Field(sa_column=_json())
    created_at: datetime = Field(sa_column=_time())


class ApprovedToolRow(SQLModel, table=True):
    """A tool of another MCP server that the operator allows while its SHA-256 stays the same. It is no user's."""

    metadata = _UserRow.metadata
    __tablename__ = "approved_tools"  # pyright: ignore[reportAssignmentType]
    __table_args__ = (CheckConstraint("octet_length(hash) = 32", name="approved_tools_hash"),)

    server: str = Field(primary_key=True)
    tool: str = Field(primary_key=True)
    hash: bytes
    approved_at: datetime = Field(sa_column=_time())


METADATA = _UserRow.metadata
for _table in METADATA.tables.values():  # sqlmodel 0.0.50 makes `str` VARCHAR, which PostgreSQL takes for another type
    for _column in _table.columns:
        if isinstance(_column.type, AutoString):
            _column.type = Text()
