"""What PostgreSQL itself holds: with the services' login, a statement that is wrong reaches nobody else's row."""

from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from tests.logins import as_admin
from tests.stored_tasks import ADD_TASK

ALICES = """
INSERT INTO conversations (id, user_id, status) VALUES ('thr_a', 'alice', '{"type": "active"}');
INSERT INTO messages (conversation_id, id, user_id, role, kind, item)
    VALUES ('thr_a', 'msg_a', 'alice', 'user', 'user_message', '{}');
INSERT INTO runs (id, conversation_id, user_id, status, worker)
    VALUES ('run_a', 'thr_a', 'alice', 'running', 'worker_a');
INSERT INTO approvals (user_id, id, conversation_id, run_id, step_id, position, call, key, text, item_id)
    VALUES ('alice', 'apr_a', 'thr_a', 'run_a', 'step_a', 0, '{}', 'key', 'delete milk', 'wid_a');
INSERT INTO run_inputs (user_id, id, conversation_id, run_id, mode, said)
    VALUES ('alice', 'inp_a', 'thr_a', 'run_a', 'steer', '{}');
INSERT INTO run_events (user_id, run_id, seq, payload) VALUES ('alice', 'run_a', 1, '{}');
INSERT INTO kept_requests (user_id, key, request) VALUES ('alice', 'key_a', '');
INSERT INTO task_calls (user_id, operation, arguments, actor) VALUES ('alice', 'add', '{}', 'mcp');
INSERT INTO task_changes (user_id, call_id, task_id) SELECT user_id, id, 1 FROM task_calls WHERE user_id = 'alice';
INSERT INTO ended_sessions (user_id, id, expires_at) VALUES ('alice', 'session_a', now());
INSERT INTO profiles (user_id, time_zone) VALUES ('alice', 'Europe/Berlin');
INSERT INTO agent_steps (user_id, run_id, call_id, seq, conversation_id, agent, kind, content)
    VALUES ('alice', 'run_a', 'call_a', 1, 'thr_a', 'coder', 'task', '{}');
INSERT INTO consents (user_id, conversation_id, tool) VALUES ('alice', 'thr_a', 'do_with_coder');
"""
TABLES = """
    SELECT relname FROM pg_class
    WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p')
    AND relname NOT IN ('alembic_version', 'approved_tools') ORDER BY 1
"""
Connection = psycopg.Connection[Any]


@pytest.fixture
def admin(database_url: str) -> Iterator[Connection]:
    with psycopg.connect(as_admin(database_url), autocommit=True) as connection:
        yield connection


@pytest.fixture
def tables(admin: Connection) -> list[str]:
    return [name for (name,) in admin.execute(TABLES).fetchall()]


@pytest.fixture
def stored(admin: Connection, tables: list[str]) -> Any:
    """Reads everything that is in the tables, where alice has a row in each."""
    admin.execute(ALICES.encode())
    admin.execute(ADD_TASK.encode(), ("alice", "milk", ""))

    def read() -> dict[str, list[Any]]:
        return {table: admin.execute(f"SELECT * FROM {table} ORDER BY 1, 2".encode()).fetchall() for table in tables}

    assert all(read().values()), "a new table has a row of alice's here"
    return read


@pytest.fixture
def service(database_url: str) -> Iterator[Connection]:
    """A connection as the services have it."""
    with psycopg.connect(database_url, autocommit=True) as connection:
        yield connection


# What may come before a wrong statement; none of it sets alice's name.
ATTEMPTS = {
    "as the login": (),
    "as nobody": ("SET ROLE todo_app",),
    "as bob": ("SET ROLE todo_app", "SET todo.user_id = 'bob'"),
    "after RESET ROLE": ("SET ROLE todo_app", "SET todo.user_id = 'bob'", "RESET ROLE"),
    "with all people": ("SET ROLE todo_app", "SET todo.user_id = 'bob'", "SET todo.all_people = 'on'"),
    "without row security": ("SET ROLE todo_app", "SET todo.user_id = 'bob'", "SET row_security = off"),
}
WRITTEN = "SELECT column_name FROM information_schema.columns WHERE table_name = %s AND is_generated = 'NEVER'"
STATEMENTS = ("SELECT * FROM {}", "UPDATE {} SET user_id = user_id", "DELETE FROM {}", "SELECT * FROM {} FOR UPDATE")


