import asyncio
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from typing import Any, LiteralString

import psycopg
from psycopg.rows import DictRow, dict_row

from common.database.transactions import CONNECTION_OPTIONS, DatabaseUnavailable

_ANSWER_SECONDS = 1.5
REVISION = "0022"  # the newest in migrations/versions; a test holds them equal

_AWAY = "The database cannot be reached: check DATABASE_URL and that PostgreSQL is running."
_NO_ROLE = (
    "The user of DATABASE_URL cannot use the role todo_app, which keeps the users' rows apart. As an administrator of "
    "the database run CREATE ROLE todo_app if it is missing, GRANT todo_app TO that user, then ./todo migrate."
)
_ROLE_BYPASSES = (
    "The role todo_app bypasses row-level security. As an administrator of the database run "
    "ALTER ROLE todo_app NOSUPERUSER NOBYPASSRLS."
)
_TABLE_OPEN = (
    "Row-level security does not keep the users' rows apart in the table {table}. Make sure that todo_app does not own "
    "it, run ALTER TABLE {table} ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY, and remove every policy for "
    "todo_app that ./todo migrate did not create."
)
_LOGIN_ABOVE = (
    "The user of DATABASE_URL is a superuser or bypasses row-level security, so users could see each other's "
    "rows. Run common/database/roles.sql in this database and let the services log in as todo_service; docs/data.md "
    "says how."
)
_LOGIN_OWNS = (
    "The services log in as the owner of the tables, so row-level security protects less. If you can, run "
    "common/database/roles.sql in this database and let them log in as todo_service; docs/data.md says how."
)
_LOGIN_UNSET = (
    "The services' login lacks some settings. As the user of DATABASE_URL run ALTER ROLE CURRENT_USER SET "
    "enable_bitmapscan = off, and ALTER ROLE CURRENT_USER SET statement_timeout = '10s'."
)
_NOT_OWNER = (
    "This command needs the login that owns the tables, because it reads the data of all users. "
    "Set MIGRATION_DATABASE_URL to that login's address."
)

_AS_LOGIN = "SELECT set_config('todo.all_people', 'on', true)"
_SCHEMA = "SELECT relnamespace AS oid FROM pg_class WHERE oid = to_regclass('alembic_version')"
_BYPASSES = "SELECT rolsuper OR rolbypassrls AS bypasses FROM pg_roles WHERE rolname = current_user"
# What the login may become counts as what it is.
_LOGIN = """
    SELECT
        EXISTS (
            SELECT FROM pg_roles
            WHERE (rolsuper OR rolbypassrls) AND rolname <> 'todo_app' AND pg_has_role(session_user, oid, 'MEMBER')
        ) AS above,
        EXISTS (
            SELECT FROM pg_class
            WHERE oid = to_regclass('alembic_version') AND pg_has_role(session_user, relowner, 'MEMBER')
        ) AS owns,
        current_setting('enable_bitmapscan') = 'on' OR current_setting('statement_timeout') = '0' AS unset
"""
# Asked as todo_app: PostgreSQL itself says where security is active for it. One policy that does not ask for the
# transaction's user would open a table again, because it is enough that one policy allows. What holds no user's
# rows is read by all, and written by the owner alone.
_OPEN_TABLE = """
    SELECT relname FROM pg_class
    WHERE relnamespace = %(schema)s
    AND relkind IN ('r', 'p') AND relname <> 'alembic_version'
    AND (has_table_privilege(oid, 'INSERT, UPDATE, DELETE')
        OR relname <> 'approved_tools' AND has_table_privilege(oid, 'SELECT'))
    AND NOT (row_security_active(oid) AND relforcerowsecurity AND relowner <> 'todo_app'::regrole AND coalesce((
        SELECT bool_and(coalesce(qual, with_check, '') LIKE '%%todo.user_id%%' AND
                        coalesce(with_check, qual, '') LIKE '%%todo.user_id%%')
        FROM pg_policies
        WHERE schemaname = relnamespace::regnamespace::text AND tablename = relname AND permissive = 'PERMISSIVE'
        AND roles && '{public, todo_app}'
    ), false))
    ORDER BY relname LIMIT 1
"""


