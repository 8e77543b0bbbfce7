"""List and undo large batches of changes without reading each task before and after."""

from alembic import op

revision = "0029"
down_revision = "0028"

# Rows that exist keep NULL, so that nothing is rewritten.
_ADD_COLUMNS = "ALTER TABLE task_changes ADD COLUMN is_change boolean, ADD COLUMN series bigint"
_CREATE_INDEX = "CREATE INDEX task_changes_of_undo ON task_changes (user_id, undoes) WHERE undoes IS NOT NULL"


def upgrade() -> None:
    op.execute(_CREATE_INDEX)
    op.execute(_ADD_COLUMNS)
