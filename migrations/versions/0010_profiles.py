"""What is kept of a person beside their conversations: the time zone that their client last named."""

from alembic import op

from migrations.people import keep_apart

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute("CREATE TABLE profiles (user_id text NOT NULL PRIMARY KEY, time_zone text)")
    keep_apart("profiles")


def downgrade() -> None:
    op.execute("DROP TABLE profiles")
