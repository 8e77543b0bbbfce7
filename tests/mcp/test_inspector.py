"""MCP Inspector, the client developers try servers with, lists the tools and calls each of them."""

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.mcp.servers import ARGUMENTS, own, theirs
from tests.node_packages import MCP_CLIENTS, install_packages
from tests.processes import ServiceProcess
from tests.support.stored import Stored

pytestmark = pytest.mark.long(seconds=8)

TOOL_FAILED, UNAUTHORIZED = 5, 3  # Inspector's exit codes
ADD = ("--method", "tools/call", "--tool-name", "add_task", "--tool-args-json")

Inspector = Callable[..., Any]


@pytest.fixture(scope="session")
def node_modules() -> Path:
    return install_packages(MCP_CLIENTS)


@pytest.fixture(params=["modern", "legacy"])
def inspector(request: pytest.FixtureRequest, node_modules: Path, server: ServiceProcess, tmp_path: Path) -> Inspector:
    def run(*arguments: str, code: int = 0, base: str | None = None) -> Any:
        program = [str(node_modules / ".bin" / "node"), str((node_modules / ".bin" / "mcp-inspector").resolve())]
        options = ["--cli", f"{base or server.url}/mcp", "--transport", "http", "--protocol-era", request.param]
        done = subprocess.run(
            [*program, *options, *arguments, "--format", "json", "-q"],
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


def test_it_lists_and_calls_all_five(inspector: Inspector, stored: Stored, user: str) -> None:
    token = ("--header", f"Authorization: Bearer {own(sub=user)}")
    lists_all(inspector, *token)
    calls_each(inspector, *token)
    assert [operation for operation, _ in stored.task_calls(user)] == ["add", "complete", "update", "delete"]
    missing = ("--method", "tools/call", "--tool-name", "delete_task", "--tool-args-json", '{"task_id": 1}')
    assert "no task 1" in inspector(*missing, *token, code=TOOL_FAILED)


@pytest.mark.parametrize("inspector", ["modern"], indirect=True)
def test_it_signs_in(inspector: Inspector, guarded: ServiceProcess, stored: Stored, user: str) -> None:
    token = ("--header", f"Authorization: Bearer {theirs(sub=user)}")
    lists_all(inspector, *token, base=guarded.url)
    inspector(*ADD, '{"title": "milk"}', *token, base=guarded.url)
    wrong = ("--header", f"Authorization: Bearer {theirs(sub=user, aud='https://todo.example')}")
    for headers in ((), wrong):
        inspector(*ADD, '{"title": "bread"}', *headers, base=guarded.url, code=UNAUTHORIZED)
    assert stored.titles(user) == ["milk"]
