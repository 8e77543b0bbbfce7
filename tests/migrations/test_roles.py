"""common/database/roles.sql, on a database that is new and on one that the first superuser owned until now."""

import os
import shutil
import subprocess

import psycopg
import pytest
from psycopg.sql import SQL, Identifier, Literal

from cli.database import postgres_binaries
from tests.conftest import ROOT, migrate
from tests.logins import as_admin

SCRIPT = (ROOT / "common/database/roles.sql").read_text()
OTHERS = """
    SELECT relname FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relowner <> 'todo_owner'::regrole
    UNION SELECT proname FROM pg_proc WHERE pronamespace = 'public'::regnamespace AND proowner <> 'todo_owner'::regrole
    UNION SELECT datname FROM pg_database WHERE datname = current_database() AND datdba <> 'todo_owner'::regrole
    UNION SELECT nspname FROM pg_namespace WHERE nspname = 'public' AND nspowner <> 'todo_owner'::regrole
"""
POWERS = """
    SELECT rolname, rolcanlogin, rolinherit FROM pg_roles WHERE rolname LIKE 'todo\\_%'
    AND NOT (rolsuper OR rolbypassrls OR rolcreaterole OR rolcreatedb OR rolreplication) ORDER BY 1
"""


def run(url: str) -> None:
    with psycopg.connect(as_admin(url), autocommit=True) as connection:
        connection.execute(SCRIPT.encode())


@pytest.mark.parametrize("migrated", [False, True])
def test_owner_is_no_superuser(empty_database_url: str, migrated: bool) -> None:
    if migrated:
        migrate(empty_database_url)
    with psycopg.connect(as_admin(empty_database_url), autocommit=True) as connection:
        connection.execute("CREATE FUNCTION of_the_first_superuser() RETURNS int LANGUAGE sql AS 'SELECT 1'")
        connection.execute("CREATE SCHEMA v01; CREATE TABLE v01.messages ()")  # version 0.2 has left it there
        for _ in range(2):
            run(empty_database_url)
            assert connection.execute(OTHERS).fetchall() == []
            found = connection.execute(POWERS).fetchall()
            assert found == [("todo_app", False, True), ("todo_owner", True, False), ("todo_service", True, False)]
            may_connect = connection.execute("SELECT has_database_privilege('public', current_database(), 'CONNECT')")
            assert may_connect.fetchone() == (False,)
        connection.execute("SET ROLE todo_owner; DROP SCHEMA v01 CASCADE")  # as the migration does


SETTINGS = """
    SELECT coalesce(datname, ''), unnest(setconfig) FROM pg_db_role_setting
    LEFT JOIN pg_database ON pg_database.oid = setdatabase
    WHERE setrole = 'todo_service'::regrole AND coalesce(datname, current_database()) = current_database()
"""


def test_settings_of_the_services_login_are_restored(empty_database_url: str) -> None:
    """A login may change its own settings."""
    run(empty_database_url)
    with psycopg.connect(as_admin(empty_database_url), autocommit=True) as connection:
        before = set(connection.execute(SETTINGS).fetchall())
        assert ("", "statement_timeout=10s") in before
        name = Identifier(connection.info.dbname)
        connection.execute("SET SESSION AUTHORIZATION todo_service")
        connection.execute("ALTER ROLE todo_service SET search_path = mine")
        connection.execute("ALTER ROLE todo_service SET statement_timeout = 0")
        connection.execute(SQL("ALTER ROLE todo_service IN DATABASE {} SET role = 'todo_app'").format(name))
        connection.execute("RESET SESSION AUTHORIZATION")
        run(empty_database_url)
        assert set(connection.execute(SETTINGS).fetchall()) == before


@pytest.mark.parametrize("password", ['it\'s $roles$ \\ and "more"', ""])
def test_passwords(empty_database_url: str, password: str) -> None:
    kept = "SELECT rolpassword FROM pg_authid WHERE rolname = 'todo_service'"
    run(empty_database_url)
    with psycopg.connect(as_admin(empty_database_url), autocommit=True) as connection:
        before = connection.execute(kept).fetchone()
        connection.execute(SQL("SET todo.service_password = {}").format(Literal(password)))
        connection.execute(SCRIPT.encode())
        changed = connection.execute(kept).fetchone() != before
        connection.execute("ALTER ROLE todo_service PASSWORD NULL")
    assert changed == bool(password)


def test_psql(empty_database_url: str) -> None:
    psql = shutil.which("psql", path=f"{postgres_binaries.find_wheel()}{os.pathsep}{os.environ['PATH']}")
    assert psql
    given = "SELECT set_config('todo.service_password', 'from psql', false);\n"
    command = [psql, "--no-psqlrc", "--set=ON_ERROR_STOP=1", "--quiet", as_admin(empty_database_url)]
    done = subprocess.run(command, input=given + SCRIPT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    with psycopg.connect(as_admin(empty_database_url), autocommit=True) as connection:
        password = connection.execute("SELECT rolpassword FROM pg_authid WHERE rolname = 'todo_service'").fetchone()
        connection.execute("ALTER ROLE todo_service PASSWORD NULL")
    assert password
    assert password[0].startswith("SCRAM-SHA-256$")
