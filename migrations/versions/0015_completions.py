"""What was completed, the newest first, and how much on a day, is found by an index."""

from alembic import op

revision = "0015"
down_revision = "0014"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute("""
        CREATE INDEX tasks_by_completion
            ON tasks (user_id, (COALESCE(completed_at, '-infinity'::timestamp with time zone)), id)
            WHERE status = 'completed'
    """)


def downgrade() -> None:
    op.execute("DROP INDEX tasks_by_completion")
