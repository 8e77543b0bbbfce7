"""MCP Inspector, the client developers try servers with, lists the tools and calls each of them."""

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.mcp_server.conftest import Rows
from tests.mcp_server.guarded import theirs
from tests.node_packages import installed
from tests.processes import ServiceProcess

pytestmark = pytest.mark.long

TOOL_FAILED, UNAUTHORIZED = 5, 3  # Inspector's exit codes

Inspector = Callable[..., Any]


@pytest.fixture(scope="session")
def node_modules() -> Path:
    return installed(Path(__file__).resolve().parent.parent / "mcp_clients")


@pytest.fixture(params=["modern", "legacy"])
def inspector(
    request: pytest.FixtureRequest, node_modules: Path, server_at: str, database_url: str, tmp_path: Path
) -> Inspector:
    def run(*arguments: str, code: int = 0, base: str = server_at) -> Any:
        program = [str(node_modules / ".bin" / "node"), str((node_modules / ".bin" / "mcp-inspector").resolve())]
        server = ["--cli", f"{base}/mcp", "--transport", "http", "--protocol-era", request.param]
        done = subprocess.run(
            [*program, *server, *arguments, "--format", "json", "-q"],
            env=os.environ | {"HOME": str(tmp_path)},
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert done.returncode == code, done.stdout + done.stderr
        return json.loads(done.stdout)["result"] if code == 0 else done.stdout + done.stderr

    return run


def call(inspector: Inspector, tool: str, **arguments: Any) -> Any:
    answer = inspector("--method", "tools/call", "--tool-name", tool, "--tool-args-json", json.dumps(arguments))
    return answer["structuredContent"]


def test_a_missing_task_is_a_failed_call(inspector: Inspector) -> None:
    call_of_it = ("--method", "tools/call", "--tool-name", "delete_task", "--tool-args-json", '{"task_id": 1}')
    assert "There is no task 1" in inspector(*call_of_it, code=TOOL_FAILED)


def test_it_lists_five_tools_without_complaint(inspector: Inspector) -> None:
    listed = inspector("--method", "tools/list", "--strict")["tools"]
    assert [tool["name"] for tool in listed] == [
        "add_task",
        "list_tasks",
        "complete_task",
        "update_task",
        "delete_task",
    ]
    assert all(tool["outputSchema"] and tool["annotations"] for tool in listed)


@pytest.mark.parametrize("owner", [{}, {"user_id": "alice"}])
def test_it_calls_each_of_them(inspector: Inspector, rows: Rows, owner: dict[str, str]) -> None:
    added = call(inspector, "add_task", **owner, title="milk")
    assert call(inspector, "list_tasks", **owner)["tasks"] == [added]
    assert call(inspector, "complete_task", **owner, task_id=added["id"])["status"] == "completed"
    assert call(inspector, "update_task", **owner, task_id=added["id"], title="bread")["title"] == "bread"
    assert call(inspector, "delete_task", **owner, task_id=added["id"])["deleted"] is True
    assert {change["user_id"] for change in rows.changes()} == {owner.get("user_id", "local")}


def test_it_signs_in_with_a_token(inspector: Inspector, guarded: ServiceProcess, rows: Rows) -> None:
    added = '{"title": "milk"}'
    add = ("--method", "tools/call", "--tool-name", "add_task", "--tool-args-json", added)
    inspector(*add, "--header", f"Authorization: Bearer {theirs()}", base=guarded.url)
    assert [task["user_id"] for task in rows.tasks()] == ["alice"]
    for headers in ((), ("--header", f"Authorization: Bearer {theirs(aud='https://todo.example')}")):
        inspector(*add, *headers, base=guarded.url, code=UNAUTHORIZED)
    assert len(rows.tasks()) == 1