@dataclass(frozen=True)
class Finding:
    """What a service is told of its database, each in a sentence that says what to do."""

    problem: str | None = None
    """Why it cannot work."""
    exposed: bool = False
    """Whether that is because one user could reach another's rows."""
    warning: str | None = None
    """What it works with, and should not have to."""


Connecting = AbstractAsyncContextManager[psycopg.AsyncConnection[Any]]


async def look(connecting: Connecting, *, within_seconds: float | None = _ANSWER_SECONDS) -> Finding:
    """Whether the services can work on this database and it keeps users apart, by a connection in autocommit."""
    try:
        async with asyncio.timeout(within_seconds), connecting as connection, connection.transaction():
            return await _look(connection)
    except (psycopg.Error, DatabaseUnavailable, OSError):
        return Finding(_AWAY)


async def look_at(database_url: str) -> Finding:
    """The same of a database that nobody is connected to yet, however long it takes to answer."""
    return await look(_connected(database_url), within_seconds=None)


async def problem_for_owner(database_url: str) -> str | None:
    """Why a command cannot work across users on this database, in one sentence, or None when it can."""
    try:
        async with _connected(database_url) as connection, connection.transaction():
            await connection.execute(_AS_LOGIN)
            if await _row(connection, _SCHEMA) is None:
                return _other_revision(None)
            login = await _row(connection, _LOGIN)
            if login is None or not login["owns"]:
                return _NOT_OWNER
            return await _not_migrated(connection)
    except (psycopg.Error, OSError):
        return _AWAY


@asynccontextmanager
async def _connected(url: str) -> AsyncIterator[psycopg.AsyncConnection[Any]]:
    options = CONNECTION_OPTIONS | {"connect_timeout": 5, "prepare_threshold": None}
    async with await psycopg.AsyncConnection.connect(url, **options) as connection:
        yield connection


async def _row(connection: psycopg.AsyncConnection[Any], query: LiteralString, **values: Any) -> DictRow | None:
    return await (await connection.cursor(row_factory=dict_row).execute(query, values or None)).fetchone()


async def _look(connection: psycopg.AsyncConnection[Any]) -> Finding:
    await connection.execute(_AS_LOGIN)
    login = await _row(connection, _LOGIN)
    assert login is not None
    if login["above"]:
        return Finding(_LOGIN_ABOVE, exposed=True)
    if (schema := await _row(connection, _SCHEMA)) is None:
        return Finding(_other_revision(None))
    try:
        await connection.execute("SET LOCAL ROLE todo_app")
    except (psycopg.ProgrammingError, psycopg.DataError):
        return Finding(_NO_ROLE, exposed=True)
    if sentence := await _not_migrated(connection):
        return Finding(sentence)
    if (role := await _row(connection, _BYPASSES)) is not None and role["bypasses"]:
        return Finding(_ROLE_BYPASSES, exposed=True)
    if (table := await _row(connection, _OPEN_TABLE, schema=schema["oid"])) is not None:
        return Finding(_TABLE_OPEN.format(table=table["relname"]), exposed=True)
    hints = {_LOGIN_OWNS: login["owns"], _LOGIN_UNSET: login["unset"]}
    return Finding(warning=" ".join(sentence for sentence, holds in hints.items() if holds) or None)


async def _not_migrated(connection: psycopg.AsyncConnection[Any]) -> str | None:
    try:
        found = await _row(connection, "SELECT version_num FROM alembic_version")
    except psycopg.ProgrammingError:  # until revision 0005 the owner alone could ask
        return _other_revision("older than 0005")
    return _other_revision(found["version_num"] if found else None)


def _other_revision(found: str | None) -> str | None:
    if found is None:
        return "The database is not migrated yet: run ./todo migrate."
    if found == REVISION:
        return None
    if found.isdecimal() and found > REVISION:
        return f"The database is at revision {found}, newer than this program's {REVISION}: update the program."
    return f"The database is at revision {found}, this program needs {REVISION}: run ./todo migrate."
