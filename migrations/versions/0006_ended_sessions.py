"""Sessions that were signed out of, so that a copy of their cookie opens nothing."""

from alembic import op

from migrations.people import keep_apart

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute("""
        CREATE TABLE ended_sessions (
            user_id text NOT NULL, id text NOT NULL, expires_at timestamptz NOT NULL, PRIMARY KEY (user_id, id)
        )
    """)
    keep_apart("ended_sessions")


def downgrade() -> None:
    op.execute("DROP TABLE ended_sessions")