@pytest.mark.parametrize("before", ATTEMPTS.values(), ids=ATTEMPTS)
def test_no_statement_shows_or_touches_anothers_row(
    service: Connection, stored: Any, tables: list[str], before: tuple[str, ...]
) -> None:
    rows = stored()
    for statement in before:
        service.execute(statement.encode())
    for table in tables:
        for statement in STATEMENTS:
            try:
                found = service.execute(statement.format(table).encode())
            except psycopg.errors.InsufficientPrivilege:
                continue
            assert found.rowcount == 0, (statement, table)
    assert stored() == rows


@pytest.mark.parametrize("before", ATTEMPTS.values(), ids=ATTEMPTS)
def test_nothing_can_be_written_in_anothers_name(
    service: Connection, stored: Any, admin: Connection, tables: list[str], before: tuple[str, ...]
) -> None:
    rows = stored()
    copies = {}
    for table in tables:
        (one,) = admin.execute(f"SELECT to_jsonb(t)::text FROM {table} t LIMIT 1".encode()).fetchone() or (None,)
        written = ", ".join(name for (name,) in admin.execute(WRITTEN, [table]).fetchall())
        copies[table] = written, one
    for statement in before:
        service.execute(statement.encode())
    for table, (names, one) in copies.items():
        copy = f"SELECT {names} FROM jsonb_populate_record(NULL::{table}, %s)"
        statement = f"INSERT INTO {table} ({names}) OVERRIDING SYSTEM VALUE {copy}"
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            service.execute(statement.encode(), [one])
    assert stored() == rows


@pytest.mark.parametrize(
    "statement",
    [
        "SET ROLE todo_owner",
        "SET SESSION AUTHORIZATION todo_owner",
        "SET SESSION AUTHORIZATION DEFAULT; SELECT FROM tasks",
        "ALTER TABLE tasks DISABLE ROW LEVEL SECURITY",
        "DROP POLICY owner_only ON tasks",
        "CREATE POLICY mine ON tasks USING (true)",
        "TRUNCATE tasks",
        "CREATE TABLE mine (id int)",
        "ALTER ROLE todo_service BYPASSRLS",
        "CREATE OR REPLACE FUNCTION renew_leases(run_ids text[]) RETURNS int LANGUAGE sql AS 'SELECT 1'",
    ],
)
def test_the_login_cannot_become_more(service: Connection, stored: Any, statement: str) -> None:
    rows = stored()
    for role in ("NONE", "todo_app"):
        service.execute(f"SET ROLE {role}".encode())
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            service.execute(statement.encode())
    assert stored() == rows


@pytest.mark.parametrize(
    "statement",
    [
        "INSERT INTO messages (user_id, conversation_id, id, role, kind, item) "
        "VALUES ('bob', 'thr_a', 'msg_b', 'user', 'user_message', '{}')",
        "INSERT INTO runs (user_id, conversation_id, id, status) VALUES ('bob', 'thr_a', 'run_b', 'running')",
        "INSERT INTO runs (user_id, conversation_id, id, status, outcome) "
        "VALUES ('bob', 'thr_a', 'run_b', 'ended', 'failed')",
    ],
)
def test_nothing_can_be_hung_on_anothers_conversation(service: Connection, stored: Any, statement: str) -> None:
    rows = stored()
    service.execute("SET ROLE todo_app; SET todo.user_id = 'bob'")
    with pytest.raises(psycopg.errors.ForeignKeyViolation):
        service.execute(statement.encode())
    assert stored() == rows


