"""Drop what the conversion of version 0.1.0 left behind."""

from alembic import op

revision = "0023"
down_revision = "0022"


def upgrade() -> None:
    op.execute("DROP SCHEMA IF EXISTS v01 CASCADE")
