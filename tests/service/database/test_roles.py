"""service/database/roles.sql, on a database that is new and on one that the first superuser owned until now."""

import os
import shutil
import subprocess

import psycopg
import pytest
from psycopg.sql import SQL, Identifier, Literal

from cli.database import postgres_binaries
from tests.conftest import ROOT, migrate
from tests.logins import as_admin

SCRIPT = (ROOT / "service/database/roles.sql").read_text()
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
def test_all_goes_to_an_owner_who_is_no_superuser_and_again_changes_nothing(
    empty_database_url: str, migrated: bool
) -> None:
    if migrated:
        migrate(empty_database_url)
    with psycopg.connect(as_admin(empty_database_url), autocommit=True) as connection:
        connection.execute("CREATE FUNCTION of_the_first_superuser() RETURNS int LANGUAGE sql AS 'SELECT 1'")
        for _ in range(2):
            run(empty_database_url)
            assert connection.execute(OTHERS).fetchall() == []
            found = connection.execute(POWERS).fetchall()
            assert found == [("todo_app", False, True), ("todo_owner", True, False), ("todo_service", True, False)]
            may_connect = connection.execute("SELECT has_database_privilege('public', current_database(), 'CONNECT')")
            assert may_connect.fetchone() == (False,)


def test_the_services_login_may_do_nothing_but_become_todo_app(empty_database_url: str) -> None:
    migrate(empty_database_url)
    run(empty_database_url)
    with psycopg.connect(as_admin(empty_database_url), autocommit=True) as connection:
        connection.execute("SET SESSION AUTHORIZATION todo_service")
        for statement in (
            "SELECT FROM tasks",
            "SET ROLE todo_owner",
            "CREATE TABLE mine (id int)",
            "CREATE SCHEMA mine",
        ):
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                connection.execute(statement.encode())
        connection.execute("SET ROLE todo_app")
        assert connection.execute("SELECT count(*) FROM tasks").fetchone() == (0,)


WANTED = {
    "enable_bitmapscan=off",
    "statement_timeout=10s",
    "idle_in_transaction_session_timeout=1min",
    "tcp_keepalives_idle=60",
    "tcp_keepalives_interval=10",
    "tcp_keepalives_count=3",
}
SINCE_17 = {"transaction_timeout=1min"}
SETTINGS = """
    SELECT coalesce(datname, ''), unnest(setconfig) FROM pg_db_role_setting
    LEFT JOIN pg_database ON pg_database.oid = setdatabase
    WHERE setrole = 'todo_service'::regrole AND coalesce(datname, current_database()) = current_database()
"""


def test_what_the_services_login_has_set_on_itself_is_gone_after_the_next_start(empty_database_url: str) -> None:
    run(empty_database_url)
    with psycopg.connect(as_admin(empty_database_url), autocommit=True) as connection:
        name = Identifier(connection.info.dbname)
        connection.execute("SET SESSION AUTHORIZATION todo_service")
        connection.execute("ALTER ROLE todo_service SET search_path = mine")
        connection.execute("ALTER ROLE todo_service SET statement_timeout = 0")
        connection.execute(SQL("ALTER ROLE todo_service IN DATABASE {} SET role = 'todo_app'").format(name))
        connection.execute("RESET SESSION AUTHORIZATION")
        wanted = WANTED | SINCE_17 if connection.info.server_version >= 170000 else WANTED
        assert len(connection.execute(SETTINGS).fetchall()) > len(wanted)
        run(empty_database_url)
        assert set(connection.execute(SETTINGS).fetchall()) == {("", setting) for setting in wanted}


@pytest.mark.parametrize("password", ['it\'s $roles$ \\ and "more"', ""])
def test_passwords_are_set_when_given_and_kept_when_not(empty_database_url: str, password: str) -> None:
    kept = "SELECT rolpassword FROM pg_authid WHERE rolname = 'todo_service'"
    run(empty_database_url)
    with psycopg.connect(as_admin(empty_database_url), autocommit=True) as connection:
        before = connection.execute(kept).fetchone()
        connection.execute(SQL("SET todo.service_password = {}").format(Literal(password)))
        connection.execute(SCRIPT.encode())
        changed = connection.execute(kept).fetchone() != before
        connection.execute("ALTER ROLE todo_service PASSWORD NULL")
    assert changed == bool(password)


def test_psql_runs_it_with_passwords_that_nobody_sees_among_the_processes(empty_database_url: str) -> None:
    psql = shutil.which("psql", path=f"{postgres_binaries.wheel()}{os.pathsep}{os.environ['PATH']}")
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
