from alembic import context
from sqlalchemy import create_engine, make_url, text

from migrations.database import METADATA, create_database

_LOCK = 0x746F646F  # "todo": one migration at a time in a database


def _run() -> None:
    url = make_url(context.config.attributes["url"].replace("postgres://", "postgresql://", 1))
    engine = create_engine(url.set(drivername="postgresql+psycopg"), connect_args={"prepare_threshold": None})
    # The lock and the settings end with this transaction, because a pooler gives the session to somebody else.
    with engine.begin() as connection:
        # Without the first setting the tables' owner sees no rows.
        connection.execute(text("SET LOCAL todo.all_people = 'on'; SET LOCAL statement_timeout = 0"))
        connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _LOCK})
        connection.execute(text("SET LOCAL lock_timeout = '10s'; SET LOCAL search_path = public"))
        context.configure(connection=connection, target_metadata=METADATA, compare_server_default=True)
        migration = context.get_context()
        if migration.get_current_revision() is None:
            migration.stamp(context.script, "head")
            create_database(connection)
        else:
            with context.begin_transaction():
                context.run_migrations()
    engine.dispose()


_run()