def test_two_people_may_have_the_same_ids(service: Connection, stored: Any) -> None:
    service.execute("SET ROLE todo_app; SET todo.user_id = 'bob'")
    service.execute(ALICES.replace("alice", "bob").encode())
    service.execute(ADD_TASK.encode(), ("bob", "bread", ""))
    assert {len(rows) for rows in stored().values()} == {2}


CALLS = {
    "renew_leases": ("SELECT * FROM renew_leases(ARRAY['run_b', ''])", []),
    "person_of_calendar": ("SELECT * FROM person_of_calendar(sha256('bob'))", []),
    "stale_runs": ("SELECT * FROM stale_runs()", []),
    "runs_of_worker": ("SELECT * FROM runs_of_worker('worker_b')", []),
    "sweep_task_calls": ("SELECT * FROM sweep_task_calls(-1, 1000)", []),
    "publish_events": ("SELECT * FROM publish_events('{bob,bob}', '{run_a,run_b}', '{1,1}', '{{},{}}')", []),
    "sweep_run_events": ("SELECT * FROM sweep_run_events(-1, 1000)", []),
    "sweep_kept_requests": ("SELECT * FROM sweep_kept_requests(-1, 1000)", []),
}


def test_what_works_across_people_tells_ids_and_touches_only_what_is_over(
    service: Connection, admin: Connection, stored: Any
) -> None:
    made = "SELECT proname FROM pg_proc WHERE pronamespace = 'public'::regnamespace AND prosecdef"
    assert {name for (name,) in admin.execute(made).fetchall()} == CALLS.keys(), "each has a call here"
    rows = stored()
    service.execute("SET ROLE todo_app")
    for statement, answer in CALLS.values():
        assert service.execute(statement.encode()).fetchall() == answer
    assert stored() == rows
    admin.execute("UPDATE runs SET heartbeat_at = now() - interval '2 minutes', lease_seconds = 119")
    admin.execute("UPDATE task_calls SET created_at = now() - interval '31 days'")
    runs = stored()["runs"]
    for finding in ("stale_runs()", "runs_of_worker('worker_a')"):
        found = service.execute(f"SELECT * FROM {finding}".encode()).fetchall()
        assert found == [("run_a", "thr_a", "alice")]
    assert stored()["runs"] == runs, "who finds a run has not ended it"
    assert service.execute("SELECT * FROM renew_leases(ARRAY['run_a'])").fetchall() == [("run_a", False, False)]
    assert service.execute("SELECT * FROM stale_runs()").fetchall() == []
    admin.execute("UPDATE profiles SET calendar_hash = sha256('alice')")
    assert service.execute("SELECT * FROM person_of_calendar(sha256('alice'))").fetchall() == [("alice",)]
    assert service.execute("SELECT * FROM person_of_calendar(NULL)").fetchall() == []
    told = "SELECT * FROM publish_events('{alice,bob,alice}', '{run_a,run_a,run_z}', '{2,2,1}', '{1,2,3}')"
    assert service.execute(told.encode()).fetchall() == [], "nobody has marked it as followed"
    admin.execute("UPDATE runs SET followed = true")
    assert service.execute(told.encode()).fetchall() == service.execute(told.encode()).fetchall() == [("run_a",)]
    events = admin.execute("SELECT user_id, run_id, seq, payload FROM run_events ORDER BY seq").fetchall()
    assert events == [("alice", "run_a", 1, {}), ("alice", "run_a", 2, 1)]
    admin.execute("UPDATE runs SET status = 'ended', outcome = 'completed', followed = true, ended_at = now()")
    assert service.execute("SELECT * FROM sweep_run_events(1, 1000)").fetchall() == []
    assert service.execute("SELECT * FROM sweep_run_events(0, 1000)").fetchall() == [("run_a",)]
    assert admin.execute("SELECT 1 FROM run_events").fetchall() == []
    admin.execute("UPDATE kept_requests SET created_at = now() - interval '25 hours', run_id = 'run_a'")
    assert service.execute("SELECT * FROM sweep_kept_requests(24, 1000)").fetchall() == [("run_a",)]
    calls = admin.execute("SELECT id FROM task_calls").fetchall()
    assert service.execute("SELECT * FROM sweep_task_calls(30, 1000)").fetchall() == calls
    assert admin.execute("SELECT 1 FROM task_changes").fetchall() == []


