"""When the database is away, and what it holds by itself when a statement is wrong."""

import asyncio
import logging
from collections.abc import AsyncIterator
from typing import Any

import httpx2
import psycopg
import pytest
from sqlalchemy import text

from mcp_server.server import create_app
from mcp_server.settings import Settings
from service.database import create_engine, transaction
from tests.logins import as_admin
from tests.mcp_server.calls import Tools, client_of
from tests.mcp_server.conftest import Rows
from tests.mcp_server.proxy import Proxy, proxy
from tests.serving import serve

AWAY = "The task database cannot be reached right now; nothing was changed, try again in a moment."
UNKNOWN = (
    "The task database went away before it confirmed the change: call list_tasks to see whether it was made "
    "before you repeat it."
)
SYNC = b"S\0\0\0\4"  # the message that ends, and commits, what was sent since the last one
KEY = {"todo/idempotency_key": "key-1"}


@pytest.fixture
async def way(database_url: str) -> AsyncIterator[Proxy]:
    async with proxy(database_url) as opened:
        yield opened


@pytest.fixture
async def served(way: Proxy) -> AsyncIterator[str]:
    async with serve(create_app(Settings(database_url=way.url))) as base:  # pyright: ignore[reportArgumentType]
        yield base


@pytest.fixture
async def tools(served: str) -> AsyncIterator[Tools]:
    async with client_of(served) as client:
        yield Tools(client)


async def test_a_start_leaves_nothing_behind(way: Proxy, rows: Rows) -> None:
    last = "SELECT last_value, is_called FROM task_changes_id_seq"
    before = rows(last)
    async with serve(create_app(Settings(database_url=way.url))):  # pyright: ignore[reportArgumentType]
        pass
    assert (rows.tasks(), rows.changes()) == ([], [])
    assert rows("SELECT 1 FROM task_calls") == rows("SELECT 1 FROM people") == []
    assert rows(last) != before, "a task was added, and that was undone"


async def test_a_start_does_not_wait_for_a_table_that_is_locked(way: Proxy, database_url: str) -> None:
    settings = Settings(database_url=way.url)  # pyright: ignore[reportArgumentType]
    app = create_app(settings, warm_up_seconds=0.3)
    with psycopg.connect(as_admin(database_url)) as connection:
        connection.execute("LOCK TABLE task_calls IN SHARE MODE")  # as CREATE INDEX does
        async with asyncio.timeout(8), serve(app) as base, client_of(base) as client:
            connection.rollback()
            await Tools(client).call("add_task", title="milk")
            assert await Tools(client).titles() == ["milk"]


async def test_a_stopped_database_is_said_so_and_found_again(
    tools: Tools, way: Proxy, rows: Rows, caplog: pytest.LogCaptureFixture
) -> None:
    await tools.call("add_task", title="milk")
    await way.stop()
    assert await tools.refusal("add_task", title="secret bread") == AWAY
    assert await tools.refusal("list_tasks") == AWAY
    assert await tools.refusal("delete_task", task_id=1) == AWAY
    await way.start()
    await tools.call("add_task", title="eggs")
    assert await tools.titles() == ["milk", "eggs"]
    assert [change["operation"] for change in rows.changes()] == ["add", "add"]
    assert "secret" not in caplog.text
    assert "127.0.0.1" not in caplog.text


async def test_a_connection_lost_before_the_change_changed_nothing(tools: Tools, way: Proxy, rows: Rows) -> None:
    await tools.call("list_tasks")  # connects
    way.cut_before = b"INSERT INTO task_calls"
    assert await tools.refusal("add_task", title="milk") == AWAY
    assert rows.tasks() == rows.changes() == []


async def test_a_connection_lost_at_the_commit_is_not_called_a_failure(tools: Tools, way: Proxy, rows: Rows) -> None:
    await tools.call("list_tasks")  # connects
    way.cut_before = SYNC
    assert await tools.refusal("add_task", title="milk", meta=KEY) == UNKNOWN
    added = await tools.call("add_task", title="milk", meta=KEY)
    assert [row["id"] for row in rows.tasks()] == [added["id"]]


@pytest.mark.parametrize(
    ("tool", "arguments", "most"),
    [("add_task", {"title": "milk"}, 2), ("complete_task", {"task_id": 1}, 4), ("list_tasks", {}, 3)],
)
async def test_a_call_takes_few_round_trips(
    tools: Tools, way: Proxy, tool: str, arguments: dict[str, Any], most: int
) -> None:
    """One for each statement, the first of which opens the transaction, and one for the end."""
    await tools.call("add_task", title="bread")
    before = way.round_trips
    await tools.call(tool, **arguments)
    assert way.round_trips - before == most


