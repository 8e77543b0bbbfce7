"""What agents do for the assistant, step by step, and what a person allows in a conversation from then on."""

from alembic import op

from migrations.people import keep_apart

revision = "0016"
down_revision = "0015"
branch_labels = None
depends_on = None

TABLES = ("agent_steps", "consents")


def upgrade() -> None:
    of_conversation = "FOREIGN KEY (user_id, conversation_id) REFERENCES conversations (user_id, id) ON DELETE CASCADE"
    op.execute(f"""
        CREATE TABLE agent_steps (
            user_id text NOT NULL, run_id text NOT NULL, call_id text NOT NULL, seq integer NOT NULL,
            conversation_id text NOT NULL, agent text NOT NULL, kind text NOT NULL, content jsonb NOT NULL,
            details jsonb, created_at timestamptz NOT NULL DEFAULT now(),
            PRIMARY KEY (user_id, run_id, call_id, seq),
            CONSTRAINT agent_steps_known_kind CHECK (kind IN ('task', 'step', 'output', 'end')),
            CONSTRAINT agent_steps_conversation_fkey {of_conversation}
        )
    """)
    op.execute("CREATE INDEX agent_steps_by_conversation ON agent_steps (user_id, conversation_id)")
    op.execute(f"""
        CREATE TABLE consents (
            user_id text NOT NULL, conversation_id text NOT NULL, tool text NOT NULL,
            created_at timestamptz NOT NULL DEFAULT now(),
            PRIMARY KEY (user_id, conversation_id, tool),
            CONSTRAINT consents_conversation_fkey {of_conversation}
        )
    """)
    for table in TABLES:
        keep_apart(table)
    op.execute("ALTER TABLE runs ADD COLUMN agent_runs integer NOT NULL DEFAULT 0")


def downgrade() -> None:
    op.execute("ALTER TABLE runs DROP COLUMN agent_runs")
    for table in TABLES:
        op.execute(f"DROP TABLE {table}")
