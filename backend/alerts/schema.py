"""The tables of notifications, for Alembic: a user's settings and channels, the outbox, and deliveries.

When a task alerts is stored with the task, in columns that the triggers of `migrations/alerts.py` update.
"""

from collections.abc import Iterable
from datetime import date, datetime, time
from typing import Any, get_args

from sqlalchemy import (
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    ForeignKeyConstraint,
    Identity,
    Index,
    Integer,
    MetaData,
    SmallInteger,
    Text,
    func,
    text,
)
from sqlalchemy.dialects.postgresql import JSONB, TIME, TIMESTAMP
from sqlmodel import Field, SQLModel

from backend.alerts.states import AlertKind, AlertState, DeliveryState
from common.task_words import MAX_REMIND


def _one_of(column: str, values: Iterable[str], name: str) -> CheckConstraint:
    return CheckConstraint(f"{column} IN ({', '.join(map(repr, values))})", name=name)


def _moment(*, nullable: bool = False, default: bool = False) -> Column[datetime]:
    return Column(TIMESTAMP(timezone=True), nullable=nullable, server_default=func.now() if default else None)


def _clock_time(*, default: str | None = None) -> Column[time]:
    return Column(TIME(precision=0), nullable=True, server_default=text(default) if default else None)


def _row_id() -> Column[int]:
    return Column(BigInteger, Identity(always=True), primary_key=True)


def _count(column_type: type[BigInteger | Integer | SmallInteger] = BigInteger) -> Column[int]:
    return Column(column_type, nullable=False, server_default=text("0"))


def _flag(default: str) -> Column[bool]:
    return Column(Boolean, nullable=False, server_default=text(default))


class _UserRow(SQLModel):
    metadata = MetaData()

    user_id: str = Field(primary_key=True, sa_type=Text)


class AlertSettingsRow(_UserRow, table=True):
    """How a user wants to be notified; without a row, or if it is off, no alerts are made.

    `digest_at` is when the next digest is sent, that of `digest_day`; while `stale_since` is set, both have to be
    computed again. `digest_on` is the day of the last digest.
    """

    __tablename__ = "alert_settings"  # pyright: ignore[reportAssignmentType]
    __table_args__ = (
        CheckConstraint(f"remind BETWEEN -1 AND {MAX_REMIND}", name="alert_settings_remind"),
        CheckConstraint("(quiet_from IS NULL) = (quiet_until IS NULL)", name="alert_settings_quiet"),
        Index("alert_settings_by_digest", "digest_at", postgresql_where=text("digest_at IS NOT NULL")),
        Index("alert_settings_by_stale_digest", "stale_since", postgresql_where=text("stale_since IS NOT NULL")),
    )

    is_on: bool = Field(sa_column=_flag("true"))
    remind: int = Field(sa_column=_count(Integer))
    digest_time: time | None = Field(sa_column=_clock_time(default="'08:00:00'::time(0) without time zone"))
    quiet_from: time | None = Field(sa_column=_clock_time())
    quiet_until: time | None = Field(sa_column=_clock_time())
    digest_at: datetime | None = Field(sa_column=_moment(nullable=True))
    digest_day: date | None = None
    digest_on: date | None = None
    stale_since: datetime | None = Field(sa_column=_moment(nullable=True))


class AlertChannelRow(_UserRow, table=True):
    """Where a user is notified, such as a browser. `target` has secrets, `target_hash` is of what makes it unique.

    A device that is signed in has `session_id`, and ends with that session. `confirmed_at` is when it first said that
    it has shown a notification.
    """

    __tablename__ = "alert_channels"  # pyright: ignore[reportAssignmentType]
    __table_args__ = (
        CheckConstraint("octet_length(target_hash) = 32", name="alert_channels_target_hash"),
        Index("alert_channels_by_target", "user_id", "target_hash", unique=True),
        Index("alert_channels_by_device", "target_hash", postgresql_where=text("kind = 'push'")),
    )

    id: int = Field(sa_column=_row_id())
    kind: str = Field(sa_type=Text)
    name: str = Field(sa_type=Text)
    target: dict[str, Any] = Field(sa_column=Column(JSONB, nullable=False))
    target_hash: bytes
    position: int
    is_on: bool = Field(sa_column=_flag("true"))
    problem: str | None = Field(sa_type=Text)
    session_id: str | None = Field(sa_type=Text)
    created_at: datetime = Field(sa_column=_moment(default=True))
    confirmed_at: datetime | None = Field(sa_column=_moment(nullable=True))
    last_sent_at: datetime | None = Field(sa_column=_moment(nullable=True))
    last_shown_at: datetime | None = Field(sa_column=_moment(nullable=True))


