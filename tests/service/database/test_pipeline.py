import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import psycopg
import pytest
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import AsyncEngine

from service.database import Pipeline, Statement, pipelined, transaction
from tests.logins import as_admin

ADD = Statement("INSERT INTO profiles (user_id, time_zone) VALUES (%(owner)s, %(zone)s)")
ZONES = Statement("SELECT time_zone FROM profiles ORDER BY time_zone")
SLOW = Statement("SELECT pg_sleep(30)")
WHICH = Statement("SELECT txid_current() AS id, current_user AS role, current_setting('todo.user_id', true) AS person")


async def add(pipeline: Pipeline, zone: str = "Europe/Berlin") -> None:
    await pipeline.send(ADD, owner="alice", zone=zone)


async def zones(engine: AsyncEngine) -> list[str]:
    async with pipelined(engine, "alice") as pipeline:
        found = await pipeline.send(ZONES)
    return [row["time_zone"] for row in await found.fetchall()]


async def test_it_is_one_transaction_of_its_person_and_commits(engine: AsyncEngine) -> None:
    async with pipelined(engine, "alice") as pipeline:
        before = await pipeline.send(WHICH)
        assert (row := await before.fetchone())
        await add(pipeline)
        after = await pipeline.send(WHICH)
    assert await after.fetchone() == row
    assert (row["role"], row["person"]) == ("todo_app", "alice")
    assert await zones(engine) == ["Europe/Berlin"]
    async with pipelined(engine, "alice") as pipeline:
        later = await pipeline.send(WHICH)
    assert (again := await later.fetchone())
    assert again["id"] != row["id"]


async def test_neither_role_nor_person_outlives_it(engine: AsyncEngine) -> None:
    for refused in (False, True):
        with pytest.raises(ZeroDivisionError):
            async with pipelined(engine, "alice"):
                _ = 1 / (0 if refused else 1)
            raise ZeroDivisionError
        async with engine.connect() as connection:
            driver = (await connection.get_raw_connection()).driver_connection
            assert isinstance(driver, psycopg.AsyncConnection)
            role, person = await (
                await driver.execute("SELECT current_user, current_setting('todo.user_id', true)")
            ).fetchone() or ("", "")
        assert role == "todo_service"
        assert not person


async def exception(pipeline: Pipeline) -> None:
    await add(pipeline)
    _ = 1 / 0


async def exception_after_a_result(pipeline: Pipeline) -> None:
    await add(pipeline)
    found = await pipeline.send(ZONES)
    assert await found.fetchall()
    _ = 1 / 0


async def failing_statement(pipeline: Pipeline) -> None:
    await add(pipeline)
    await add(pipeline)  # there is one for each person
    await pipeline.send(ZONES)


async def failing_statement_that_is_read(pipeline: Pipeline) -> None:
    await add(pipeline)
    await add(pipeline)
    await (await pipeline.send(ZONES)).fetchall()


@pytest.mark.parametrize(
    ("body", "error"),
    [
        (exception, ZeroDivisionError),
        (exception_after_a_result, ZeroDivisionError),
        (failing_statement, DBAPIError),
        (failing_statement_that_is_read, DBAPIError),
    ],
)
async def test_whatever_is_raised_rolls_all_of_it_back(
    engine: AsyncEngine, body: Callable[[Pipeline], Awaitable[None]], error: type[Exception]
) -> None:
    for _ in range(7):  # also once its statements are prepared
        with pytest.raises(error):
            async with pipelined(engine, "alice") as pipeline:
                await body(pipeline)
        assert await zones(engine) == []


@pytest.mark.parametrize("reads", [True, False])
async def test_who_is_cancelled_has_written_nothing(engine: AsyncEngine, database_url: str, reads: bool) -> None:
    began = asyncio.Event()

    async def slow() -> None:
        async with pipelined(engine, "alice") as pipeline:
            await add(pipeline)
            await (await pipeline.send(ZONES)).fetchall()
            began.set()
            if reads:
                await (await pipeline.send(SLOW)).fetchall()
            await asyncio.sleep(30)

    for _ in range(7):
        began.clear()
        task = asyncio.create_task(slow())
        await began.wait()
        while reads and not sleeping(database_url):
            await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert await zones(engine) == []


def sleeping(database_url: str) -> bool:
    with psycopg.connect(as_admin(database_url)) as admin:
        return bool(admin.execute("SELECT FROM pg_stat_activity WHERE wait_event = 'PgSleep'").fetchall())


async def test_one_that_cannot_be_taken_back_loses_its_connection(
    engine: AsyncEngine, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    execute = psycopg.AsyncConnection.execute

    async def cancelled(self: psycopg.AsyncConnection, query: Any, *rest: Any) -> Any:
        if query == "BEGIN":
            raise asyncio.CancelledError
        return await execute(self, query, *rest)

    monkeypatch.setattr(psycopg.AsyncConnection, "execute", cancelled)
    with pytest.raises(asyncio.CancelledError):
        async with pipelined(engine, "alice") as pipeline:
            await exception_after_a_result(pipeline)
    with psycopg.connect(as_admin(database_url)) as admin:
        assert admin.execute("SELECT count(*) FROM profiles").fetchone() == (0,)
    assert await zones(engine) == []


async def test_it_is_one_transaction_with_what_others_do(engine: AsyncEngine) -> None:
    """What it has written is seen by nobody before its end."""
    async with pipelined(engine, "alice") as pipeline:
        await add(pipeline)
        assert await (await pipeline.send(ZONES)).fetchall()
        async with transaction(engine, "alice") as session:
            connection = await session.connection()
            assert (await connection.exec_driver_sql("SELECT count(*) FROM profiles")).scalar() == 0
