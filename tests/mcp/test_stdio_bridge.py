"""The bridge of docs/mcp-clients.md for Claude Desktop, which starts a program and talks to it by stdin and stdout."""

import json
import re
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from fastmcp import Client
from fastmcp.client.transports import StdioTransport

from tests.conftest import ROOT
from tests.mcp.servers import ARGUMENTS, theirs
from tests.node_packages import MCP_CLIENTS, install_packages
from tests.processes import ServiceProcess
from tests.support.stored import Stored

pytestmark = pytest.mark.long

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
