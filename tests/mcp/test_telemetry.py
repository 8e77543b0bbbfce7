"""What the server tells of tool calls: a line for each, and numbers."""

import re
from typing import Any

import httpx2
import pytest

from tests.mcp.servers import own
from tests.mcp.wire import LEGACY, MODERN, call, send
from tests.processes import ServiceProcess

CASES: dict[str, tuple[str, dict[str, Any], str]] = {
    "ok": ("add_task", {"title": "milk"}, "tool=add_task owner={user} outcome=ok"),
    "missing": ("complete_task", {"task_id": 9}, "tool=complete_task owner={user} outcome=refused error=TaskNotFound"),
    "foreign": ("list_tasks", {"user_id": "bob"}, "tool=list_tasks outcome=refused error=ForeignUserId"),
    "wrong": ("add_task", {"title": 5, "milk": "milk"}, "tool=add_task outcome=refused error=ArgumentsInvalid"),
    "unknown": ("drink_milk", {}, "tool=unknown outcome=refused error=UnknownTool"),
}


@pytest.mark.parametrize(("tool", "arguments", "line"), CASES.values(), ids=CASES)
@pytest.mark.parametrize("version", [MODERN, LEGACY])
async def test_a_call_is_one_line_of_the_log_without_its_content(
    guarded: ServiceProcess,
    guarded_http: httpx2.AsyncClient,
    user: str,
    version: str,
    tool: str,
    arguments: dict[str, Any],
    line: str,
) -> None:
    guarded_http.headers["X-Request-ID"] = f"request-of-{user}"
    await send(guarded_http, call(tool, arguments, version=version, token=own(sub=user)))
    [found] = [each for each in guarded.log_text.splitlines() if each.endswith(f" request_id=request-of-{user}")]
    assert re.search(rf" INFO .*: tool call {line.format(user=user)} seconds=\d+\.\d+ ", found)
    assert "milk" not in found


async def test_metrics_need_no_token_and_name_nobody(guarded_http: httpx2.AsyncClient, user: str) -> None:
    await send(guarded_http, call("add_task", {"title": "milk"}, token=own(sub=user)))
    metrics = await guarded_http.get("/metrics")
    assert metrics.status_code == 200
    assert 'todo_tool_call_seconds_count{outcome="ok",tool="add_task"}' in metrics.text
    assert user not in metrics.text
    assert "milk" not in metrics.text
