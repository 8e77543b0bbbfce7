"""Which tools of other MCP servers the operator allows: the services read it, the owner writes."""

from alembic import op

revision = "0017"
down_revision = "0016"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute("""
        CREATE TABLE approved_tools (
            server text NOT NULL, tool text NOT NULL, hash bytea NOT NULL,
            approved_at timestamptz NOT NULL DEFAULT now(),
            PRIMARY KEY (server, tool),
            CONSTRAINT approved_tools_hash CHECK (octet_length(hash) = 32)
        )
    """)
    op.execute("GRANT SELECT ON approved_tools TO todo_app")
    op.execute("ALTER TABLE approved_tools ENABLE ROW LEVEL SECURITY")
    op.execute("CREATE POLICY readable ON approved_tools FOR SELECT TO todo_app USING (true)")
    op.execute("ALTER TABLE approved_tools FORCE ROW LEVEL SECURITY")
    op.execute("""
        CREATE POLICY all_people ON approved_tools TO CURRENT_USER
        USING ((SELECT current_setting('todo.all_people', true)) = 'on')
    """)


def downgrade() -> None:
    op.execute("DROP TABLE approved_tools")
