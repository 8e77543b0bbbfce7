"""MCP Inspector, the client developers try servers with, lists the tools and calls each of them."""

import json
import os
import re
import subprocess
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from fastmcp import Client
from fastmcp.client.transports import StdioTransport

from tests.conftest import ROOT
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


@pytest.fixture
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


def calls_each(inspector: Inspector, *options: str) -> None:
    def ask(tool: str, **arguments: Any) -> Any:
        asked = ("--method", "tools/call", "--tool-name", tool, "--tool-args-json", json.dumps(arguments))
        return inspector(*asked, *options)["structuredContent"]

    added = ask("add_task", title="milk")
    (listed,) = ask("list_tasks")["tasks"]
    assert listed.items() <= added.items()
    assert ask("complete_task", task_id=added["id"])["status"] == "completed"
    assert ask("update_task", task_id=added["id"], title="bread")["title"] == "bread"
    assert ask("delete_task", task_id=added["id"])["deleted"] is True


def lists_all(inspector: Inspector, *options: str) -> None:
    """Strictly: it would fail of a schema that some client or model cannot read."""
    listed = inspector("--method", "tools/list", "--strict", *options)["tools"]
    assert [tool["name"] for tool in listed] == list(ARGUMENTS)
    assert all(tool["outputSchema"] and tool["annotations"] for tool in listed)


@pytest.mark.parametrize("inspector", ["modern"], indirect=True)
def test_it_lists_and_calls_all_five(inspector: Inspector, stored: Stored, user: str) -> None:
    token = ("--header", f"Authorization: Bearer {own(sub=user)}")
    lists_all(inspector, *token)
    calls_each(inspector, *token)
    assert [operation for operation, _ in stored.task_calls(user)] == ["add", "complete", "update", "delete"]
    missing = ("--method", "tools/call", "--tool-name", "delete_task", "--tool-args-json", '{"task_id": 1}')
    assert "no task 1" in inspector(*missing, *token, code=TOOL_FAILED)


@pytest.mark.parametrize("inspector", ["legacy"], indirect=True)
def test_it_speaks_the_older_protocol(inspector: Inspector, stored: Stored, user: str) -> None:
    token = ("--header", f"Authorization: Bearer {own(sub=user)}")
    lists_all(inspector, *token)
    inspector(*ADD, '{"title": "milk"}', *token)
    assert stored.titles(user) == ["milk"]


@pytest.mark.parametrize("inspector", ["modern"], indirect=True)
def test_it_signs_in(inspector: Inspector, guarded: ServiceProcess, stored: Stored, user: str) -> None:
    token = ("--header", f"Authorization: Bearer {theirs(sub=user)}")
    inspector(*ADD, '{"title": "milk"}', *token, base=guarded.url)
    wrong = ("--header", f"Authorization: Bearer {theirs(sub=user, aud='https://todo.example')}")
    for headers in ((), wrong):
        inspector(*ADD, '{"title": "bread"}', *headers, base=guarded.url, code=UNAUTHORIZED)
    assert stored.titles(user) == ["milk"]


DOCUMENT = (ROOT / "docs/mcp-clients.md").read_text()

Bridge = Callable[..., AbstractAsyncContextManager[Client[Any]]]


@pytest.fixture
def bridge(tmp_path: Path) -> Bridge:
    """What the document says, with the locked package in place of npx and another address."""
    entry = json.loads(re.findall(r'`(\{"mcpServers": .*"command".*)`', DOCUMENT)[0])
    yes, package, url = entry["mcpServers"]["todo"]["args"]
    locked = json.loads((MCP_CLIENTS / "package.json").read_text())["dependencies"]["mcp-remote"]
    assert (yes, package, url) == ("-y", f"mcp-remote@{locked}", "http://127.0.0.1:8001/mcp")
    program = install_packages(MCP_CLIENTS) / ".bin" / "mcp-remote"

    @asynccontextmanager
    async def run(base: str, *more: str, **environment: str) -> AsyncIterator[Client[Any]]:
        environment |= {"MCP_REMOTE_CONFIG_DIR": str(tmp_path)}
        transport = StdioTransport(
            str(program), [f"{base}/mcp", *more], env=environment, keep_alive=False, log_file=tmp_path / "log"
        )
        async with Client(transport, mode="legacy") as client:
            yield client

    return run


async def test_it_lists_and_calls(bridge: Bridge, server: ServiceProcess, stored: Stored, user: str) -> None:
    async with bridge(server.url) as client:
        assert [tool.name for tool in await client.list_tools()] == list(ARGUMENTS)
        await client.call_tool("add_task", {"title": user})
    assert user in stored.titles("local")


async def test_with_a_token(bridge: Bridge, guarded: ServiceProcess, stored: Stored, user: str) -> None:
    documented = re.findall(r'to `args`: `(.*?)`; beside them: `"env": (.*?)`', DOCUMENT)[0]
    arguments, variables = json.loads(f"[{documented[0]}]"), json.loads(documented[1])
    variables = {name: value.replace("TOKEN", theirs(sub=user)) for name, value in variables.items()}
    async with bridge(guarded.url, *arguments, **variables) as client:
        await client.call_tool("add_task", {"title": "milk"})
    assert stored.titles(user) == ["milk"]
