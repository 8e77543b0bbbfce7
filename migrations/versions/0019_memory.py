"""What a person wants remembered: one text each."""

from alembic import op

revision = "0019"
down_revision = "0018"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute("""
        ALTER TABLE profiles ADD COLUMN memory text,
            ADD CONSTRAINT profiles_memory CHECK (octet_length(memory) <= 65536)
    """)


def downgrade() -> None:
    op.execute("ALTER TABLE profiles DROP COLUMN memory")
