import time
from contextlib import nullcontext
from urllib.parse import quote

import psycopg
import pytest
from sqlalchemy import Executable, bindparam, func, literal, select, text
from sqlalchemy.dialects.postgresql import JSONB, insert
from sqlalchemy.exc import DBAPIError, IntegrityError, OperationalError
from sqlalchemy.ext.asyncio import AsyncEngine

from backend.conversation.models import Profile
from service.database import create_engine, stepwise
from tests.logins import as_admin

PROFILES = Profile.metadata.tables["profiles"]
ZONES = select(PROFILES.c.time_zone).order_by(PROFILES.c.time_zone)
ADD: Executable = insert(PROFILES).values(user_id=bindparam("owner"), time_zone=bindparam("zone"))
BERLIN = {"owner": "alice", "zone": "Europe/Berlin"}


async def zones(engine: AsyncEngine) -> list[str]:
    async with stepwise(engine, "alice") as session:
        return [row.time_zone for row in await session.execute(ZONES)]


async def test_it_commits(engine: AsyncEngine) -> None:
    async with stepwise(engine, "alice") as session:
        await session.execute(ADD, BERLIN)
        assert await session.scalar(ZONES) == "Europe/Berlin"
    assert await zones(engine) == ["Europe/Berlin"]


async def test_an_exception_rolls_back(engine: AsyncEngine) -> None:
    with pytest.raises(ZeroDivisionError):
        async with stepwise(engine, "alice") as session:
            await session.execute(ADD, BERLIN)
            assert await session.scalar(ZONES) == "Europe/Berlin"
            _ = 1 / 0
    assert await zones(engine) == []


async def test_an_error_is_one_of_sqlalchemy_s_and_rolls_back(engine: AsyncEngine) -> None:
    returning = insert(PROFILES).values(user_id=bindparam("owner")).returning(PROFILES.c.user_id)
    for _ in range(2):
        with pytest.raises(IntegrityError):
            async with stepwise(engine, "alice") as session:
                await session.execute(ADD, BERLIN)
                await session.execute(returning, {"owner": "alice"})
        assert await zones(engine) == []


async def test_nobody_else_s_rows_are_seen(engine: AsyncEngine) -> None:
    async with stepwise(engine, "alice") as session:
        await session.execute(ADD, BERLIN)
    async with stepwise(engine, "bob") as session:
        assert (await session.execute(ZONES)).one_or_none() is None


async def test_values_are_written_as_their_columns_take_them(engine: AsyncEngine) -> None:
    given = {"a": [1, None, "\u00e9"]}
    json = select(bindparam("given", type_=JSONB).label("json"), literal(5).label("number"))
    async with stepwise(engine, "alice") as session:
        row = (await session.execute(json, {"given": given})).one_or_none()
        assert (row.json, row.number) == (given, 5)
        assert await session.scalar(select(func.current_setting(text("'role'")))) == "todo_app"


async def test_what_a_stopped_process_holds_is_let_go(database_url: str) -> None:
    """As `roles.sql` sets it: in a pipeline PostgreSQL takes no time for idle, but knows since 17 how long it takes."""
    with psycopg.connect(as_admin(database_url), autocommit=True) as admin:
        known = admin.info.server_version >= 170000
        setting = "transaction_timeout" if known else "idle_in_transaction_session_timeout"
        options = quote(f"-c {setting}=500ms")
        engine = create_engine(f"{database_url}{'&' if '?' in database_url else '?'}options={options}")
        with pytest.raises(OperationalError) if known else nullcontext():
            async with stepwise(engine, "alice") as session:
                await session.execute(select(func.pg_advisory_xact_lock(77)))
                time.sleep(1.5)  # noqa: ASYNC251 - stopped
                let_go = admin.execute("SELECT pg_try_advisory_xact_lock(77)").fetchone()
        await engine.dispose()
        assert let_go == (known,)


async def test_an_error_of_a_statement_is_not_logged_beside(
    engine: AsyncEngine, caplog: pytest.LogCaptureFixture
) -> None:
    with pytest.raises(DBAPIError):
        async with stepwise(engine, "alice") as session:
            await session.execute(select(literal(1) / literal(0)))
    assert [record.getMessage() for record in caplog.records] == []
