"""Store with a model turn what its provider wants back."""

from alembic import op

revision = "0036"
down_revision = "0035"


def upgrade() -> None:
    op.execute("ALTER TABLE model_turns ADD COLUMN replay jsonb")
