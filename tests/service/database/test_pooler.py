"""Behind PgBouncer in transaction mode, where each transaction may have another session than the one before."""

import asyncio
import logging
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack

import psycopg
import pytest
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import AsyncEngine

from service.database import Statement, connect, create_engine, listen, pipelined, transaction
from tests.logins import as_admin
from tests.scale.pooler import pooled
from tests.waiting import until

pytestmark = pytest.mark.long

WHO = Statement("SELECT current_setting('todo.user_id') AS person, %(n)s::int AS n")
OFTEN = 12  # the driver prepares what it was given five times


@pytest.fixture
def pooled_url(database_url: str) -> Iterator[str]:
    """All who come share one session of PostgreSQL's."""
    with pooled(database_url, default_pool_size=1, reserve_pool_size=0) as url:
        yield url


@pytest.fixture
async def two_engines(pooled_url: str, request: pytest.FixtureRequest) -> AsyncIterator[list[AsyncEngine]]:
    engines = [create_engine(pooled_url, prepared=request.param) for _ in range(2)]
    yield engines
    for engine in engines:
        await engine.dispose()


async def ask_often(engine: AsyncEngine, person: str) -> None:
    for n in range(OFTEN):
        async with pipelined(engine, person) as pipeline:
            first, second = await pipeline.send(WHO, n=n), await pipeline.send(WHO, n=-n)
        assert [await first.fetchone(), await second.fetchone()] == [
            {"person": person, "n": n},
            {"person": person, "n": -n},
        ]
        async with transaction(engine, person) as session:
            connection = await session.connection()
            found = await connection.exec_driver_sql("SELECT current_setting('todo.user_id'), current_user")
            assert tuple(found.one()) == (person, "todo_app")


@pytest.mark.parametrize("two_engines", [False], indirect=True)
async def test_who_shares_a_session_is_nobody_else(two_engines: list[AsyncEngine]) -> None:
    await asyncio.gather(*(ask_often(engine, f"person {n}") for n, engine in enumerate(two_engines)))
    async with await connect(two_engines[0]) as driver:  # as it is left to whoever comes next
        left = await driver.execute("SELECT current_setting('todo.user_id', true), current_user")
        assert await left.fetchone() in [("", "todo_service"), (None, "todo_service")]


@pytest.mark.parametrize("two_engines", [True], indirect=True)
async def test_what_is_prepared_is_another_ones_in_a_session_that_is_shared(two_engines: list[AsyncEngine]) -> None:
    """Why there is a setting; a pooler that knows prepared statements lets this test fail."""
    await ask_often(two_engines[0], "alice")
    with pytest.raises(DBAPIError, match="already exists"):
        await ask_often(two_engines[1], "bob")


@pytest.mark.parametrize("two_engines", [False], indirect=True)
async def test_a_connection_beside_the_engines_prepares_nothing_either(two_engines: list[AsyncEngine]) -> None:
    async with AsyncExitStack() as stack:
        drivers = [await stack.enter_async_context(await connect(engine)) for engine in two_engines]
        for n in range(OFTEN):
            for driver in drivers:
                found = await driver.execute("SELECT %s::int", [n])
                assert await found.fetchone() == (n,)


async def test_who_listens_at_the_databases_own_address_hears(pooled_url: str, database_url: str) -> None:
    engine, heard = create_engine(pooled_url, listen_url=database_url, prepared=False), list[str]()
    listening = asyncio.create_task(listen(engine, {"todo_test": heard.append}, again_seconds=0.1))
    await until(lambda: is_listening(database_url))
    async with transaction(engine, "alice") as session:
        await (await session.connection()).exec_driver_sql("SELECT pg_notify('todo_test', 'said')")
    await until(lambda: heard == ["said"])
    listening.cancel()
    await asyncio.gather(listening, return_exceptions=True)
    await engine.dispose()


async def test_who_listens_through_the_pooler_is_told(
    pooled_url: str, database_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    engines = {"direct": create_engine(database_url), "pooled": create_engine(pooled_url)}
    told: dict[str, int] = {}
    for name, engine in engines.items():
        with caplog.at_level(logging.WARNING):
            listening = asyncio.create_task(listen(engine, {"todo_test": print}, again_seconds=0.1))
            await until(lambda: is_listening(database_url))
            listening.cancel()
            await asyncio.gather(listening, return_exceptions=True)
        told[name] = sum("LISTEN_DATABASE_URL" in line for line in caplog.messages)
        await engine.dispose()
        await until(lambda name=name: name == "pooled" or not is_listening(database_url))
    assert told == {"direct": 0, "pooled": 1}


def is_listening(database_url: str) -> bool:
    """Whether one of these tests does: services of other tests may listen in the same database."""
    with psycopg.connect(as_admin(database_url)) as connection:
        found = connection.execute(
            "SELECT EXISTS (SELECT FROM pg_stat_activity "
            "WHERE datname = current_database() AND query = 'LISTEN todo_test')"
        )
        return found.fetchone() == (True,)