class AlertRow(_UserRow, table=True):
    """An alert in the outbox. `task_dues` are objects with a task's `id`, and the `due_on` and `due_time` that it had.

    A `pending` alert is worked on at `next_at`, which is also how long whoever works on it has claimed it. One that is
    `held` waits for the end of quiet hours, and one that is `collected` for some seconds, as others are due together
    with it; then it is `merged` into another one.
    """

    __tablename__ = "alerts"  # pyright: ignore[reportAssignmentType]
    __table_args__ = (
        _one_of("kind", get_args(AlertKind), "alerts_kind"),
        _one_of("state", get_args(AlertState), "alerts_state"),
        CheckConstraint("(state IN ('pending', 'collected', 'held')) = (next_at IS NOT NULL)", name="alerts_next_at"),
        Index("alerts_one_per_key", "user_id", "key", unique=True),
        Index("alerts_by_next", "next_at", postgresql_where=text("next_at IS NOT NULL")),
        Index("alerts_held", "user_id", postgresql_where=text("state IN ('collected', 'held')")),
        Index("alerts_merged", "user_id", "merged_into", postgresql_where=text("merged_into IS NOT NULL")),
        Index("alerts_by_age", "created_at"),
    )

    id: int = Field(sa_column=_row_id())
    key: str = Field(sa_type=Text)
    kind: str = Field(sa_type=Text)
    task_dues: list[dict[str, Any]] = Field(sa_column=Column(JSONB, nullable=False, server_default="[]"))
    schedule_id: str | None = Field(sa_type=Text)
    run_id: str | None = Field(sa_type=Text)
    outcome: str | None = Field(sa_type=Text)
    alert_at: datetime = Field(sa_column=_moment())
    created_at: datetime = Field(sa_column=_moment())
    late: bool = Field(sa_column=_flag("false"))
    state: str = Field(sa_type=Text)
    next_at: datetime | None = Field(sa_column=_moment(nullable=True))
    shown_at: datetime | None = Field(sa_column=_moment(nullable=True))
    merged_into: int | None = Field(sa_type=BigInteger)


class AlertDeliveryRow(_UserRow, table=True):
    """An alert at a channel, stored before it is sent. `repetitions` are those tries before which it may have arrived.

    By the secret `proof`, a device can say that it has shown the notification.
    """

    __tablename__ = "alert_deliveries"  # pyright: ignore[reportAssignmentType]
    __table_args__ = (
        _one_of("state", get_args(DeliveryState), "alert_deliveries_state"),
        ForeignKeyConstraint(
            ["user_id", "alert_id"],
            ["alerts.user_id", "alerts.id"],
            ondelete="CASCADE",
            name="alert_deliveries_alert",
            deferrable=True,  # for `./todo user adopt`
        ),
        ForeignKeyConstraint(
            ["user_id", "channel_id"],
            ["alert_channels.user_id", "alert_channels.id"],
            ondelete="CASCADE",
            name="alert_deliveries_channel",
            deferrable=True,
        ),
        Index("alert_deliveries_by_channel", "user_id", "channel_id"),
        Index("alert_deliveries_by_proof", "proof", unique=True),
    )

    alert_id: int = Field(sa_type=BigInteger, primary_key=True)
    channel_id: int = Field(sa_type=BigInteger, primary_key=True)
    state: str = Field(sa_type=Text)
    attempts: int = Field(sa_column=_count(SmallInteger))
    repetitions: int = Field(sa_column=_count(SmallInteger))
    problem: str | None = Field(sa_type=Text)
    proof: str = Field(sa_type=Text)
    first_at: datetime = Field(sa_column=_moment())
    at: datetime = Field(sa_column=_moment())


METADATA = _UserRow.metadata
