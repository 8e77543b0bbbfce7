"""What the MCP server tells of tool calls: a line for each, and numbers."""

import asyncio
import os
import re
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
from fastmcp import Client, FastMCP
from prometheus_client import REGISTRY

from service.telemetry import metrics
from service.tool_server.reports import Reported
from tests.mcp_server.guarded import own
from tests.mcp_server.wire import LEGACY, MODERN, call, send
from tests.processes import ServiceProcess

CASES: dict[str, tuple[str, dict[str, Any], str]] = {
    "ok": ("add_task", {"title": "milk"}, "tool=add_task owner=ann outcome=ok"),
    "not there": ("complete_task", {"task_id": 9}, "tool=complete_task owner=ann outcome=refused error=TaskNotFound"),
    "foreign": ("list_tasks", {"user_id": "bob"}, "tool=list_tasks outcome=refused error=ForeignUserId"),
    "wrong": ("add_task", {"title": 5, "milk": "milk"}, "tool=add_task outcome=refused error=ArgumentsInvalid"),
    "unknown": ("drink_milk", {}, "tool=unknown outcome=refused error=UnknownTool"),
}


@pytest.mark.parametrize(("tool", "arguments", "told"), CASES.values(), ids=CASES)
@pytest.mark.parametrize("version", [MODERN, LEGACY])
async def test_a_call_is_one_line_with_its_owner_and_its_request(
    guarded: ServiceProcess,
    guarded_http: httpx2.AsyncClient,
    version: str,
    tool: str,
    arguments: dict[str, Any],
    told: str,
) -> None:
    asked = f"{tool}-{version}-{len(told)}"
    guarded_http.headers["X-Request-ID"] = asked
    await send(guarded_http, call(tool, arguments, version=version, token=own(sub="ann")))
    [line] = [line for line in guarded.log_text.splitlines() if line.endswith(f" request_id={asked}")]
    assert re.search(rf" INFO service.tool_server.reports: tool call {told} seconds=\d+\.\d+ ", line)
    assert "milk" not in line.rpartition(" request_id=")[0]


async def test_the_metrics_need_no_token_and_name_nobody(guarded_http: httpx2.AsyncClient) -> None:
    await send(guarded_http, call("add_task", {"title": "milk"}, token=own(sub="ann")))
    shown = await guarded_http.get("/metrics")
    assert shown.status_code == 200
    assert 'todo_tool_call_seconds_count{outcome="ok",tool="add_task"}' in shown.text
    assert "ann" not in shown.text
    assert "milk" not in shown.text


async def test_a_call_outside_of_any_request_is_counted_unless_it_is_said_to_be_nobodys() -> None:
    async def whistle() -> str:
        return "tune"

    def counted() -> float:
        return REGISTRY.get_sample_value("todo_tool_call_seconds_count", {"tool": "whistle", "outcome": "ok"}) or 0

    server = FastMCP("kettle", tools=[whistle], middleware=[Reported({"whistle"})])
    async with Client(server) as client:
        await client.call_tool("whistle")
        assert counted() == 1
        with metrics.unmetered():
            await client.call_tool("whistle")
        assert counted() == 1


@pytest.fixture
def workers(database_url: str, tmp_path: Path) -> Iterator[ServiceProcess]:
    """Two behind one port."""
    service = ServiceProcess("mcp_server", "MCP_PORT", tmp_path / "log", DATABASE_URL=database_url, MCP_WORKERS="2")
    service.start()
    service.wait_until_all_serve(2)
    yield service
    assert service.end() == 0


async def shown(service: ServiceProcess) -> str:
    """By a connection of its own, which any worker may accept."""
    async with httpx2.AsyncClient(base_url=service.url, verify=False, trust_env=False) as http:
        return (await http.get("/metrics")).text


@pytest.mark.long
async def test_any_worker_answers_for_all_and_the_dead_are_still_counted(workers: ServiceProcess) -> None:
    for _ in range(10):
        async with httpx2.AsyncClient(base_url=workers.url, verify=False, trust_env=False) as http:
            await send(http, call("add_task", {"title": "milk"}))
    os.kill(workers.workers[0], signal.SIGKILL)
    for _ in range(10):
        assert 'todo_tool_call_seconds_count{outcome="ok",tool="add_task"} 10.0' in await shown(workers)
    async with asyncio.timeout(10):  # the one that takes the dead one's place uses some while it starts
        while "todo_mcp_connections_in_use 0.0" not in await shown(workers):
            await asyncio.sleep(0.05)
