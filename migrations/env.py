from alembic import context
from sqlalchemy import create_engine, make_url, text

from migrations.schema import METADATA

_LOCK = 0x746F646F  # "todo": one migration at a time per database, whoever starts it


def _run() -> None:
    url = make_url(context.config.attributes["url"].replace("postgres://", "postgresql://", 1))
    engine = create_engine(url.set(drivername="postgresql+psycopg"), connect_args={"prepare_threshold": None})
    # One transaction, whose lock and settings end with it: behind a pooler the session is somebody else's next.
    with engine.begin() as connection:
        # The tables' owner, too, sees only rows that it asks for; and what is written may take its time.
        connection.execute(text("SET LOCAL todo.all_people = 'on'; SET LOCAL statement_timeout = 0"))
        connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _LOCK})
        connection.execute(text("SET LOCAL lock_timeout = '10s'; SET LOCAL search_path = public"))
        context.configure(connection=connection, target_metadata=METADATA, compare_server_default=True)
        with context.begin_transaction():
            context.run_migrations()
    engine.dispose()


_run()
