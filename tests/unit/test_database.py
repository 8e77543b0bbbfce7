"""Transactions of the database layer, on a real PostgreSQL."""

import asyncio
import random
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from typing import Any

import psycopg
import pytest

from common.database import NO_USER, Database, DatabaseUnavailable, StatementTimeout, UserShareExceeded
from tests.logins import as_service
from tests.scale.pooler import run_pgbouncer
from tests.waiting import until

ADD = """
INSERT INTO sessions (user_id, id, kind, name, scopes, expires_at)
VALUES (%(user_id)s, %(id)s, 'session', '', '{}', now() + interval '1 hour') RETURNING id, user_id"""
LIST = "SELECT id, user_id FROM sessions ORDER BY id"
COUNT = "SELECT count(*) AS rows FROM sessions"
ADD_CALENDAR = "INSERT INTO profiles (user_id, calendar_hash) VALUES (%(user_id)s, %(hash)s)"
CALENDAR_HASH = bytes(32)
SLEEP = "SELECT pg_sleep(60)"
TERMINATE = """
    SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity
    WHERE application_name = 'todo' AND datname = current_database()
"""

Administrator = Callable[[str], psycopg.Connection[Any]]


@dataclass(frozen=True, slots=True)
class Session:
    id: str
    user_id: str


@pytest.fixture
async def database(database_url: str) -> AsyncIterator[Database]:
    async with Database(database_url) as database:
        yield database


async def add(database: Database, user_id: str, *ids: str) -> None:
    async with database.transaction(user_id) as tx:
        for id in ids:
            await tx.execute(ADD, user_id=user_id, id=id)


async def list_ids(database: Database, user_id: str) -> list[str]:
    async with database.transaction(user_id) as tx:
        sessions = await tx.execute(LIST, Session)
    return [session.id for session in await sessions.fetchall()]


async def test_what_is_rolled_back_leaves_nothing_and_keeps_the_connection(database_url: str) -> None:
    pids = set[int]()
    async with Database(database_url, pool_size=1) as database:
        for number in range(3):
            async with database.transaction("ada") as tx:
                await tx.execute(ADD, user_id="ada", id=f"s{number}")
                pid = await tx.execute("SELECT pg_backend_pid() AS pid")
                await tx.roll_back()
            pids |= {row["pid"] for row in await pid.fetchall()}
        assert await list_ids(database, "ada") == []
        await add(database, "ada", "s9")
        assert await list_ids(database, "ada") == ["s9"]
    assert len(pids) == 1


async def test_without_a_user_no_row_is_seen_but_functions_of_the_owner_work(database: Database) -> None:
    async with database.transaction("ada") as tx:
        await tx.execute(ADD, user_id="ada", id="s1")
        await tx.execute(ADD_CALENDAR, user_id="ada", hash=CALENDAR_HASH)
    async with database.transaction(NO_USER) as tx:
        seen = await tx.execute(LIST)
        found = await tx.execute("SELECT user_of_calendar(%(hash)s) AS user_id", hash=CALENDAR_HASH)
    assert await seen.fetchall() == []
    assert await found.fetchone() == {"user_id": "ada"}
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        async with database.transaction(NO_USER) as tx:
            await tx.execute(ADD, user_id="", id="s2")


async def test_statements_are_prepared_unless_a_pooler_forbids_it(database_url: str) -> None:
    prepared = "SELECT statement FROM pg_prepared_statements"
    for setting in (True, False):
        async with Database(database_url, pool_size=1, prepared=setting) as database:
            for _ in range(7):
                await list_ids(database, "ada")
            async with database.transaction("ada") as tx:
                statements = await tx.execute(prepared)
            assert bool(await statements.fetchall()) == setting


@pytest.mark.long
async def test_users_who_share_the_connections_of_a_pooler_see_only_own_rows(database_url: str) -> None:
    async def use(user_id: str) -> None:
        for n in range(10):
            await add(database, user_id, f"{user_id}-{n}")
            assert await list_ids(database, user_id) == [f"{user_id}-{m}" for m in range(n + 1)]

    with run_pgbouncer(as_service(database_url), default_pool_size=2, reserve_pool_size=0) as pooled_url:
        async with Database(pooled_url, prepared=False) as database:
            await asyncio.gather(*(use(f"user{n}") for n in range(20)))


