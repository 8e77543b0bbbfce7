from collections.abc import Mapping

from alembic import op


def isolate_users(table: str) -> None:
    """Shows the services the rows of one user, and the owner all rows in transactions that set `todo.all_people`."""
    op.execute(f"GRANT SELECT, INSERT, UPDATE, DELETE ON {table} TO todo_app")
    # The sub-select is evaluated once per statement, not once per row; an empty name matches no user.
    op.execute(f"""
        CREATE POLICY owner_only ON {table} TO todo_app
        USING (user_id = (SELECT nullif(current_setting('todo.user_id', true), '')))
    """)
    protect_from_owner(table)


def protect_from_owner(table: str) -> None:
    op.execute(f"ALTER TABLE {table} ENABLE ROW LEVEL SECURITY")
    op.execute(f"ALTER TABLE {table} FORCE ROW LEVEL SECURITY")
    op.execute(f"""
        CREATE POLICY all_people ON {table} TO CURRENT_USER
        USING ((SELECT current_setting('todo.all_people', true)) = 'on')
    """)


def create_functions(functions: Mapping[str, tuple[str, str]]) -> None:
    """Creates the functions by which the services work across users, of {signature: (returned type, statement)}.

    They run as the owner of the tables. `todo.all_people` is set in the body: only a superuser may create a function
    with a SET clause for a setting that PostgreSQL does not know.
    """
    for signature, (returned, statement) in functions.items():
        op.execute(f"""
            CREATE FUNCTION {signature} RETURNS {returned} LANGUAGE sql SECURITY DEFINER
            SET search_path = pg_catalog, public, pg_temp SET enable_bitmapscan = 'on'
            AS $$ SELECT set_config('todo.all_people', 'on', true); {statement} $$
        """)
        op.execute(f"REVOKE ALL ON FUNCTION {signature} FROM PUBLIC")
        op.execute(f"GRANT EXECUTE ON FUNCTION {signature} TO todo_app")
