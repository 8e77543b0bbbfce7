import asyncio

import psycopg
import pytest
from sqlalchemy import text
from sqlalchemy.exc import DBAPIError, ProgrammingError
from sqlalchemy.ext.asyncio import AsyncEngine
from sqlmodel import select

from mcp_server.models import TaskRow
from service.database import create_engine, login_transaction, schema, system_transaction, transaction
from tests.logins import as_admin, as_owner


async def titles(engine: AsyncEngine, user_id: str) -> list[str]:
    async with transaction(engine, user_id) as session:
        return [row.title for row in (await session.exec(select(TaskRow))).all()]


async def test_success_commits_and_an_exception_rolls_back(engine: AsyncEngine) -> None:
    async with transaction(engine, "alice") as session:
        session.add(TaskRow(user_id="alice", id=1, title="kept"))
    with pytest.raises(ZeroDivisionError):
        async with transaction(engine, "alice") as session:
            session.add(TaskRow(user_id="alice", id=2, title="lost"))
            await session.flush()
            _ = 1 / 0
    assert await titles(engine, "alice") == ["kept"]


@pytest.mark.parametrize("name", ["bob", "o'brien", "x'; DROP TABLE tasks; --", "ünï\\code"])
async def test_a_query_without_a_where_sees_one_persons_rows(engine: AsyncEngine, name: str, database_url: str) -> None:
    for user_id in ("alice", name):
        async with transaction(engine, user_id) as session:
            session.add(TaskRow(user_id=user_id, id=1, title=f"of {user_id}"))
    assert await titles(engine, name) == [f"of {name}"]
    with pytest.raises(ProgrammingError, match="permission denied"):
        async with login_transaction(engine) as session:
            await session.exec(select(TaskRow))
    owner = create_engine(as_owner(database_url))
    async with login_transaction(owner) as session:
        assert len((await session.exec(select(TaskRow))).all()) == 2
    await owner.dispose()


async def test_without_a_name_no_row_is_seen_or_written(engine: AsyncEngine) -> None:
    async with transaction(engine, "alice") as session:
        session.add(TaskRow(user_id="alice", id=1, title="milk"))
    assert await titles(engine, "") == []
    async with system_transaction(engine) as session:
        assert (await session.exec(select(TaskRow))).all() == []
    for user_id in ("", "alice"):
        with pytest.raises(ProgrammingError, match="row-level security"):
            async with system_transaction(engine) as session:
                session.add(TaskRow(user_id=user_id, id=2, title="x"))


async def test_a_row_for_somebody_else_cannot_be_written(engine: AsyncEngine) -> None:
    with pytest.raises(ProgrammingError, match="row-level security"):
        async with transaction(engine, "alice") as session:
            session.add(TaskRow(user_id="bob", id=1, title="x"))


async def test_neither_role_nor_user_outlives_the_transaction(engine: AsyncEngine) -> None:
    async with transaction(engine, "alice"):
        pass
    async with login_transaction(engine) as session:
        connection = await session.connection()
        role, user = (
            await connection.execute(text("SELECT current_user, current_setting('todo.user_id', true)"))
        ).one()
    assert role != "todo_app"
    assert not user


async def test_begin_role_and_user_are_one_statement_message(engine: AsyncEngine) -> None:
    """A connection used many times keeps working: the opening message is never prepared."""
    for _ in range(12):
        assert await titles(engine, "alice") == []


async def test_a_cancelled_query_leaves_the_pool_usable(engine: AsyncEngine) -> None:
    async def slow() -> None:
        async with transaction(engine, "alice") as session:
            await (await session.connection()).execute(text("SELECT pg_sleep(30)"))

    for _ in range(12):
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(slow(), 0.02)
    assert await titles(engine, "alice") == []


async def test_connections_that_died_are_replaced(engine: AsyncEngine, database_url: str) -> None:
    await titles(engine, "alice")
    with psycopg.connect(as_admin(database_url)) as admin:
        ended = admin.execute(
            "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity "  # and wait until it has ended
            "WHERE datname = current_database() AND application_name = 'todo-assistant'"
        ).fetchall()
    assert (True,) in ended
    assert await titles(engine, "alice") == []


async def test_an_error_does_not_show_what_people_wrote(engine: AsyncEngine) -> None:
    with pytest.raises(DBAPIError) as caught:
        async with transaction(engine, "alice") as session:
            session.add(TaskRow(user_id="bob", id=1, title="a secret wish"))
    assert "secret wish" not in str(caught.value)


@pytest.mark.parametrize("scheme", ["postgres", "postgresql"])
async def test_both_url_schemes_work(database_url: str, scheme: str) -> None:
    engine = create_engine(database_url.replace("postgresql", scheme, 1))
    assert await schema.look(engine) == schema.Finding()
    await engine.dispose()
