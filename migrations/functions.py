"""What the services do across people: functions of the tables' owner, for the migrations that make them."""

from collections.abc import Iterable, Mapping

from alembic import op


def create(functions: Mapping[str, tuple[str, str]]) -> None:
    """By signature, what each returns and its statement, which works as the owner, whoever calls it.

    All people are asked for in the body: only a superuser may make a function with a clause for a setting that
    PostgreSQL does not know.
    """
    schema = op.get_bind().exec_driver_sql("SELECT quote_ident(current_schema())").scalar()
    for signature, (returned, statement) in functions.items():
        op.execute(f"""
            CREATE FUNCTION {signature} RETURNS {returned} LANGUAGE sql SECURITY DEFINER
            SET search_path = pg_catalog, {schema}, pg_temp SET enable_bitmapscan = 'on'
            AS $$ SELECT set_config('todo.all_people', 'on', true); {statement} $$
        """)
        op.execute(f"REVOKE ALL ON FUNCTION {signature} FROM PUBLIC")
        op.execute(f"GRANT EXECUTE ON FUNCTION {signature} TO todo_app")


def drop(signatures: Iterable[str]) -> None:
    for signature in signatures:
        op.execute(f"DROP FUNCTION {signature}")
