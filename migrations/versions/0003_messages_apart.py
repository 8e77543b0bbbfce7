"""Widgets and summaries of a conversation are found without reading all of it."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_index(
        "messages_apart",
        "messages",
        ["conversation_id", "kind", "seq"],
        postgresql_where=sa.text("kind IN ('widget', 'summary')"),
    )


def downgrade() -> None:
    op.drop_index("messages_apart", "messages")
