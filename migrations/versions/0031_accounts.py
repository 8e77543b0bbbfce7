"""Add accounts, one-time codes and the audit log, and let sessions be of devices, tokens and clients."""

from alembic import op
from sqlalchemy import (
    TIMESTAMP,
    BigInteger,
    CheckConstraint,
    Column,
    Identity,
    Index,
    LargeBinary,
    MetaData,
    Table,
    Text,
    func,
    text,
)
from sqlalchemy.dialects.postgresql import JSONB

from migrations.database import create_function, protect_table

revision = "0031"
down_revision = "0030"

_NOW = func.now()
_METADATA = MetaData()
_TABLES = [
    Table(
        "accounts",
        _METADATA,
        Column("user_id", Text, primary_key=True),
        Column("name", Text, nullable=False),
        Column("password_hash", Text),
        Column("issuer", Text),
        Column("subject", Text),
        Column("created_at", TIMESTAMP(timezone=True), nullable=False, server_default=_NOW),
        Column("disabled_at", TIMESTAMP(timezone=True)),
        Index("accounts_by_subject", "issuer", "subject", unique=True, postgresql_where=text("issuer IS NOT NULL")),
    ),
    Table(
        "one_time_codes",
        _METADATA,
        Column("user_id", Text, primary_key=True),
        Column("hash", LargeBinary, primary_key=True),
        Column("kind", Text, nullable=False),
        Column("details", JSONB, nullable=False),
        Column("expires_at", TIMESTAMP(timezone=True), nullable=False),
        CheckConstraint("octet_length(hash) = 32", name="one_time_codes_hash"),
        Index("one_time_codes_by_hash", "hash"),
    ),
    Table(
        "account_events",
        _METADATA,
        Column("user_id", Text, primary_key=True),
        Column("id", BigInteger, Identity(always=True), primary_key=True),
        Column("at", TIMESTAMP(timezone=True), nullable=False, server_default=_NOW),
        Column("kind", Text, nullable=False),
        Column("details", JSONB, nullable=False),
        Index("account_events_by_time", "at"),
    ),
]
_FUNCTIONS = {
    "take_one_time_code(code_hash bytea, code_kind text)": (
        "TABLE (user_id text, details jsonb)",
        """
        DELETE FROM one_time_codes AS code WHERE hash = code_hash AND kind = code_kind AND expires_at > now()
        RETURNING code.user_id, code.details
        """,
    ),
    "sweep_accounts(most integer)": (
        "void",
        """
        DELETE FROM sessions WHERE (user_id, id) IN (
            SELECT user_id, id FROM sessions WHERE expires_at < now() - interval '1 hour' LIMIT most
        );
        DELETE FROM one_time_codes WHERE expires_at < now();
        DELETE FROM account_events WHERE (user_id, id) IN (
            SELECT user_id, id FROM account_events WHERE at < now() - interval '1 year' LIMIT most
        )
        """,
    ),
}


def upgrade() -> None:
    connection = op.get_bind()
    driver = connection.connection.driver_connection
    for table in _TABLES:
        table.create(connection)
        protect_table(driver, table)
    op.execute("ALTER TABLE sessions DROP CONSTRAINT sessions_kind")
    op.execute(
        "ALTER TABLE sessions ADD CONSTRAINT sessions_kind CHECK (kind IN ('session', 'device', 'token', 'client'))"
    )
    for signature, (returned, statement) in _FUNCTIONS.items():
        create_function(driver, signature, returned, statement)
    op.execute("DROP FUNCTION sweep_sessions(integer)")
