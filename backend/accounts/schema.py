"""The tables of accounts, for Alembic: who may sign in, where users are signed in, codes, and what happened."""

from datetime import datetime
from typing import Any

from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    Column,
    ForeignKeyConstraint,
    Identity,
    Index,
    MetaData,
    Text,
    func,
    text,
)
from sqlalchemy.dialects.postgresql import ARRAY, JSONB, TIMESTAMP
from sqlmodel import Field, SQLModel


def _time(*, nullable: bool = False, default: bool = True) -> Column[datetime]:
    return Column(TIMESTAMP(timezone=True), nullable=nullable, server_default=func.now() if default else None)


class _UserRow(SQLModel):
    metadata = MetaData()

    user_id: str = Field(primary_key=True, sa_type=Text)


class AccountRow(_UserRow, table=True):
    """Who may sign in. `issuer` and `subject` are those of an identity provider; an account of ours has a password.

    `provider_refused_at` is when the provider has refused the user, until they sign in again.
    """

    __tablename__ = "accounts"  # pyright: ignore[reportAssignmentType]
    __table_args__ = (
        Index("accounts_by_subject", "issuer", "subject", unique=True, postgresql_where=text("issuer IS NOT NULL")),
    )

    name: str = Field(sa_type=Text)
    password_hash: str | None = Field(sa_type=Text)
    issuer: str | None = Field(sa_type=Text)
    subject: str | None = Field(sa_type=Text)
    created_at: datetime = Field(sa_column=_time())
    disabled_at: datetime | None = Field(sa_column=_time(nullable=True, default=False))
    provider_refused_at: datetime | None = Field(sa_column=_time(nullable=True, default=False))


class SessionRow(_UserRow, table=True):
    """Where a user is signed in. A row stays until it expires, and an hour longer, also if it was ended."""

    __tablename__ = "sessions"  # pyright: ignore[reportAssignmentType]
    __table_args__ = (
        CheckConstraint("kind IN ('session', 'device', 'token', 'client')", name="sessions_kind"),
        Index("sessions_by_end", "ended_at", postgresql_where=text("ended_at IS NOT NULL")),
        Index("sessions_by_expiry", "expires_at"),
    )

    id: str = Field(primary_key=True, sa_type=Text)
    kind: str = Field(sa_type=Text)
    name: str = Field(sa_type=Text)
    scopes: list[str] = Field(sa_column=Column(ARRAY(Text), nullable=False))
    created_at: datetime = Field(sa_column=_time())
    last_used_at: datetime = Field(sa_column=_time())
    expires_at: datetime = Field(sa_column=_time(default=False))
    ended_at: datetime | None = Field(sa_column=_time(nullable=True, default=False))


class OAuthGrantRow(_UserRow, table=True):
    """What the user has allowed an OAuth client, as a session of kind `client`, which the grant ends with.

    `address` says where the client's codes were sent, and `generation` which of its refresh tokens is the present one.
    """

    __tablename__ = "oauth_grants"  # pyright: ignore[reportAssignmentType]
    __table_args__ = (
        ForeignKeyConstraint(
            ["user_id", "session_id"],
            ["sessions.user_id", "sessions.id"],
            ondelete="CASCADE",
            onupdate="CASCADE",
            name="oauth_grants_session",
            deferrable=True,
        ),
    )

    session_id: str = Field(primary_key=True, sa_type=Text)
    address: str = Field(sa_type=Text)
    generation: int = Field(sa_column=Column(BigInteger, nullable=False, server_default=text("0")))
    refreshed_at: datetime = Field(sa_column=_time())


class ProviderSessionRow(_UserRow, table=True):
    """The tokens of a session that began at an identity provider, encrypted, and when it is renewed there next."""

    __tablename__ = "provider_sessions"  # pyright: ignore[reportAssignmentType]
    __table_args__ = (Index("provider_sessions_by_renewal", "renew_at"),)

    session_id: str = Field(primary_key=True, sa_type=Text)
    sealed: bytes
    renewed_at: datetime = Field(sa_column=_time())
    renew_at: datetime = Field(sa_column=_time(default=False))


class OneTimeCodeRow(_UserRow, table=True):
    """A code that opens something once, as its SHA-256. It is of nobody while there is no account."""

    __tablename__ = "one_time_codes"  # pyright: ignore[reportAssignmentType]
    __table_args__ = (
        CheckConstraint("octet_length(hash) = 32", name="one_time_codes_hash"),
        Index("one_time_codes_by_hash", "hash"),
    )

    hash: bytes = Field(primary_key=True)
    kind: str = Field(sa_type=Text)
    details: dict[str, Any] = Field(sa_column=Column(JSONB, nullable=False))
    expires_at: datetime = Field(sa_column=_time(default=False))


class AccountEventRow(_UserRow, table=True):
    """What happened to an account, such as a sign-in."""

    __tablename__ = "account_events"  # pyright: ignore[reportAssignmentType]
    __table_args__ = (Index("account_events_by_time", "at"),)

    id: int = Field(sa_column=Column(BigInteger, Identity(always=True), primary_key=True))
    at: datetime = Field(sa_column=_time())
    kind: str = Field(sa_type=Text)
    details: dict[str, Any] = Field(sa_column=Column(JSONB, nullable=False))


class FailedSignInRow(SQLModel, table=True):
    """How many sign-ins with a name, or from one address, have failed, and when the next one is allowed.

    The key is a hash (HMAC-SHA-256). The rows are of no user, and only functions of the owner reach them.
    """

    metadata = _UserRow.metadata
    __tablename__ = "failed_sign_ins"  # pyright: ignore[reportAssignmentType]
    __table_args__ = (Index("failed_sign_ins_by_time", "at"),)

    key: bytes = Field(primary_key=True)
    count: int
    longest_seconds: int
    at: datetime = Field(sa_column=_time(default=False))
    allowed_at: datetime = Field(sa_column=_time(default=False))


METADATA = _UserRow.metadata