def test_the_functions_are_their_owners_with_a_path_of_their_own_and_not_everybodys(admin: Connection) -> None:
    found = admin.execute("""
        SELECT proname FROM pg_proc
        WHERE pronamespace = 'public'::regnamespace AND prosecdef AND (
            proowner <> 'todo_owner'::regrole OR has_function_privilege('public', oid, 'EXECUTE')
            OR NOT has_function_privilege('todo_app', oid, 'EXECUTE')
            OR coalesce(proconfig::text, '') NOT LIKE '%search_path=pg_catalog, public, pg_temp%'
        )
    """)
    assert found.fetchall() == []


def test_every_key_begins_with_the_person(admin: Connection, tables: list[str]) -> None:
    keys = admin.execute("""
        SELECT conrelid::regclass::text, conname, contype, a.attname, fa.attname
        FROM pg_constraint
        JOIN pg_attribute a ON a.attrelid = conrelid AND a.attnum = conkey[1]
        LEFT JOIN pg_attribute fa ON fa.attrelid = confrelid AND fa.attnum = confkey[1]
        WHERE connamespace = 'public'::regnamespace AND contype IN ('p', 'f', 'u')
        AND conrelid NOT IN ('alembic_version'::regclass, 'approved_tools'::regclass)
    """).fetchall()
    assert {table for table, _, kind, *_ in keys if kind == "p"} == set(tables), "every table has a primary key"
    for table, name, kind, first, referenced in keys:
        assert first == "user_id", (table, name)
        assert kind != "f" or referenced == "user_id", (table, name)
    unique = admin.execute("""
        SELECT indexrelid::regclass::text, attname FROM pg_index
        JOIN pg_attribute ON attrelid = indrelid AND attnum = indkey[0]
        JOIN pg_class ON pg_class.oid = indrelid
        WHERE indisunique AND relnamespace = 'public'::regnamespace
        AND relname NOT IN ('alembic_version', 'approved_tools')
    """).fetchall()
    # The hash of a calendar's secret finds its person; who does not know it cannot take it from anybody.
    assert [name for name, first in unique if first != "user_id"] == ["profiles_by_calendar"]


def test_the_owner_too_is_kept_to_policies(admin: Connection, tables: list[str]) -> None:
    open_tables = admin.execute("""
        SELECT relname FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p')
        AND relname <> 'alembic_version' AND NOT (relrowsecurity AND relforcerowsecurity)
    """)
    assert open_tables.fetchall() == []
    admin.execute("SET SESSION AUTHORIZATION todo_owner")
    for table in tables:
        assert admin.execute(f"SELECT FROM {table}".encode()).rowcount == 0
    admin.execute("RESET SESSION AUTHORIZATION")


def test_what_the_operator_allows_is_read_by_the_services_and_written_by_the_owner(
    service: Connection, admin: Connection
) -> None:
    admin.execute("INSERT INTO approved_tools (server, tool, hash) VALUES ('web', 'fetch', sha256('a'))")
    service.execute("SET ROLE todo_app")
    assert service.execute("SELECT tool FROM approved_tools").fetchall() == [("fetch",)]
    for statement in (
        "INSERT INTO approved_tools (server, tool, hash) VALUES ('web', 'post', sha256('b'))",
        "UPDATE approved_tools SET hash = sha256('b')",
        "DELETE FROM approved_tools",
    ):
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            service.execute(statement.encode())
