"""What the services ask a database before they work on it."""

from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict
from sqlalchemy.ext.asyncio import AsyncEngine

from service.database import create_engine, schema
from tests.logins import as_admin, as_owner

NO_ROLE = "The role todo_app, which keeps people's rows apart, cannot be taken: "
BYPASSES = "The role todo_app bypasses row-level security: "
ABOVE = "The user of DATABASE_URL is a superuser or bypasses row-level security, "
OWNS = "The services log in as the owner of the tables, "
UNSET = "The services' login lacks its settings: "
OPEN = "Row-level security does not keep people's rows apart in the table {}: "


@pytest.fixture
async def engine(fresh_database_url: str) -> AsyncIterator[AsyncEngine]:
    engine = create_engine(fresh_database_url)
    yield engine
    await engine.dispose()


@pytest.fixture
def admin(fresh_database_url: str) -> Iterator[psycopg.Connection]:
    with psycopg.connect(as_admin(fresh_database_url), autocommit=True) as connection:
        yield connection


async def found(engine: AsyncEngine) -> str | None:
    """Why the services must not work on it."""
    finding = await schema.look(engine)
    assert finding.exposed == (finding.problem is not None)
    assert finding.warning is None
    return finding.problem


async def look_as(url: str) -> schema.Finding:
    engine = create_engine(url)
    try:
        return await schema.look(engine)
    finally:
        await engine.dispose()


async def test_a_migrated_database_is_fit(engine: AsyncEngine) -> None:
    assert await found(engine) is None


@pytest.mark.parametrize(
    ("statement", "table"),
    [
        ("ALTER TABLE tasks DISABLE ROW LEVEL SECURITY", "tasks"),
        ("ALTER TABLE messages DISABLE ROW LEVEL SECURITY", "messages"),
        ("ALTER TABLE people NO FORCE ROW LEVEL SECURITY", "people"),
        ("DROP POLICY owner_only ON runs", "runs"),
        ("ALTER TABLE conversations OWNER TO todo_app", "conversations"),
        ("CREATE POLICY p ON task_changes USING (true)", "task_changes"),
        ("CREATE POLICY p ON tasks FOR SELECT TO todo_app USING (status = 'pending')", "tasks"),
        ("CREATE POLICY p ON tasks FOR INSERT TO todo_app WITH CHECK (true)", "tasks"),
        ("CREATE TABLE notes (user_id text); GRANT SELECT ON notes TO todo_app", "notes"),
        ("CREATE TABLE notes (user_id text); GRANT DELETE ON notes TO PUBLIC", "notes"),
    ],
)
async def test_a_table_in_which_people_are_not_kept_apart(
    engine: AsyncEngine, admin: psycopg.Connection, statement: str, table: str
) -> None:
    admin.execute(statement.encode())
    sentence = await found(engine)
    assert sentence is not None
    assert sentence.startswith(OPEN.format(table))


@pytest.mark.parametrize(
    "statement",
    [
        "CREATE TABLE of_another_program (user_id text)",
        "CREATE POLICY p ON tasks AS RESTRICTIVE TO todo_app USING (true)",
        "CREATE POLICY p ON tasks TO pg_monitor USING (true)",
    ],
)
async def test_what_opens_nothing_is_no_problem(engine: AsyncEngine, admin: psycopg.Connection, statement: str) -> None:
    admin.execute(statement.encode())
    assert await found(engine) is None


@pytest.mark.parametrize("power", ["SUPERUSER", "BYPASSRLS"])
async def test_a_role_that_is_above_row_level_security(
    engine: AsyncEngine, admin: psycopg.Connection, power: str
) -> None:
    admin.execute(f"ALTER ROLE todo_app {power}".encode())
    try:
        sentence = await found(engine)
    finally:
        admin.execute(f"ALTER ROLE todo_app NO{power}".encode())
    assert sentence is not None
    assert sentence.startswith(BYPASSES)
    assert await found(engine) is None


