import asyncio

from sqlalchemy import text
from sqlalchemy.exc import DataError, DBAPIError, ProgrammingError
from sqlalchemy.exc import TimeoutError as PoolTimeout
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from database.engine import create_engine
from database.transactions import system_transaction

_ANSWER_SECONDS = 1.5
REVISION = "0004"  # the newest in migrations/versions; a test holds them equal

_NO_ROLE = (
    "The role todo_app, which keeps people's rows apart, cannot be taken: as an administrator of the database run "
    "CREATE ROLE todo_app if it is missing, GRANT todo_app TO the user of DATABASE_URL, then ./todo migrate."
)
_ROLE_BYPASSES = (
    "The role todo_app bypasses row-level security: as an administrator of the database run "
    "ALTER ROLE todo_app NOSUPERUSER NOBYPASSRLS."
)
_TABLE_OPEN = (
    "Row-level security does not keep people's rows apart in the table {table}: give it another owner than todo_app, "
    "run ALTER TABLE {table} ENABLE ROW LEVEL SECURITY, and leave it only the policy of ./todo migrate."
)

_SCHEMA = text("SELECT relnamespace FROM pg_class WHERE oid = to_regclass('alembic_version')")
_BYPASSES = text("SELECT rolsuper OR rolbypassrls FROM pg_roles WHERE rolname = current_user")
# Asked as todo_app: PostgreSQL itself says where security is active for it. One policy that does not ask for the
# transaction's person would open a table again, because it is enough that one policy allows.
_OPEN_TABLE = text("""
    SELECT relname FROM pg_class
    WHERE relnamespace = :schema AND relkind IN ('r', 'p')
    AND has_table_privilege(oid, 'SELECT, INSERT, UPDATE, DELETE')
    AND NOT (row_security_active(oid) AND coalesce((
        SELECT bool_and(coalesce(qual, with_check, '') LIKE '%todo.user_id%' AND
                        coalesce(with_check, qual, '') LIKE '%todo.user_id%')
        FROM pg_policies
        WHERE schemaname = relnamespace::regnamespace::text AND tablename = relname AND permissive = 'PERMISSIVE'
        AND roles && '{public, todo_app}'
    ), false))
    ORDER BY relname LIMIT 1
""")


async def problem(engine: AsyncEngine) -> str | None:
    """Why the services cannot work on this database, in one sentence, or None when they can."""
    try:
        async with asyncio.timeout(_ANSWER_SECONDS), system_transaction(engine) as session:
            connection = await session.connection()
            return await _not_migrated(connection) or await _exposure(connection)
    except (DBAPIError, PoolTimeout, OSError):
        return "The database cannot be reached: check DATABASE_URL and that PostgreSQL is running."


async def exposure(engine: AsyncEngine) -> str | None:
    """Why one person could reach another's rows, in one sentence; None too where the database is away or not ready."""
    try:
        async with system_transaction(engine) as session:
            connection = await session.connection()
            return None if await _not_migrated(connection) else await _exposure(connection)
    except (DBAPIError, PoolTimeout, OSError):
        return None


async def exposure_at(database_url: str) -> str | None:
    """The same of a database that nobody has an engine for yet."""
    engine = create_engine(database_url)
    try:
        return await exposure(engine)
    finally:
        await engine.dispose()


async def _not_migrated(connection: AsyncConnection) -> str | None:
    if await connection.scalar(_SCHEMA) is None:
        return "The database is not migrated yet: run ./todo migrate."
    found = await connection.scalar(text("SELECT version_num FROM alembic_version"))
    if found is None or found < REVISION:
        return f"The database is at revision {found}, this program needs {REVISION}: run ./todo migrate."
    if found > REVISION:
        return f"The database is at revision {found}, newer than this program's {REVISION}: update the program."
    return None


async def _exposure(connection: AsyncConnection) -> str | None:
    schema = await connection.scalar(_SCHEMA)
    try:
        await connection.execute(text("SET LOCAL ROLE todo_app"))
    except (ProgrammingError, DataError):
        return _NO_ROLE
    if await connection.scalar(_BYPASSES):
        return _ROLE_BYPASSES
    if table := await connection.scalar(_OPEN_TABLE, {"schema": schema}):
        return _TABLE_OPEN.format(table=table)
    return None
