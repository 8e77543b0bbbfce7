"""Rename the function that finds a user by the address of a calendar."""

from alembic import op

revision = "0025"
down_revision = "0024"


def upgrade() -> None:
    op.execute("ALTER FUNCTION person_of_calendar(bytea) RENAME TO user_of_calendar")
