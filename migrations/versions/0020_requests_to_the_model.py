"""What each request to the model took stands on the row that came of it."""

from alembic import op

revision = "0020"
down_revision = "0019"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute("ALTER TABLE messages ADD COLUMN usage jsonb")


def downgrade() -> None:
    op.execute("ALTER TABLE messages DROP COLUMN usage")
