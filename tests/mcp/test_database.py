"""When the database is away, or is not as it should be."""

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import psycopg
import pytest

from tests.logins import as_admin
from tests.mcp.calls import KEY, Tools
from tests.mcp.conftest import new_user
from tests.mcp.servers import OWN, serve_tools
from tests.support.database_proxy import DatabaseProxy, database_proxy
from tests.support.stored import Stored
from tests.waiting import until

SYNC = b"S\0\0\0\4"  # the message that ends, and commits, what was sent since the last one


@asynccontextmanager
async def serving(database_url: str) -> AsyncIterator[Tools]:
    async with serve_tools(database_url, **OWN) as http:
        yield Tools(http, new_user())


@pytest.fixture
async def way(session_database_url: str) -> AsyncIterator[DatabaseProxy]:
    async with database_proxy(session_database_url) as proxy:
        yield proxy


@pytest.fixture
async def tools(way: DatabaseProxy) -> AsyncIterator[Tools]:
    async with serving(way.url) as tools:
        yield tools


async def test_a_stopped_database_is_said_and_found_again(
    tools: Tools, way: DatabaseProxy, caplog: pytest.LogCaptureFixture
) -> None:
    await tools.add("milk")
    await way.cut()
    calls: list[tuple[str, dict[str, Any]]]
    calls = [("add_task", {"title": "secret bread"}), ("list_tasks", {}), ("delete_task", {"task_id": 1})]
    for tool, arguments in calls:
        assert "nothing was changed" in await tools.error(tool, **arguments)
    for path in ("/batch?id=run", "/changes?after=0", "/done", "/tasks?ids=1"):
        answer = await tools.http.get(path, headers={"Authorization": f"Bearer {tools.token}"})
        assert (answer.status_code, set(answer.json())) == (503, {"error"})
    await way.restore()
    await tools.add("eggs")
    assert await tools.titles() == ["milk", "eggs"]
    assert "secret" not in caplog.text
    assert "127.0.0.1" not in caplog.text


async def test_a_connection_lost_before_the_change(tools: Tools, way: DatabaseProxy) -> None:
    await tools.tasks()  # connects
    way.cuts_before = b"INSERT INTO task_calls"
    assert "nothing was changed" in await tools.error("add_task", title="milk")
    assert await tools.tasks() == []


@pytest.mark.parametrize("committed", [False, True])
async def test_a_connection_lost_at_the_commit(
    tools: Tools, way: DatabaseProxy, stored: Stored, committed: bool
) -> None:
    """Nobody knows whether the change was made; sent again with its key, it is made once."""
    await tools.tasks()  # connects
    if committed:
        way.drop_responses_after = SYNC
    else:
        way.cuts_before = SYNC
    adding = asyncio.create_task(tools.error("add_task", title="milk", meta=KEY))
    if committed:
        await until(lambda: stored.titles(tools.user))
        await way.cut()
        await way.restore()
    assert "nothing was changed" not in await adding
    added = await tools.add("milk", meta=KEY)
    assert await tools.ids() == [added["id"]]


async def test_ready_follows_the_database_and_health_does_not(tools: Tools, way: DatabaseProxy) -> None:
    assert (await tools.http.get("/ready")).json() == {"status": "ready"}
    await way.cut()
    ready = await tools.http.get("/ready")
    assert (ready.status_code, ready.json()["status"]) == (503, "not ready")
    assert ready.json()["reason"]
    assert (await tools.http.get("/health")).json() == {"status": "ok"}
    await way.restore()
    assert (await tools.http.get("/ready")).status_code == 200


async def test_an_unexpected_error_is_a_reference_to_the_log(
    fresh_database_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    with psycopg.connect(as_admin(fresh_database_url)) as connection:
        connection.execute("ALTER TABLE tasks ADD CONSTRAINT odd CHECK (title <> 'secret')")
    async with serving(fresh_database_url) as tools:
        result = await tools.result("add_task", {"title": "secret"})
        assert await tools.tasks() == []
    [reference] = re.findall(r"internal error \(reference (\w+)\)", result["content"][0]["text"])
    [logged] = [record.getMessage() for record in caplog.records if reference in record.getMessage()]
    assert "CheckViolation" in logged
    assert "secret" not in logged


async def test_an_unmigrated_database_is_not_ready(empty_database_url: str) -> None:
    async with serving(empty_database_url) as tools:
        ready = await tools.http.get("/ready")
    assert (ready.status_code, ready.json()["status"]) == (503, "not ready")
    assert "./todo migrate" in ready.json()["reason"]
