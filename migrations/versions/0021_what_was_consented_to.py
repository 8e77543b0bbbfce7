"""What a card said that a call may reach, by which consent is asked for again where that has changed."""

from alembic import op

revision = "0021"
down_revision = "0020"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute("ALTER TABLE approvals ADD COLUMN reach text")
    op.execute("ALTER TABLE consents ADD COLUMN reach text")


def downgrade() -> None:
    op.execute("ALTER TABLE consents DROP COLUMN reach")
    op.execute("ALTER TABLE approvals DROP COLUMN reach")
