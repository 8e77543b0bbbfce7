"""Add the key by which push services recognise this server."""

from alembic import op
from sqlalchemy import TIMESTAMP, CheckConstraint, Column, Integer, LargeBinary, MetaData, Table, func

from migrations.database import create_function, protect_table

revision = "0038"
down_revision = "0037"

_TABLE = Table(
    "vapid_keys",
    MetaData(),
    Column("id", Integer, primary_key=True, autoincrement=False),
    Column("private_key", LargeBinary, nullable=False),
    Column("created_at", TIMESTAMP(timezone=True), nullable=False, server_default=func.now()),
    CheckConstraint("id = 1", name="vapid_keys_single"),
    CheckConstraint("octet_length(private_key) = 32", name="vapid_keys_private_key"),
)
_SIGNATURE, _RETURNED = "vapid_key(candidate bytea)", "TABLE (key bytea)"
_STATEMENT = """
        INSERT INTO vapid_keys (id, private_key) VALUES (1, candidate) ON CONFLICT DO NOTHING;
        SELECT private_key FROM vapid_keys
        """


def upgrade() -> None:
    connection = op.get_bind()
    _TABLE.create(connection)
    driver = connection.connection.driver_connection
    protect_table(driver, _TABLE)
    create_function(driver, _SIGNATURE, _RETURNED, _STATEMENT)
