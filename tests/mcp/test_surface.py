"""Which tools there are, and with which arguments: what every client was built on."""

import tomllib
from typing import Any

import httpx2
import pytest
from fastmcp import Client
from fastmcp.client.transports import StreamableHttpTransport

from tests.conftest import ROOT
from tests.mcp.servers import own
from tests.mcp.wire import LEGACY, MODERN, request, send
from tests.processes import ServiceProcess

PARAMETERS = {
    "add_task": "title* description also due priority labels repeat",
    "list_tasks": "status query due done label priority order cursor limit",
    "complete_task": "task_id* also",
    "update_task": "task_id* title description also due priority labels add_labels remove_labels repeat status undo",
    "delete_task": "task_id* also",
}
"""Required ones have a star."""
TASK = {"id", "title", "description", "status", "due", "priority", "labels", "repeat", "series", "created_at"}
TASK |= {"updated_at", "completed_at", "next", "deleted", "deleted_at", "also", "not_found"}
RESULTS = {
    "list_tasks": {"tasks", "next_cursor", "total", "now", "time_zone", "nearest"},
    "delete_task": {"id", "title", "deleted", "task", "also", "not_found"},
}
HINTS = {  # read-only, destructive, idempotent
    "add_task": (False, False, False),
    "list_tasks": (True, False, True),
    "complete_task": (False, False, True),
    "update_task": (False, True, False),
    "delete_task": (False, True, True),
}


async def tools_of(http: httpx2.AsyncClient, version: str, token: str | None = None) -> list[dict[str, Any]]:
    return (await send(http, request("tools/list", version=version, token=token))).json()["result"]["tools"]


def parameters(tool: dict[str, Any]) -> str:
    schema = tool["inputSchema"]
    return " ".join(f"{name}*" if name in schema.get("required", []) else name for name in schema["properties"])


@pytest.mark.parametrize("version", [MODERN, LEGACY])
async def test_the_five_tools(http: httpx2.AsyncClient, version: str) -> None:
    tools = await tools_of(http, version)
    assert {tool["name"]: parameters(tool) for tool in tools} == PARAMETERS
    for tool in tools:
        assert set(tool["outputSchema"]["properties"]) == RESULTS.get(tool["name"], TASK)
        hints = tool["annotations"]
        assert (hints["readOnlyHint"], hints["destructiveHint"], hints["idempotentHint"]) == HINTS[tool["name"]]
        assert tool["title"]
        assert tool["description"]
        assert all(parameter["description"] for parameter in tool["inputSchema"]["properties"].values())


async def test_with_sign_in_each_tool_has_a_user_id(http: httpx2.AsyncClient, guarded_http: httpx2.AsyncClient) -> None:
    signed_in = await tools_of(guarded_http, MODERN, own())
    for tool in signed_in:
        assert tool["inputSchema"]["properties"].pop("user_id")["default"] == ""
    assert signed_in == await tools_of(http, MODERN)


async def test_a_client_connects(server: ServiceProcess) -> None:
    transport = StreamableHttpTransport(f"{server.url}/mcp", headers={"Authorization": f"Bearer {own()}"}, verify=False)
    async with Client(transport, mode="legacy") as client:
        hello = client.initialize_result
        assert hello is not None
        assert hello.server_info.name == "todo"
        assert hello.server_info.version == tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
        assert hello.instructions
        assert [tool.name for tool in await client.list_tools()] == list(PARAMETERS)
