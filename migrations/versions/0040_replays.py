"""Store with a model turn what its provider wants back."""

from alembic import op

revision = "0040"
down_revision = "0039"


def upgrade() -> None:
    op.execute("ALTER TABLE model_turns ADD COLUMN replay jsonb")
