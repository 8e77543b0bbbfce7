"""Add what users have allowed OAuth clients."""

from alembic import op
from sqlalchemy import TIMESTAMP, BigInteger, Column, ForeignKeyConstraint, MetaData, Table, Text, func, text

from migrations.database import protect_table

revision = "0034"
down_revision = "0033"

_METADATA = MetaData()
Table(
    "sessions",
    _METADATA,
    Column("user_id", Text, primary_key=True),
    Column("id", Text, primary_key=True),
)
_GRANTS = Table(
    "oauth_grants",
    _METADATA,
    Column("user_id", Text, primary_key=True),
    Column("session_id", Text, primary_key=True),
    Column("address", Text, nullable=False),
    Column("generation", BigInteger, nullable=False, server_default=text("0")),
    Column("refreshed_at", TIMESTAMP(timezone=True), nullable=False, server_default=func.now()),
    ForeignKeyConstraint(
        ["user_id", "session_id"],
        ["sessions.user_id", "sessions.id"],
        ondelete="CASCADE",
        onupdate="CASCADE",
        name="oauth_grants_session",
    ),
)


def upgrade() -> None:
    connection = op.get_bind()
    _GRANTS.create(connection)
    protect_table(connection.connection.driver_connection, _GRANTS)