@contextmanager
def stranger(url: str, admin: psycopg.Connection, *statements: str) -> Iterator[str]:
    """The address of a login of its own, made with these statements."""
    name = "todo_test_stranger"
    admin.execute(f"DROP ROLE IF EXISTS {name}; CREATE ROLE {name} LOGIN PASSWORD 'stranger'".encode())
    for statement in statements:
        admin.execute(statement.format(name).encode())
    given = conninfo_to_dict(url)
    try:
        yield f"postgresql://{name}:stranger@/{given['dbname']}?host={given['host']}&port={given.get('port', 5432)}"
    finally:
        admin.execute(f"REASSIGN OWNED BY {name} TO todo_owner; DROP OWNED BY {name}; DROP ROLE {name}".encode())


async def test_a_user_who_may_not_take_the_role(fresh_database_url: str, admin: psycopg.Connection) -> None:
    with stranger(fresh_database_url, admin) as url:
        finding = await look_as(url)
    assert finding.exposed
    assert (finding.problem or "").startswith(NO_ROLE)


async def test_a_superuser_is_refused_on_any_database(fresh_database_url: str, empty_database_url: str) -> None:
    for url in (fresh_database_url, empty_database_url):
        finding = await look_as(as_admin(url))
        assert finding.exposed
        assert (finding.problem or "").startswith(ABOVE)
        assert "service/database/roles.sql" in (finding.problem or "")


@pytest.mark.parametrize(
    "statements",
    [
        ["ALTER ROLE {0} BYPASSRLS"],
        ["DROP ROLE IF EXISTS todo_test_above; CREATE ROLE todo_test_above BYPASSRLS", "GRANT todo_test_above TO {0}"],
    ],
    ids=["itself", "what it may become"],
)
async def test_a_login_above_row_level_security_is_refused(
    fresh_database_url: str, admin: psycopg.Connection, statements: list[str]
) -> None:
    with stranger(fresh_database_url, admin, "GRANT todo_app TO {0}", *statements) as url:
        finding = await look_as(url)
    admin.execute("DROP ROLE IF EXISTS todo_test_above")
    assert finding.exposed
    assert (finding.problem or "").startswith(ABOVE)


async def test_the_owner_is_served_with_a_warning(fresh_database_url: str, admin: psycopg.Connection) -> None:
    finding = await look_as(as_owner(fresh_database_url))
    assert finding.problem is None
    assert (finding.warning or "").startswith(OWNS)
    assert UNSET in (finding.warning or "")
    assert "postgresql://" not in (finding.warning or "")


async def test_another_login_is_told_of_the_settings_it_lacks(
    fresh_database_url: str, admin: psycopg.Connection
) -> None:
    with stranger(fresh_database_url, admin, "GRANT todo_app TO {0}") as url:
        assert (await look_as(url)).warning == schema._LOGIN_UNSET
        with psycopg.connect(url, autocommit=True) as itself:
            itself.execute("ALTER ROLE CURRENT_USER SET enable_bitmapscan = off")
            itself.execute("ALTER ROLE CURRENT_USER SET statement_timeout = '10s'")
        assert await look_as(url) == schema.Finding()


async def test_a_database_that_is_away_or_empty_exposes_nobody(empty_database_url: str) -> None:
    for url, problem in (
        (empty_database_url, "The database is not migrated yet: "),
        ("postgresql://todo@127.0.0.1:1/todo", "The database cannot be reached: "),
    ):
        finding = await look_as(url)
        assert not finding.exposed
        assert (finding.problem or "").startswith(problem)


@pytest.mark.parametrize(
    ("revision", "sentence"),
    [
        ("0001", "The database is at revision 0001, this program needs "),
        ("9999", "The database is at revision 9999, newer than this program's "),
    ],
)
async def test_another_revision(engine: AsyncEngine, admin: psycopg.Connection, revision: str, sentence: str) -> None:
    admin.execute("UPDATE alembic_version SET version_num = %s", (revision,))
    finding = await schema.look(engine)
    assert not finding.exposed
    assert (finding.problem or "").startswith(sentence)


async def test_a_schema_of_an_older_version(engine: AsyncEngine, admin: psycopg.Connection) -> None:
    admin.execute("REVOKE SELECT ON alembic_version FROM todo_app")  # which migration 0005 granted
    finding = await schema.look(engine)
    assert not finding.exposed
    assert (finding.problem or "").endswith("run ./todo migrate.")
