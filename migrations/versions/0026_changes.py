"""Let entries hold what a run changed, and texts that were withdrawn."""

from alembic import op

revision = "0026"
down_revision = "0025"


def upgrade() -> None:
    op.drop_constraint("entries_kind", "entries")
    op.create_check_constraint(
        "entries_kind",
        "entries",
        "kind IN ('user_message', 'assistant_message', 'withdrawn', 'reasoning', 'notice', 'changes', 'summary', "
        "'change', 'branch_note', 'command')",
    )
