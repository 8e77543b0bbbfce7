"""Tries statements of a service without correct conditions, which row-level security has to stop."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import psycopg
from psycopg import errors
from psycopg.sql import SQL, Identifier

from tests.logins import as_admin, as_service

Rows = dict[str, list[Any]]
STATEMENTS = ("SELECT 1 FROM {} {}", "UPDATE {} SET user_id = user_id {}", "DELETE FROM {} {}")
WRITABLE_COLUMNS = """
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


class RowAccessProbe:
    """Reads all rows as a superuser, and tries what the services' login can read and write."""

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

    def find_reachable_rows(self, service: psycopg.Connection[Any], user: str) -> list[tuple[str, str]]:
        """Returns statement and table of each statement that finds or changes a row of the user."""
        reached: list[tuple[str, str]] = []
        for table in self.tables:
            for statement in STATEMENTS:
                try:
                    where = SQL("WHERE user_id = {}").format(user)
                    cursor = service.execute(SQL(statement).format(Identifier(table), where))
                except errors.InsufficientPrivilege:
                    continue
                if cursor.rowcount:
                    reached.append((statement, table))
        return reached

    def count_visible_rows(self, service: psycopg.Connection[Any]) -> dict[str, int]:
        """Returns for each table the number of rows that a statement without a condition on the user reads."""
        return {
            table: service.execute(SQL("SELECT user_id FROM {}").format(Identifier(table))).rowcount
            for table in self.tables
        }

    def find_writable_tables(self, service: psycopg.Connection[Any], user: str) -> list[str]:
        """Returns the tables into which a copy of a row of the user can be inserted."""
        writable: list[str] = []
        for table, rows in self.rows_of(user).items():
            columns = [Identifier(name) for (name,) in self._admin.execute(WRITABLE_COLUMNS, [table]).fetchall()]
            names = SQL(", ").join(columns)
            statement = SQL(
                "INSERT INTO {0} ({1}) OVERRIDING SYSTEM VALUE SELECT {1} FROM jsonb_populate_record(NULL::{0}, %s)"
            ).format(Identifier(table), names)
            try:
                service.execute(statement, [rows[0][0]])
            except errors.InsufficientPrivilege:
                continue
            except psycopg.Error as error:
                writable.append(f"{table}: {error}")
            else:
                writable.append(table)
        return writable

    def is_rejected(self, service: psycopg.Connection[Any], statement: str) -> bool:
        """Returns whether the login lacks the privilege for a statement."""
        try:
            service.execute(statement.encode())
        except errors.InsufficientPrivilege:
            return True
        return False

    def find_violations(self) -> dict[str, Sequence[Any]]:
        """Returns what in the schema would let a user reach rows of another user."""
        statements = {
            "tables without row-level security": UNPROTECTED,
            "keys that do not start with the user": KEYS_ACROSS_USERS,
            "functions that everybody may run as their owner": OPEN_FUNCTIONS,
        }
        return {name: self._admin.execute(statement.encode()).fetchall() for name, statement in statements.items()}

    def find_tables_visible_to_owner(self) -> list[str]:
        """Returns the tables of which the owner reads rows without asking for all users."""
        self._admin.execute("SET SESSION AUTHORIZATION todo_owner")
        try:
            statement = "SELECT FROM {} LIMIT 1"
            return [
                table for table in self.tables if self._admin.execute(SQL(statement).format(Identifier(table))).rowcount
            ]
        finally:
            self._admin.execute("RESET SESSION AUTHORIZATION")
