"""Checks whether the services can work on a database, and whether it separates the users' rows."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from typing import Any, LiteralString

import psycopg
from psycopg.rows import DictRow, dict_row

from common.database.transactions import CONNECTION_OPTIONS, DatabaseUnavailable
from common.revision import describe_revision

_TIMEOUT_SECONDS = 1.5

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
# Roles that the login may become count as its own.
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
# Runs as todo_app, so that PostgreSQL says where row security is active for that role. Permissive policies are combined
# by OR, so each of them must check the transaction's user. A table without rows of users may be read by all, but not
# written.
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
class DatabaseCheck:
    """`problem` and `warning` are sentences that say what to do; a service cannot work with a problem."""

    problem: str | None = None
    exposed: bool = False
    """Whether the problem is that one user could reach another's rows."""
    warning: str | None = None


Connection = AbstractAsyncContextManager[psycopg.AsyncConnection[Any]]


async def check_connection(
    connection: Connection, *, timeout_seconds: float | None = _TIMEOUT_SECONDS
) -> DatabaseCheck:
    try:
        async with asyncio.timeout(timeout_seconds), connection as opened, opened.transaction():
            return await _check(opened)
    except (psycopg.Error, DatabaseUnavailable, OSError):
        return DatabaseCheck(_AWAY)


async def check_url(database_url: str) -> DatabaseCheck:
    return await check_connection(_connect(database_url), timeout_seconds=None)


async def find_owner_problem(database_url: str, *, or_service: bool = False) -> str | None:
    """Returns why a command cannot work on the data of all users, as a sentence; with `or_service`, on one user's."""
    try:
        async with _connect(database_url) as connection, connection.transaction():
            await connection.execute(_AS_LOGIN)
            if await _fetch_row(connection, _SCHEMA) is None:
                return describe_revision(None)
            login = await _fetch_row(connection, _LOGIN)
            if login is None or not (login["owns"] or or_service):
                return _NOT_OWNER
            if not login["owns"]:
                await connection.execute("SET LOCAL ROLE todo_app")
            return await _check_revision(connection)
    except (psycopg.Error, OSError):
        return _AWAY


@asynccontextmanager
async def _connect(url: str) -> AsyncIterator[psycopg.AsyncConnection[Any]]:
    options = CONNECTION_OPTIONS | {"connect_timeout": 5, "prepare_threshold": None}
    async with await psycopg.AsyncConnection.connect(url, **options) as connection:
        yield connection


async def _fetch_row(connection: psycopg.AsyncConnection[Any], query: LiteralString, **values: Any) -> DictRow | None:
    return await (await connection.cursor(row_factory=dict_row).execute(query, values or None)).fetchone()


async def _check(connection: psycopg.AsyncConnection[Any]) -> DatabaseCheck:
    await connection.execute(_AS_LOGIN)
    login = await _fetch_row(connection, _LOGIN)
    assert login is not None
    if login["above"]:
        return DatabaseCheck(_LOGIN_ABOVE, exposed=True)
    if (schema := await _fetch_row(connection, _SCHEMA)) is None:
        return DatabaseCheck(describe_revision(None))
    try:
        await connection.execute("SET LOCAL ROLE todo_app")
    except (psycopg.ProgrammingError, psycopg.DataError):
        return DatabaseCheck(_NO_ROLE, exposed=True)
    if sentence := await _check_revision(connection):
        return DatabaseCheck(sentence)
    if (role := await _fetch_row(connection, _BYPASSES)) is not None and role["bypasses"]:
        return DatabaseCheck(_ROLE_BYPASSES, exposed=True)
    if (table := await _fetch_row(connection, _OPEN_TABLE, schema=schema["oid"])) is not None:
        return DatabaseCheck(_TABLE_OPEN.format(table=table["relname"]), exposed=True)
    warnings = {_LOGIN_OWNS: login["owns"], _LOGIN_UNSET: login["unset"]}
    return DatabaseCheck(warning=" ".join(sentence for sentence, applies in warnings.items() if applies) or None)


async def _check_revision(connection: psycopg.AsyncConnection[Any]) -> str | None:
    row = await _fetch_row(connection, "SELECT version_num FROM alembic_version")
    return describe_revision(row["version_num"] if row else None)
