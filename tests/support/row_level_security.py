"""Statements of a service whose own conditions are wrong: what PostgreSQL lets them reach of another user's rows."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import psycopg
from psycopg import errors
from psycopg.sql import SQL, Identifier

from tests.logins import as_admin, as_service

Rows = dict[str, list[Any]]
STATEMENTS = ("SELECT 1 FROM {} {}", "UPDATE {} SET user_id = user_id {}", "DELETE FROM {} {}")
WRITTEN = """
    SELECT column_name FROM information_schema.columns
    WHERE table_schema = 'public' AND table_name = %s AND is_generated = 'NEVER' ORDER BY ordinal_position
"""
TABLES = """
    SELECT table_name FROM information_schema.columns
    WHERE table_schema = 'public' AND column_name = 'user_id' ORDER BY 1
"""
UNPROTECTED = """
    SELECT relname FROM pg_class WHERE relnamespace = 'public'::regnamespace
    AND relkind IN ('r', 'p')
    AND relname <> 'alembic_version' AND NOT (relrowsecurity AND relforcerowsecurity)
"""
KEYS_ACROSS_USERS = """
    SELECT conrelid::regclass::text, conname FROM pg_constraint
    JOIN pg_attribute a ON a.attrelid = conrelid AND a.attnum = conkey[1]
    WHERE connamespace = 'public'::regnamespace
    AND contype IN ('p', 'f', 'u') AND a.attname <> 'user_id'
    AND EXISTS (SELECT FROM pg_attribute u WHERE u.attrelid = conrelid AND u.attname = 'user_id')
"""
OPEN_FUNCTIONS = """
    SELECT proname FROM pg_proc WHERE pronamespace = 'public'::regnamespace AND prosecdef AND (
        proowner <> 'todo_owner'::regrole OR has_function_privilege('public', oid, 'EXECUTE')
        OR coalesce(proconfig::text, '') NOT LIKE
            '%search_path=pg_catalog, public, pg_temp%'
    )
"""


class Database:
    """The rows of a stack's users, as a superuser sees them and as the services' login reaches them."""

    def __init__(self, database_url: str) -> None:
        self._admin = psycopg.connect(as_admin(database_url), autocommit=True)
        self._service_url = as_service(database_url)
        self.tables = [name for (name,) in self._admin.execute(TABLES).fetchall()]

    def close(self) -> None:
        self._admin.close()

    def rows_of(self, user: str) -> Rows:
        statement = "SELECT to_jsonb(t)::text FROM {} t WHERE user_id = %s ORDER BY 1"
        return {
            table: self._admin.execute(SQL(statement).format(Identifier(table)), [user]).fetchall()
            for table in self.tables
        }

    @contextmanager
    def as_service(self, *statements: str) -> Iterator[psycopg.Connection[Any]]:
        with psycopg.connect(self._service_url, autocommit=True) as connection:
            for statement in statements:
                connection.execute(statement.encode())
            yield connection

    def reached_by(self, service: psycopg.Connection[Any], user: str) -> list[tuple[str, str]]:
        """(statement, table) of each that finds or changes a row of the user."""
        found: list[tuple[str, str]] = []
        for table in self.tables:
            for statement in STATEMENTS:
                try:
                    where = SQL("WHERE user_id = {}").format(user)
                    cursor = service.execute(SQL(statement).format(Identifier(table), where))
                except errors.InsufficientPrivilege:
                    continue
                if cursor.rowcount:
                    found.append((statement, table))
        return found

    def seen_without_condition(self, service: psycopg.Connection[Any]) -> dict[str, int]:
        """How many rows of each table a statement reads that forgets to name the user."""
        return {
            table: service.execute(SQL("SELECT user_id FROM {}").format(Identifier(table))).rowcount
            for table in self.tables
        }

    def written_by(self, service: psycopg.Connection[Any], user: str) -> list[str]:
        """Tables in which a copy of a row of the user can be written in that user's name."""
        written: list[str] = []
        for table, rows in self.rows_of(user).items():
            columns = [Identifier(name) for (name,) in self._admin.execute(WRITTEN, [table]).fetchall()]
            names = SQL(", ").join(columns)
            statement = SQL(
                "INSERT INTO {0} ({1}) OVERRIDING SYSTEM VALUE SELECT {1} FROM jsonb_populate_record(NULL::{0}, %s)"
            ).format(Identifier(table), names)
            try:
                service.execute(statement, [rows[0][0]])
            except errors.InsufficientPrivilege:
                continue
            except psycopg.Error as error:
                written.append(f"{table}: {error}")
            else:
                written.append(table)
        return written

    def rejected(self, service: psycopg.Connection[Any], statement: str) -> bool:
        """Whether the login lacks the right for a statement."""
        try:
            service.execute(statement.encode())
        except errors.InsufficientPrivilege:
            return True
        return False

    def violations(self) -> dict[str, Sequence[Any]]:
        """What of the schema would let one user reach another's rows."""
        statements = {
            "tables without row-level security": UNPROTECTED,
            "keys that do not begin with the user": KEYS_ACROSS_USERS,
            "functions that everybody may run as their owner": OPEN_FUNCTIONS,
        }
        return {name: self._admin.execute(statement.encode()).fetchall() for name, statement in statements.items()}

    def seen_by_owner(self) -> list[str]:
        """Tables of which the owner sees rows without asking for all users by name."""
        self._admin.execute("SET SESSION AUTHORIZATION todo_owner")
        try:
            statement = "SELECT FROM {} LIMIT 1"
            return [
                table for table in self.tables if self._admin.execute(SQL(statement).format(Identifier(table))).rowcount
            ]
        finally:
            self._admin.execute("RESET SESSION AUTHORIZATION")
