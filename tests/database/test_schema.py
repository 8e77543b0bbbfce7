"""What the services ask a database before they work on it."""

from collections.abc import AsyncIterator, Iterator

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict
from sqlalchemy.ext.asyncio import AsyncEngine

from database import create_engine, schema

NO_ROLE = "The role todo_app, which keeps people's rows apart, cannot be taken: "
BYPASSES = "The role todo_app bypasses row-level security: "
OPEN = "Row-level security does not keep people's rows apart in the table {}: "


@pytest.fixture
async def engine(fresh_database_url: str) -> AsyncIterator[AsyncEngine]:
    engine = create_engine(fresh_database_url)
    yield engine
    await engine.dispose()


@pytest.fixture
def admin(fresh_database_url: str) -> Iterator[psycopg.Connection]:
    with psycopg.connect(fresh_database_url, autocommit=True) as connection:
        yield connection


async def found(engine: AsyncEngine) -> str | None:
    """What both questions are answered with."""
    exposure = await schema.exposure(engine)
    assert await schema.problem(engine) == exposure
    return exposure


async def test_a_migrated_database_is_fit(engine: AsyncEngine) -> None:
    assert await found(engine) is None


@pytest.mark.parametrize(
    ("statement", "table"),
    [
        ("ALTER TABLE tasks DISABLE ROW LEVEL SECURITY", "tasks"),
        ("ALTER TABLE messages DISABLE ROW LEVEL SECURITY", "messages"),
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
        "ALTER TABLE tasks FORCE ROW LEVEL SECURITY",
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


async def test_a_user_who_may_not_take_the_role(fresh_database_url: str, admin: psycopg.Connection) -> None:
    stranger = "todo_test_stranger"
    admin.execute(f"DROP ROLE IF EXISTS {stranger}; CREATE ROLE {stranger} LOGIN PASSWORD 'stranger'".encode())
    admin.execute(f"GRANT SELECT ON alembic_version TO {stranger}".encode())
    given = conninfo_to_dict(fresh_database_url)
    engine = create_engine(
        f"postgresql://{stranger}:stranger@/{given['dbname']}?host={given['host']}&port={given.get('port', 5432)}"
    )
    try:
        sentence = await found(engine)
    finally:
        await engine.dispose()
        admin.execute(f"DROP OWNED BY {stranger}; DROP ROLE {stranger}".encode())
    assert sentence is not None
    assert sentence.startswith(NO_ROLE)


async def test_a_database_that_is_away_or_empty_exposes_nobody(empty_database_url: str) -> None:
    for url, problem in (
        (empty_database_url, "The database is not migrated yet: "),
        ("postgresql://todo@127.0.0.1:1/todo", "The database cannot be reached: "),
    ):
        engine = create_engine(url)
        assert await schema.exposure(engine) is None
        assert (await schema.problem(engine) or "").startswith(problem)
        await engine.dispose()


@pytest.mark.parametrize(
    ("revision", "sentence"),
    [
        ("0001", "The database is at revision 0001, this program needs "),
        ("9999", "The database is at revision 9999, newer than this program's "),
    ],
)
async def test_another_revision(engine: AsyncEngine, admin: psycopg.Connection, revision: str, sentence: str) -> None:
    admin.execute("UPDATE alembic_version SET version_num = %s", (revision,))
    assert await schema.exposure(engine) is None
    assert (await schema.problem(engine) or "").startswith(sentence)
