"""How a table keeps people apart, for the migrations that make one."""

from alembic import op


def keep_apart(table: str) -> None:
    """The services see one person's rows of it; the owner sees all, only in transactions that say so."""
    op.execute(f"GRANT SELECT, INSERT, UPDATE, DELETE ON {table} TO todo_app")
    op.execute(f"ALTER TABLE {table} ENABLE ROW LEVEL SECURITY")
    # The sub-select is evaluated once per statement, not once per row; an empty name is nobody's.
    op.execute(f"""
        CREATE POLICY owner_only ON {table} TO todo_app
        USING (user_id = (SELECT nullif(current_setting('todo.user_id', true), '')))
    """)
    # The owner is kept to policies, too: this one is true where the transaction, or a function's own clause, says so.
    op.execute(f"ALTER TABLE {table} FORCE ROW LEVEL SECURITY")
    op.execute(f"""
        CREATE POLICY all_people ON {table} TO CURRENT_USER
        USING ((SELECT current_setting('todo.all_people', true)) = 'on')
    """)
