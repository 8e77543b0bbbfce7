"""A person may have the address of a calendar, of which the hash of its secret is kept."""

from alembic import op

from migrations.functions import create, drop

revision = "0012"
down_revision = "0011"
branch_labels = None
depends_on = None

FINDING = {
    "person_of_calendar(hash bytea)": (
        "TABLE (user_id text)",
        "SELECT profiles.user_id FROM profiles WHERE calendar_hash = hash",
    ),
}


def upgrade() -> None:
    op.execute("""
        ALTER TABLE profiles ADD COLUMN calendar_hash bytea,
            ADD CONSTRAINT profiles_calendar_hash CHECK (octet_length(calendar_hash) = 32)
    """)
    op.execute("CREATE UNIQUE INDEX profiles_by_calendar ON profiles (calendar_hash)")
    create(FINDING)


def downgrade() -> None:
    drop(FINDING)
    op.execute("ALTER TABLE profiles DROP COLUMN calendar_hash")
