"""A run says how long its lease is, and what works across people finds runs that are over: each person's end theirs."""

from alembic import op

from migrations.functions import create, drop

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None

FOUND = "TABLE (id text, conversation_id text, user_id text)"
FINDING = {
    "stale_runs()": (
        FOUND,
        """
        SELECT id, conversation_id, user_id FROM runs
        WHERE status = 'running' AND heartbeat_at < now() - make_interval(secs => lease_seconds)
        """,
    ),
    "runs_of_worker(dead text)": (
        FOUND,
        "SELECT id, conversation_id, user_id FROM runs WHERE status = 'running' AND worker = dead",
    ),
}
ENDING = {
    "end_stale_runs(seconds double precision)": (
        FOUND,
        """
        UPDATE runs SET status = 'ended', outcome = 'interrupted', ended_at = now()
        WHERE status = 'running' AND heartbeat_at < now() - make_interval(secs => seconds)
        RETURNING id, conversation_id, user_id
        """,
    ),
    "end_runs_of_worker(dead text)": (
        FOUND,
        """
        UPDATE runs SET status = 'ended', outcome = 'interrupted', ended_at = now()
        WHERE status = 'running' AND worker = dead
        RETURNING id, conversation_id, user_id
        """,
    ),
}


def upgrade() -> None:
    op.execute("""
        ALTER TABLE runs ADD COLUMN lease_seconds double precision NOT NULL DEFAULT 15,
            ADD CONSTRAINT runs_lease CHECK (lease_seconds > 0 AND lease_seconds <= 3600)
    """)
    drop(ENDING)
    create(FINDING)


def downgrade() -> None:
    drop(FINDING)
    create(ENDING)
    op.execute("ALTER TABLE runs DROP COLUMN lease_seconds")
