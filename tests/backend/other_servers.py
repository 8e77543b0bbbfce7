"""Other MCP servers, which are real processes, or answer over HTTP in this one."""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from agents import FunctionTool
from agents.tool_context import ToolContext

from backend.tools.connectors import approved, offered
from backend.tools.connectors.connectors import Connectors
from backend.tools.connectors.link import Link
from backend.tools.connectors.server import Server
from common.database import Database
from tests.conftest import ROOT

SECRET = "a-value-that-nobody-sees"
Connecting = Callable[..., Connectors]


def program(name: str = "web", **given: Any) -> Server:
    """One that knows a secret."""
    told = {"KEY": f"Bearer {SECRET}", **given.pop("environment", {})}
    resolved = {SECRET: "${env:WEB_KEY}"}
    usual: dict[str, Any] = {"read_only": True, "agents": frozenset({"researcher"}), "resolved": resolved}
    arguments = ["-m", "tests.foreign_server"]
    return Server(name, sys.executable, None, arguments, told, directory=str(ROOT), **{**usual, **given})


def at(url: str, name: str = "web", **given: Any) -> Server:
    usual: dict[str, Any] = {"read_only": True, "agents": frozenset({"researcher"})}
    return Server(name, None, f"{url}/mcp", **{**usual, **given})


async def approve(owner: Database, server: Server) -> None:
    """All that it has now."""
    link = Link(server)
    hashes = {tool.name: offered.fingerprint(tool) for tool in await link.tools()}
    await link.close()
    await approved.write(owner, server.name, hashes, all_of_it=True)


async def by_name(connectors: Connectors, agent: str = "researcher") -> dict[str, FunctionTool]:
    return {tool.name: tool for tool in await connectors.tools_for(agent)}


async def call(tool: FunctionTool, **arguments: Any) -> str:
    """What a model reads of it."""
    context = ToolContext[Any](context=None, tool_name=tool.name, tool_call_id="call_1", tool_arguments="{}")
    return await tool.on_invoke_tool(context, json.dumps(arguments))


def lines(file: Path) -> list[str]:
    return file.read_text().splitlines() if file.exists() else []
