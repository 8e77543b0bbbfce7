"""Row-level security: the role the services take inside a transaction sees one person's rows."""

from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

TABLES = ("tasks", "task_changes", "conversations", "messages", "runs")


def upgrade() -> None:
    # Roles belong to the whole cluster: an administrator may have made it, or another migration be making it now.
    op.execute("""
        DO $$ BEGIN
            IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'todo_app') THEN
                CREATE ROLE todo_app NOLOGIN NOSUPERUSER NOBYPASSRLS;
            END IF;
        EXCEPTION WHEN duplicate_object OR unique_violation THEN NULL;
        END $$
    """)
    # Asked by trying: since PostgreSQL 16 who made the role is its member, but may not take it.
    op.execute("""
        DO $$ BEGIN
            SET LOCAL ROLE todo_app;
            RESET ROLE;
        EXCEPTION WHEN insufficient_privilege THEN GRANT todo_app TO CURRENT_USER;
        END $$
    """)
    for table in TABLES:
        op.execute(f"GRANT SELECT, INSERT, UPDATE, DELETE ON {table} TO todo_app")
        op.execute(f"ALTER TABLE {table} ENABLE ROW LEVEL SECURITY")
        # The sub-select is evaluated once per statement, not once per row.
        op.execute(f"""
            CREATE POLICY owner_only ON {table} TO todo_app
            USING (user_id = (SELECT current_setting('todo.user_id', true)))
        """)


def downgrade() -> None:
    for table in TABLES:
        op.execute(f"DROP POLICY owner_only ON {table}")
        op.execute(f"ALTER TABLE {table} DISABLE ROW LEVEL SECURITY")
        op.execute(f"REVOKE ALL ON {table} FROM todo_app")