async def test_an_error_of_a_statement_is_raised_though_no_result_is_read(database: Database) -> None:
    with pytest.raises(psycopg.errors.UniqueViolation):
        await add(database, "ada", "s1", "s2", "s2")
    assert await list_ids(database, "ada") == []


async def test_statements_skipped_after_an_error_do_not_count_as_prepared(database_url: str) -> None:
    async with Database(database_url, pool_size=1) as database:
        for n in range(8):
            with pytest.raises(psycopg.errors.UniqueViolation):
                async with database.transaction("ada") as tx:
                    await tx.execute(ADD, user_id="ada", id=str(n))
                    await tx.execute(ADD, user_id="ada", id=str(n))
                    await tx.execute(LIST, Session)
            assert await list_ids(database, "ada") == []


async def test_cancelled_transactions_leave_no_broken_connection_and_no_half(database_url: str) -> None:
    random_numbers = random.Random(36)

    async def add_both(name: str) -> None:
        async with database.transaction("ada") as tx:
            await tx.execute(ADD, user_id="ada", id=f"{name}-a")
            if random_numbers.random() < 0.5:
                await (await tx.execute(LIST, Session)).fetchone()
                await tx.execute("SELECT pg_sleep(%(seconds)s)", seconds=random_numbers.random() * 0.002)
            await tx.execute(ADD, user_id="ada", id=f"{name}-b")

    async with Database(database_url, pool_size=3) as database:
        for n in range(300):
            tasks = [asyncio.create_task(add_both(f"{n}-{m}")) for m in range(6)]
            pause = random_numbers.random() * 0.004
            for task in tasks:
                if n % 2 or task is tasks[0]:  # one after the other, or all at the same time
                    await asyncio.sleep(pause)
                task.cancel()
            results = await asyncio.gather(*tasks, return_exceptions=True)
            assert {type(result) for result in results} <= {type(None), asyncio.CancelledError}
        ids = await list_ids(database, "ada")
        names = {id.rpartition("-")[0] for id in ids}
        assert sorted(ids) == sorted(f"{name}-{part}" for name in names for part in "ab")
        assert 0 < len(names) < 1_800
        await until(lambda: database.connections_in_use == 0)
        barrier = asyncio.Barrier(3)
        # No connection of the pool is missing; one of them is only for the service itself.
        await asyncio.gather(*(hold(database, user_id, barrier) for user_id in ("ada", "ada", NO_USER)))


async def hold(database: Database, user_id: str, barrier: asyncio.Barrier) -> None:
    async with database.transaction(user_id) as tx:
        await tx.execute(LIST)
        await barrier.wait()


async def test_a_cancelled_statement_does_not_run_on(
    database: Database, administrator: Administrator, database_url: str
) -> None:
    async def sleep() -> None:
        async with database.transaction("ada") as tx:
            await (await tx.execute(SLEEP)).fetchone()

    def is_sleeping() -> bool:
        query = "SELECT 1 FROM pg_stat_activity WHERE state = 'active' AND query = %s AND datname = current_database()"
        return bool(administrator(database_url).execute(query, [SLEEP]).fetchall())

    task = asyncio.create_task(sleep())
    await until(is_sleeping)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await until(lambda: not is_sleeping())


async def test_idle_connections_that_the_server_closed_are_replaced(
    administrator: Administrator, database_url: str
) -> None:
    async with Database(database_url, pool_size=2) as database:
        for _ in range(2):
            await asyncio.gather(*(list_ids(database, "ada") for _ in range(10)))
            administrator(database_url).execute(TERMINATE)
        assert await list_ids(database, "ada") == []


async def test_a_deadlock_is_an_unavailable_database(database: Database) -> None:
    await add(database, "ada", "s1", "s2")
    lock = "SELECT 1 FROM sessions WHERE id = %(id)s FOR UPDATE"
    barrier = asyncio.Barrier(2)

    async def lock_both(first: str, second: str) -> None:
        async with database.transaction("ada") as tx:
            await (await tx.execute(lock, id=first)).fetchone()
            await barrier.wait()
            await tx.execute(lock, id=second)

    results = await asyncio.gather(lock_both("s1", "s2"), lock_both("s2", "s1"), return_exceptions=True)
    assert {type(result) for result in results} == {type(None), DatabaseUnavailable}


