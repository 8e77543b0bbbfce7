"""MCP Inspector, the client developers try servers with, lists the tools and calls each of them."""

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.mcp_server.conftest import Rows
from tests.mcp_server.guarded import ARGUMENTS, theirs
from tests.node_packages import MCP_CLIENTS, installed
from tests.processes import ServiceProcess

pytestmark = pytest.mark.long(seconds=8)

TOOL_FAILED, UNAUTHORIZED = 5, 3  # Inspector's exit codes
ADD = ("--method", "tools/call", "--tool-name", "add_task", "--tool-args-json")

Inspector = Callable[..., Any]


@pytest.fixture(scope="session")
def node_modules() -> Path:
    return installed(MCP_CLIENTS)


@pytest.fixture(params=["modern", "legacy"])
def inspector(
    request: pytest.FixtureRequest, node_modules: Path, server_at: str, database_url: str, tmp_path: Path
) -> Inspector:
    def run(*arguments: str, code: int = 0, base: str | None = None) -> Any:
        program = [str(node_modules / ".bin" / "node"), str((node_modules / ".bin" / "mcp-inspector").resolve())]
        server = ["--cli", f"{base or server_at}/mcp", "--transport", "http", "--protocol-era", request.param]
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


def call(inspector: Inspector, tool: str, *options: str, base: str | None = None, **arguments: Any) -> Any:
    asked = ("--method", "tools/call", "--tool-name", tool, "--tool-args-json", json.dumps(arguments))
    return inspector(*asked, *options, base=base)["structuredContent"]


def calls_each(inspector: Inspector, *options: str, base: str | None = None, **owner: str) -> None:
    def ask(tool: str, **arguments: Any) -> Any:
        return call(inspector, tool, *options, base=base, **owner, **arguments)

    added = ask("add_task", title="milk")
    (listed,) = ask("list_tasks")["tasks"]
    assert listed.items() <= added.items()
    assert ask("complete_task", task_id=added["id"])["status"] == "completed"
    assert ask("update_task", task_id=added["id"], title="bread")["title"] == "bread"
    assert ask("delete_task", task_id=added["id"])["deleted"] is True


def lists_all(inspector: Inspector, *options: str, base: str | None = None) -> None:
    """Strictly: it would fail of a schema that some client or model cannot read."""
    listed = inspector("--method", "tools/list", "--strict", *options, base=base)["tools"]
    assert [tool["name"] for tool in listed] == list(ARGUMENTS)
    assert all(tool["outputSchema"] and tool["annotations"] for tool in listed)


def test_a_missing_task_is_a_failed_call(inspector: Inspector) -> None:
    call_of_it = ("--method", "tools/call", "--tool-name", "delete_task", "--tool-args-json", '{"task_id": 1}')
    assert "There is no task 1" in inspector(*call_of_it, code=TOOL_FAILED)


def test_it_lists_and_calls_all_five(inspector: Inspector, rows: Rows) -> None:
    lists_all(inspector)
    calls_each(inspector)
    inspector(*ADD, '{"title": "milk", "user_id": "alice"}')
    assert [change["user_id"] for change in rows.changes()] == [*["local"] * 4, "alice"]


def test_it_lists_and_calls_with_a_token(inspector: Inspector, guarded: ServiceProcess, rows: Rows) -> None:
    token = ("--header", f"Authorization: Bearer {theirs()}")
    lists_all(inspector, *token, base=guarded.url)
    inspector(*ADD, '{"title": "milk"}', *token, base=guarded.url)
    assert [change["user_id"] for change in rows.changes()] == ["alice"]


def test_it_is_turned_away_without_a_valid_token(inspector: Inspector, guarded: ServiceProcess, rows: Rows) -> None:
    add = (*ADD, '{"title": "milk"}')
    for headers in ((), ("--header", f"Authorization: Bearer {theirs(aud='https://todo.example')}")):
        inspector(*add, *headers, base=guarded.url, code=UNAUTHORIZED)
    assert rows.tasks() == []
