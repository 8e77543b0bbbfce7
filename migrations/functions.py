"""Functions of the tables' owner: what the services do across users."""

from collections.abc import Mapping

from alembic import op


def create_functions(functions: Mapping[str, tuple[str, str]]) -> None:
    """Creates functions that run as the owner, of signature: (returned type, statement).

    `todo.all_people` is set in the body: only a superuser may create a function with a SET clause for a setting that
    PostgreSQL does not know.
    """
    for signature, (returned, statement) in functions.items():
        op.execute(f"""
            CREATE FUNCTION {signature} RETURNS {returned} LANGUAGE sql SECURITY DEFINER
            SET search_path = pg_catalog, public, pg_temp SET enable_bitmapscan = 'on'
            AS $$ SELECT set_config('todo.all_people', 'on', true); {statement} $$
        """)
        op.execute(f"REVOKE ALL ON FUNCTION {signature} FROM PUBLIC")
        op.execute(f"GRANT EXECUTE ON FUNCTION {signature} TO todo_app")