async def test_no_free_connection_in_time_is_an_unavailable_database(database_url: str) -> None:
    async with Database(database_url, pool_size=1, pool_timeout_seconds=1) as database:
        await until(lambda: database.connections_in_use == 0)  # it is connected
        async with database.transaction("ada") as tx:
            await tx.execute(LIST)
            assert database.connections_in_use == 1
            with pytest.raises(DatabaseUnavailable):
                async with database.transaction("bob"):
                    pytest.fail("there is one connection")


async def test_a_user_with_long_statements_holds_up_only_own_transactions(database_url: str) -> None:
    async def sleep() -> None:
        async with database.transaction("eve") as tx:
            await (await tx.execute(SLEEP)).fetchone()

    async with Database(database_url, pool_size=5, user_share=3, queue_seconds=2) as database:
        sleeping = [asyncio.create_task(sleep()) for _ in range(20)]
        await until(lambda: database.connections_in_use == 3)
        with pytest.raises(UserShareExceeded):
            await list_ids(database, "eve")
        async with database.transaction("ada"), asyncio.timeout(30):
            assert await list_ids(database, NO_USER) == []
            with pytest.raises(DatabaseUnavailable) as busy:
                await list_ids(database, "bob")
            assert not isinstance(busy.value, UserShareExceeded), "bob has no connection"
        async with asyncio.timeout(30):
            assert await list_ids(database, "bob") == []
        for task in sleeping:
            task.cancel()
        await asyncio.gather(*sleeping, return_exceptions=True)
        async with asyncio.timeout(30):
            assert await list_ids(database, "eve") == []


async def test_without_a_database_nobody_is_told_to_have_used_a_share() -> None:
    nowhere = "postgresql://todo@127.0.0.1:1/todo"
    async with Database(nowhere, pool_timeout_seconds=0.3, user_share=3, queue_seconds=0.3) as database:
        results = await asyncio.gather(*(list_ids(database, "ada") for _ in range(20)), return_exceptions=True)
        assert {type(result) for result in results} == {DatabaseUnavailable}


async def test_a_transaction_can_have_a_shorter_limit_for_its_statements(database: Database) -> None:
    with pytest.raises(StatementTimeout):
        async with database.transaction("ada", statement_seconds=0.05) as tx:
            await tx.execute(ADD, user_id="ada", id="s1")
            await tx.execute(SLEEP)
    assert await list_ids(database, "ada") == []
    async with database.transaction("ada") as tx:
        limit = await tx.execute("SHOW statement_timeout")
    assert await limit.fetchone() != {"statement_timeout": "50ms"}


async def test_snapshot_reads_one_state_and_writes_nothing(database: Database) -> None:
    await add(database, "ada", "s1")
    async with database.transaction("ada", snapshot=True) as tx:
        before = await (await tx.execute(LIST, Session)).fetchall()
        await add(database, "ada", "s2")
        after = await tx.execute(LIST, Session)
    assert await after.fetchall() == before == [Session("s1", "ada")]
    with pytest.raises(psycopg.errors.ReadOnlySqlTransaction):
        async with database.transaction("ada", snapshot=True) as tx:
            await tx.execute(ADD, user_id="ada", id="s3")
    assert await list_ids(database, "ada") == ["s1", "s2"]


async def test_error_of_the_database_is_translated(database_url: str) -> None:
    def translate(error: psycopg.Error) -> Exception | None:
        return KeyError("stored") if error.sqlstate == "23505" else None

    async with Database(database_url, translate_error=translate) as database:
        await add(database, "ada", "s1")
        with pytest.raises(KeyError):
            await add(database, "ada", "s2", "s1")
        assert await list_ids(database, "ada") == ["s1"], "nothing of a transaction that fails is stored"
        with pytest.raises(psycopg.errors.UndefinedTable):
            async with database.transaction("ada") as tx:
                await tx.execute("SELECT FROM no_such_table")
