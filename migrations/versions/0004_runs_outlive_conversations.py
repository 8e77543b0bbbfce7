"""A run outlives its conversation, without any text, so that what it used still counts."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None

_KEY = "runs_conversation_id_fkey"


def upgrade() -> None:
    op.alter_column("runs", "conversation_id", existing_type=sa.Text(), nullable=True)
    op.drop_constraint(_KEY, "runs", type_="foreignkey")
    op.create_foreign_key(_KEY, "runs", "conversations", ["conversation_id"], ["id"], ondelete="SET NULL")
    op.create_check_constraint("runs_kept_without_text", "runs", "conversation_id IS NOT NULL OR state IS NULL")


def downgrade() -> None:
    op.execute("DELETE FROM runs WHERE conversation_id IS NULL")
    op.drop_constraint("runs_kept_without_text", "runs", type_="check")
    op.drop_constraint(_KEY, "runs", type_="foreignkey")
    op.create_foreign_key(_KEY, "runs", "conversations", ["conversation_id"], ["id"], ondelete="CASCADE")
    op.alter_column("runs", "conversation_id", existing_type=sa.Text(), nullable=False)