async def test_a_busy_day_costs_nothing_where_changes_are_not_limited(tools: Tools, way: Proxy, rows: Rows) -> None:
    rows(
        "WITH calls AS (INSERT INTO task_calls (user_id, operation, arguments, actor) "
        "SELECT 'local', 'add', '{}', 'mcp' FROM generate_series(1, 600) RETURNING id) "
        "INSERT INTO task_changes (user_id, call_id) SELECT 'local', id FROM calls RETURNING id"
    )
    await tools.call("add_task", title="bread")
    before = way.round_trips
    await tools.call("add_task", title="milk")
    assert way.round_trips - before == 2


async def test_ready_follows_the_database_and_health_does_not(served: str, way: Proxy) -> None:
    async with httpx2.AsyncClient(verify=False, base_url=served) as http:
        assert (await http.get("/ready")).json() == {"status": "ready"}
        await way.stop()
        ready = await http.get("/ready")
        assert ready.status_code == 503
        assert ready.json()["status"] == "not ready"
        assert ready.json()["reason"].startswith("The database cannot be reached")
        assert (await http.get("/health")).json() == {"status": "ok"}
        await way.start()
        assert (await http.get("/ready")).status_code == 200


async def test_what_nobody_foresaw_is_a_reference_to_the_log(
    fresh_database_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    with psycopg.connect(as_admin(fresh_database_url)) as connection:
        connection.execute("ALTER TABLE tasks ADD CONSTRAINT odd CHECK (title <> 'secret')")
    settings = Settings(database_url=fresh_database_url)  # pyright: ignore[reportArgumentType]
    async with serve(create_app(settings)) as base, client_of(base) as client:
        with caplog.at_level(logging.ERROR):
            sentence = await Tools(client).refusal("add_task", title="secret")
        assert await Tools(client).titles() == []
    start, end = "The task service had an internal error, reference ", ": try again later."
    assert sentence.startswith(start)
    assert sentence.endswith(end)
    (record,) = (record for record in caplog.records if record.name == "mcp_server.errors")
    assert sentence.removeprefix(start).removesuffix(end) in record.getMessage()
    assert "psycopg.errors.CheckViolation" in record.getMessage()
    assert "in add" in record.getMessage()
    assert "secret" not in record.getMessage()


async def test_an_unmigrated_database_is_not_ready(empty_database_url: str) -> None:
    settings = Settings(database_url=empty_database_url)  # pyright: ignore[reportArgumentType]
    async with serve(create_app(settings)) as base, httpx2.AsyncClient(verify=False, base_url=base) as http:
        ready = await http.get("/ready")
        assert ready.status_code == 503
        assert ready.json() == {
            "status": "not ready",
            "reason": "The database is not migrated yet: run ./todo migrate.",
        }


@pytest.mark.parametrize("table", ["tasks", "task_calls", "task_changes"])
async def test_a_statement_that_forgets_whose_rows_it_wants_gets_no_foreign_ones(database_url: str, table: str) -> None:
    engine = create_engine(database_url)
    try:
        for person in ("alice", "bob"):
            async with transaction(engine, person) as session:
                connection = await session.connection()
                await connection.execute(
                    text("INSERT INTO tasks (user_id, id, title) VALUES (:person, 1, 'milk')"), {"person": person}
                )
                await connection.execute(
                    text(
                        "WITH made AS (INSERT INTO task_calls (user_id, operation, arguments, actor)"
                        " VALUES (:person, 'add', '{}', 'mcp') RETURNING user_id, id)"
                        " INSERT INTO task_changes (user_id, call_id) SELECT user_id, id FROM made"
                    ),
                    {"person": person},
                )
        async with transaction(engine, "alice") as session:
            connection = await session.connection()
            seen = await connection.scalars(text(f"SELECT user_id FROM {table}"))
            assert seen.all() == ["alice"]
            assert (await connection.execute(text(f"DELETE FROM {table}"))).rowcount == 1
        async with transaction(engine, "bob") as session:
            connection = await session.connection()
            assert await connection.scalar(text(f"SELECT count(*) FROM {table}")) == 1
    finally:
        await engine.dispose()
