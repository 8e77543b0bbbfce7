"""Store the sessions themselves, not only those that were ended: cookies of before ask for one sign-in."""

from alembic import op
from sqlalchemy import ARRAY, TIMESTAMP, CheckConstraint, Column, Index, MetaData, Table, Text, func, text

from migrations.database import create_function, protect_table

revision = "0030"
down_revision = "0029"

_NOW = func.now()
_TABLE = Table(
    "sessions",
    MetaData(),
    Column("user_id", Text, primary_key=True),
    Column("id", Text, primary_key=True),
    Column("kind", Text, nullable=False),
    Column("name", Text, nullable=False),
    Column("scopes", ARRAY(Text), nullable=False),
    Column("created_at", TIMESTAMP(timezone=True), nullable=False, server_default=_NOW),
    Column("last_used_at", TIMESTAMP(timezone=True), nullable=False, server_default=_NOW),
    Column("expires_at", TIMESTAMP(timezone=True), nullable=False),
    Column("ended_at", TIMESTAMP(timezone=True)),
    CheckConstraint("kind IN ('session')", name="sessions_kind"),
    Index("sessions_by_end", "ended_at", postgresql_where=text("ended_at IS NOT NULL")),
    Index("sessions_by_expiry", "expires_at"),
)
_FUNCTIONS = {
    "ended_sessions(since timestamptz)": (
        "TABLE (id text, expires double precision, looked_at timestamptz)",
        """
        SELECT ended.id, extract(epoch FROM ended.expires_at)::double precision, now()
        FROM (SELECT) AS look LEFT JOIN sessions AS ended
        ON ended.ended_at > CASE WHEN since IS NULL THEN '-infinity' ELSE since - interval '30 seconds' END
            AND ended.expires_at > now() - interval '1 hour'
        """,
    ),
    "sweep_sessions(most integer)": (
        "void",
        """
        DELETE FROM sessions WHERE (user_id, id) IN (
            SELECT user_id, id FROM sessions WHERE expires_at < now() - interval '1 hour' LIMIT most
        )
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
    op.execute("DROP TABLE ended_sessions")
