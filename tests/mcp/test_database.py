"""When the database is away, or is not as it should be."""

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import psycopg
import pytest

from mcp_server.server import create_app
from mcp_server.settings import McpSettings
from tests.logins import as_admin
from tests.mcp.calls import KEY, Tools
from tests.mcp.conftest import http_client, new_user
from tests.mcp.proxy import Proxy, proxy
from tests.mcp.servers import AUDIENCE
from tests.mcp.test_settings import run
from tests.serving import serve
from tests.tokens import MCP_TOKEN_SECRET

SYNC = b"S\0\0\0\4"  # the message that ends, and commits, what was sent since the last one


@asynccontextmanager
async def serving(database_url: str) -> AsyncIterator[Tools]:
    settings = {"database_url": database_url, "mcp_url": AUDIENCE, "mcp_token_secret": MCP_TOKEN_SECRET}
    async with serve(create_app(McpSettings.model_validate(settings))) as url, http_client(url) as http:
        yield Tools(http, new_user())


@pytest.fixture
async def way(session_database_url: str) -> AsyncIterator[Proxy]:
    async with proxy(session_database_url) as opened:
        yield opened


@pytest.fixture
async def tools(way: Proxy) -> AsyncIterator[Tools]:
    async with serving(way.url) as tools:
        yield tools


async def test_a_stopped_database_is_said_and_found_again(
    tools: Tools, way: Proxy, caplog: pytest.LogCaptureFixture
) -> None:
    await tools.add("milk")
    await way.stop()
    calls: list[tuple[str, dict[str, Any]]]
    calls = [("add_task", {"title": "secret bread"}), ("list_tasks", {}), ("delete_task", {"task_id": 1})]
    for tool, arguments in calls:
        assert "nothing was changed" in await tools.error(tool, **arguments)
    for path in ("/changes?after=0", "/done", "/tasks?ids=1"):
        answer = await tools.http.get(path, headers={"Authorization": f"Bearer {tools.token}"})
        assert (answer.status_code, set(answer.json())) == (503, {"error"})
    await way.start()
    await tools.add("eggs")
    assert await tools.titles() == ["milk", "eggs"]
    assert "secret" not in caplog.text
    assert "127.0.0.1" not in caplog.text


async def test_a_connection_lost_before_the_change(tools: Tools, way: Proxy) -> None:
    await tools.tasks()  # connects
    way.cut_before = b"INSERT INTO task_calls"
    assert "nothing was changed" in await tools.error("add_task", title="milk")
    assert await tools.tasks() == []


@pytest.mark.parametrize("answered", [False, True])
async def test_a_connection_lost_at_the_commit(tools: Tools, way: Proxy, answered: bool) -> None:
    """Nobody knows whether the change was made; sent again with its key, it is made once."""
    await tools.tasks()  # connects
    if answered:
        way.cut_after = SYNC
    else:
        way.cut_before = SYNC
    assert "nothing was changed" not in await tools.error("add_task", title="milk", meta=KEY)
    added = await tools.add("milk", meta=KEY)
    assert await tools.ids() == [added["id"]]


async def test_ready_follows_the_database_and_health_does_not(tools: Tools, way: Proxy) -> None:
    assert (await tools.http.get("/ready")).json() == {"status": "ready"}
    await way.stop()
    ready = await tools.http.get("/ready")
    assert (ready.status_code, ready.json()["status"]) == (503, "not ready")
    assert ready.json()["reason"]
    assert (await tools.http.get("/health")).json() == {"status": "ok"}
    await way.start()
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


def test_a_database_without_row_security_is_not_served(fresh_database_url: str) -> None:
    with psycopg.connect(as_admin(fresh_database_url)) as connection:
        connection.execute("ALTER TABLE tasks DISABLE ROW LEVEL SECURITY")
    ended = run(DATABASE_URL=fresh_database_url, MCP_PORT="0")
    assert ended.returncode == 78
    assert "tasks" in ended.stderr
