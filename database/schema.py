from sqlalchemy import text
from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeout
from sqlalchemy.ext.asyncio import AsyncEngine

REVISION = "0002"  # the newest in migrations/versions; a test holds them equal


async def problem(engine: AsyncEngine) -> str | None:
    """Why the services cannot work on this database, in one sentence, or None when they can."""
    try:
        async with engine.connect() as connection:
            if await connection.scalar(text("SELECT to_regclass('alembic_version')")) is None:
                return "The database is not migrated yet: run ./todo migrate."
            found = await connection.scalar(text("SELECT version_num FROM alembic_version"))
    except (DBAPIError, PoolTimeout, OSError):
        return "The database cannot be reached: check DATABASE_URL and that PostgreSQL is running."
    if found is None or found < REVISION:
        return f"The database is at revision {found}, this program needs {REVISION}: run ./todo migrate."
    if found > REVISION:
        return f"The database is at revision {found}, newer than this program's {REVISION}: update the program."
    return None
