"""Keep when a task reminds: minutes before its due time, -1 for never, and null for what its user has set."""

from alembic import op

revision = "0036"
down_revision = "0035"

_ADD_COLUMN = """
ALTER TABLE tasks ADD COLUMN remind integer,
    ADD CONSTRAINT tasks_remind CHECK (remind BETWEEN -1 AND 40320)
"""


def upgrade() -> None:
    op.execute(_ADD_COLUMN)
