from alembic import context
from sqlalchemy import create_engine, make_url, text

from migrations.schema import METADATA

_LOCK = 0x746F646F  # "todo": one migration at a time per database, whoever starts it


def _run() -> None:
    url = make_url(context.config.attributes["url"].replace("postgres://", "postgresql://", 1))
    engine = create_engine(url.set(drivername="postgresql+psycopg"))
    with engine.connect() as connection:
        connection.execute(text("SELECT pg_advisory_lock(:key)"), {"key": _LOCK})
        # The tables' owner, too, sees only rows that it asks for; and what is written may take its time.
        connection.execute(text("SET todo.all_people = 'on'; SET statement_timeout = 0"))
        connection.commit()
        try:
            context.configure(connection=connection, target_metadata=METADATA, compare_server_default=True)
            with context.begin_transaction():
                context.run_migrations()
            connection.commit()
        finally:
            connection.rollback()
            connection.execute(text("SELECT pg_advisory_unlock(:key)"), {"key": _LOCK})
    engine.dispose()


_run()
