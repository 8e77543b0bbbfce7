"""Which tools there are, and with which arguments: what every client was built on."""

import copy
import tomllib
from typing import Any

import httpx2
import pytest
from agents.strict_schema import ensure_strict_json_schema
from fastmcp import Client
from fastmcp.client.transports import StreamableHttpTransport

from tests.conftest import ROOT
from tests.mcp.calls import FULL, Tools, due
from tests.mcp.servers import own
from tests.mcp.wire import LEGACY, MODERN, request, send
from tests.processes import ServiceProcess

PARAMETERS = {
    "add_task": {*FULL, "also"},
    "list_tasks": {"status", "query", "due", "done", "label", "priority", "order", "cursor", "limit"},
    "complete_task": {"task_id", "also"},
    "update_task": {*FULL, "task_id", "also", "add_labels", "remove_labels", "status", "undo"},
    "delete_task": {"task_id", "also"},
}
TASK = {*FULL, "user_id", "id", "status", "series", "created_at", "updated_at", "completed_at"}
TASK |= {"next", "deleted", "deleted_at", "also", "not_found"}
REQUIRED_ARGUMENTS = {"add_task": ["title"], "list_tasks": []}
REQUIRED_ARGUMENTS |= {name: ["task_id"] for name in ("complete_task", "update_task", "delete_task")}
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


@pytest.mark.parametrize("version", [MODERN, LEGACY])
async def test_the_five_tools(http: httpx2.AsyncClient, version: str) -> None:
    tools = await tools_of(http, version)
    assert [tool["name"] for tool in tools] == [*PARAMETERS]
    for tool in tools:
        assert set(tool["inputSchema"]["properties"]) == PARAMETERS[tool["name"]]
        assert tool["inputSchema"]["required"] == REQUIRED_ARGUMENTS[tool["name"]]
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


KEYWORDS = {"type", "description", "default", "enum", "items", "maxItems", "maxLength", "minimum", "maximum"}
TYPES = {str: "string", bool: "boolean", int: "integer", list: "array"}
SHOWN = FULL | {"due": due("2026-11-27 15:00")}
EMPTY: dict[str, Any] = {"description": "", "labels": []}
# What each tool must be given, and what it changes of the task.
REQUIRED: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "add_task": ({"title": "bread"}, {}),
    "list_tasks": ({}, {}),
    "complete_task": ({"task_id": 1}, {"status": "completed"}),
    "update_task": ({"task_id": 1, "title": "oat milk"}, {"title": "oat milk"}),
    "delete_task": ({"task_id": 1}, {}),
}


@pytest.fixture
async def schemas(tools: Tools) -> dict[str, dict[str, Any]]:
    listed = await send(tools.http, request("tools/list"))
    return {tool["name"]: tool["inputSchema"] for tool in listed.json()["result"]["tools"]}


async def test_optional_arguments_have_defaults_and_plain_types(schemas: dict[str, dict[str, Any]]) -> None:
    for schema in schemas.values():
        # google-genai's converter rejects additionalProperties; others reject anyOf, null and type arrays.
        assert schema.keys() == {"type", "properties", "required"}
        for name, spec in schema["properties"].items():
            assert spec.keys() <= KEYWORDS, name
            assert spec["type"] in TYPES.values()
            assert ("default" in spec) == (name not in schema["required"])
            assert None not in spec.get("enum", [])
            assert "" not in spec.get("enum", []), "Gemini rejects an empty text in an enum"
            if spec["type"] == "array":
                assert spec["items"]["type"] in ("string", "integer")
            if "default" in spec:
                assert TYPES[type(spec["default"])] == spec["type"]
                assert spec["default"] in spec.get("enum", [spec["default"]])


async def test_the_agents_sdk_makes_strict_schemas(schemas: dict[str, dict[str, Any]]) -> None:
    for schema in schemas.values():
        strict = ensure_strict_json_schema(copy.deepcopy(schema))
        assert strict["required"] == [*schema["properties"]]
        assert strict["additionalProperties"] is False
        assert strict["properties"] == schema["properties"]


def sent(schema: dict[str, Any], spelled: str) -> dict[str, Any]:
    defaults = {name: spec["default"] for name, spec in schema["properties"].items() if "default" in spec}
    return dict.fromkeys(defaults) if spelled == "null" else defaults


@pytest.mark.parametrize("tool", REQUIRED)
@pytest.mark.parametrize("spelled", ["default", "null"])
async def test_what_is_sent_for_not_given_changes_nothing(
    tools: Tools, schemas: dict[str, dict[str, Any]], tool: str, spelled: str
) -> None:
    await tools.add(**FULL)
    arguments, change = REQUIRED[tool]
    result = await tools.call(tool, **sent(schemas[tool], spelled) | arguments)
    tasks = await tools.tasks(limit=1)
    if tool == "list_tasks":
        assert len(result["tasks"]) == 1
    if tool == "add_task":
        bread = tasks.pop(1)
        assert {name: bread[name] for name in FULL} == dict.fromkeys(FULL) | EMPTY | arguments
    if tool == "delete_task":
        assert tasks == []
    else:
        expected = SHOWN | {"status": "pending"} | change
        assert {name: tasks[0][name] for name in expected} == expected


@pytest.mark.parametrize("spelled", ["default", "null"])
async def test_each_change_can_be_made_alone_though_all_are_sent(
    tools: Tools, schemas: dict[str, dict[str, Any]], spelled: str
) -> None:
    nothing: dict[str, Any] = sent(schemas["update_task"], spelled) | {"task_id": 1}
    await tools.add(**FULL)
    assert "Nothing" in await tools.error("update_task", **nothing)
    changes: dict[str, tuple[Any, str, Any]] = {name: ("none", name, EMPTY.get(name)) for name in FULL} | {
        "title": ("oat milk", "title", "oat milk"),
        "remind": ("default", "remind", None),
        "due": ("+1w", "due", due("2026-12-04 15:00")),
        "labels": (["a"], "labels", ["a"]),
        "add_labels": (["b"], "labels", ["a", "b"]),
        "remove_labels": (["*"], "labels", []),
        "status": ("completed", "status", "completed"),
    }
    assert {*changes, "task_id", "also", "undo"} == {*schemas["update_task"]["properties"]}
    [task] = await tools.tasks()
    for argument, (value, field, expected) in changes.items():
        changed = await tools.call("update_task", **{**nothing, argument: value})
        assert changed[field] == expected
        others = task.keys() - {field, "updated_at", "completed_at"}
        assert {name: task[name] for name in others} == {name: changed[name] for name in others}
        task = {name: changed[name] for name in task}
    reopened = await tools.call("update_task", **{**nothing, "undo": True})
    assert (reopened["status"], reopened["title"]) == ("pending", "oat milk")
