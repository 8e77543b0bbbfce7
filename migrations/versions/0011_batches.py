"""A call belongs to a batch, which is taken back as a whole."""

from alembic import op

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute("ALTER TABLE task_calls ADD COLUMN batch text")
    op.execute("CREATE INDEX task_calls_by_batch ON task_calls (user_id, batch, id) WHERE batch IS NOT NULL")


def downgrade() -> None:
    op.execute("ALTER TABLE task_calls DROP COLUMN batch")
