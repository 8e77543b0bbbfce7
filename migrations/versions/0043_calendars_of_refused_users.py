"""Serve no calendar of users whom their identity provider refuses."""

from alembic import op

from migrations.database import create_function

revision = "0043"
down_revision = "0042"


def upgrade() -> None:
    op.execute("DROP FUNCTION user_of_calendar(bytea)")
    create_function(
        op.get_bind().connection.driver_connection,
        "user_of_calendar(hash bytea)",
        "TABLE (user_id text)",
        """
        SELECT profiles.user_id FROM profiles WHERE calendar_hash = hash AND NOT EXISTS (
            SELECT FROM accounts
            WHERE accounts.user_id = profiles.user_id AND coalesce(disabled_at, provider_refused_at) IS NOT NULL
        )
        """,
    )
