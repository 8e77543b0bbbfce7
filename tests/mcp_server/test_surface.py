"""What a client, and through it a model, sees of the tools. A change here changes what every client was built on."""

import json
import math
import tomllib
from pathlib import Path
from typing import Any

import pytest
from fastmcp import Client

from mcp_server.server import VERSION
from tests.mcp_server.calls import Tools

ROOT = Path(__file__).resolve().parent.parent.parent
SNAPSHOT = Path(__file__).with_name("surface.json")
# What a model pays for the tools in every request, at four characters to a token: real tokenizers differ by model.
# Exact, so that no change of it goes unseen: lower it when it falls, and raise it only for what is worth it each time.
TOKENS = {"our agent, without user_id": 1046, "other MCP clients": 1153}

TASK = {"id", "title", "description", "status", "due", "priority", "labels", "repeat", "series"}
TASK |= {"created_at", "updated_at", "completed_at", "next", "deleted", "deleted_at", "also", "not_found"}
DETAILS = ["due", "priority", "labels", "repeat"]
PARAMETERS = {
    "add_task": ["user_id", "title", "description", "also", *DETAILS],
    "list_tasks": ["user_id", "status", "query", "due", "done", "label", "priority", "order", "cursor", "limit"],
    "complete_task": ["user_id", "task_id", "also"],
    "update_task": [
        *["user_id", "task_id", "title", "description", "also", "due", "priority", "labels", "add_labels"],
        *["remove_labels", "repeat", "status", "undo"],
    ],
    "delete_task": ["user_id", "task_id", "also"],
}
REQUIRED = {"add_task": ["title"], "list_tasks": [], "complete_task": ["task_id"]} | {
    "update_task": ["task_id"],
    "delete_task": ["task_id"],
}
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


@pytest.fixture
async def listed(tools: Tools) -> list[dict[str, Any]]:
    return [tool.model_dump(mode="json", by_alias=True, exclude_none=True) for tool in await tools.client.list_tools()]


async def test_names_parameters_and_results(listed: list[dict[str, Any]]) -> None:
    assert {tool["name"]: list(tool["inputSchema"]["properties"]) for tool in listed} == PARAMETERS
    assert [tool["name"] for tool in listed] == list(PARAMETERS)
    assert {tool["name"]: tool["inputSchema"].get("required", []) for tool in listed} == REQUIRED
    for tool in listed:
        assert set(tool["outputSchema"]["properties"]) == RESULTS.get(tool["name"], TASK)


async def test_every_tool_has_a_title_annotations_and_described_parameters(listed: list[dict[str, Any]]) -> None:
    for tool in listed:
        hints = tool["annotations"]
        assert tool["title"]
        assert tool["description"]
        assert (hints["readOnlyHint"], hints["destructiveHint"], hints["idempotentHint"]) == HINTS[tool["name"]]
        assert hints["openWorldHint"] is False
        assert tool["inputSchema"]["additionalProperties"] is False
        assert all(parameter["description"] for parameter in tool["inputSchema"]["properties"].values())


async def test_the_surface_is_the_recorded_one(listed: list[dict[str, Any]]) -> None:
    """If the change is meant: write `json.dumps(listed, indent=2)` into surface.json, and read the difference."""
    surface = [{name: value for name, value in tool.items() if name != "_meta"} for tool in listed]
    assert surface == json.loads(SNAPSHOT.read_text())


async def test_the_tools_cost_a_model_this_much(listed: list[dict[str, Any]]) -> None:
    others = tokens(listed)
    for tool in listed:
        del tool["inputSchema"]["properties"]["user_id"]
    assert {"our agent, without user_id": tokens(listed), "other MCP clients": others} == TOKENS


def tokens(listed: list[dict[str, Any]]) -> int:
    sent = [{name: tool[name] for name in ("name", "description", "inputSchema")} for tool in listed]
    return math.ceil(len(json.dumps(sent, separators=(",", ":"))) / 4)


async def test_the_server_introduces_itself(server_at: str) -> None:
    async with Client(f"{server_at}/mcp", mode="legacy") as client:
        hello = client.initialize_result
        assert hello is not None
        assert hello.server_info.name == "todo"
        assert hello.server_info.version == VERSION
        assert hello.instructions


def test_the_version_is_the_project_s() -> None:
    assert tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"] == VERSION
