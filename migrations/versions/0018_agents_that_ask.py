"""Which agent asks for a call, and which of the assistant's calls it works for."""

from alembic import op

revision = "0018"
down_revision = "0017"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute("""
        ALTER TABLE approvals ADD COLUMN agent text, ADD COLUMN of_call text,
            ADD CONSTRAINT approvals_of_an_agent CHECK ((agent IS NULL) = (of_call IS NULL))
    """)


def downgrade() -> None:
    op.execute("ALTER TABLE approvals DROP COLUMN agent, DROP COLUMN of_call")
