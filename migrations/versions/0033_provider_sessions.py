"""Add the encrypted tokens of sessions that began at an identity provider."""

from alembic import op
from sqlalchemy import TIMESTAMP, Column, Index, LargeBinary, MetaData, Table, Text, func

from migrations.database import create_function, protect_table

revision = "0033"
down_revision = "0032"

_TABLE = Table(
    "provider_sessions",
    MetaData(),
    Column("user_id", Text, primary_key=True),
    Column("session_id", Text, primary_key=True),
    Column("sealed", LargeBinary, nullable=False),
    Column("renewed_at", TIMESTAMP(timezone=True), nullable=False, server_default=func.now()),
    Column("renew_at", TIMESTAMP(timezone=True), nullable=False),
    Index("provider_sessions_by_renewal", "renew_at"),
)
_FUNCTIONS = {
    "claim_renewals(seconds integer, most integer)": (
        "TABLE (user_id text, session_id text, claimed_until timestamptz)",
        """
        UPDATE sessions SET ended_at = clock_timestamp() WHERE ended_at IS NULL AND (user_id, id) IN (
            SELECT stored.user_id, stored.session_id FROM provider_sessions AS stored
            WHERE renewed_at < now() - interval '12 hours'
        );
        DELETE FROM provider_sessions AS stored WHERE NOT EXISTS (
            SELECT FROM sessions AS session
            WHERE (session.user_id, session.id) = (stored.user_id, stored.session_id)
                AND session.ended_at IS NULL AND session.expires_at > now()
        );
        UPDATE provider_sessions AS due SET renew_at = now() + make_interval(secs => seconds)
        WHERE (due.user_id, due.session_id) IN (
            SELECT stored.user_id, stored.session_id FROM provider_sessions AS stored
            WHERE renew_at <= now() ORDER BY renew_at LIMIT most FOR UPDATE SKIP LOCKED
        ) RETURNING due.user_id, due.session_id, due.renew_at
        """,
    ),
}


def upgrade() -> None:
    connection = op.get_bind()
    _TABLE.create(connection)
    driver = connection.connection.driver_connection
    protect_table(driver, _TABLE)
    for signature, (returned, statement) in _FUNCTIONS.items():
        create_function(driver, signature, returned, statement)
