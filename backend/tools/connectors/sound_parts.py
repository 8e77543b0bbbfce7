"""Removes invalid parts of other MCP servers' lists and results: for one of them, the SDK drops the whole message."""

import json
from typing import Any

_TOOL_SCHEMAS = ("inputSchema", "outputSchema")
# The fields of results other than those of tool calls.
_OTHERS = {"tools", "serverInfo", "protocolVersion", "capabilities", "supportedVersions", "inputRequests"}
_MAX_KIND_CHARS = 40


def repair_result(result: dict[str, Any]) -> None:
    if isinstance(result.get("tools"), list):
        result["tools"] = [tool for one in result["tools"] if (tool := _repair_tool(one)) is not None]
        if not isinstance(result.get("nextCursor"), str):
            result.pop("nextCursor", None)
    elif not result.keys() & _OTHERS:
        _repair_output(result)


def _repair_tool(tool: Any) -> dict[str, Any] | None:
    """Returns a tool without fields that cannot be read; None if it has no name."""
    if not isinstance(tool, dict) or not isinstance(tool.get("name"), str) or not tool["name"]:
        return None
    sound = {"name": tool["name"], "inputSchema": {"type": "object"}}
    if isinstance(tool.get("description"), str):
        sound["description"] = tool["description"]
    for name in _TOOL_SCHEMAS:
        if isinstance(schema := tool.get(name), dict):
            sound[name] = {**schema, "type": "object"}  # without which the SDK (mcp 2.3) drops the list
    return sound


def _repair_output(result: dict[str, Any]) -> None:
    """Converts the parts of a call's result to texts, as only texts are read."""
    content, structured = result.get("content"), result.get("structuredContent")
    parts = content if isinstance(content, list) else [] if content is None else [content]
    result["content"] = [{"type": "text", "text": _render_part(part)} for part in parts]
    if not isinstance(structured, dict):
        result.pop("structuredContent", None)
        if structured is not None:
            result["content"].append({"type": "text", "text": json.dumps(structured, ensure_ascii=False)})
    result["isError"] = bool(result.get("isError"))


def _render_part(part: Any) -> str:
    match part:
        case str():
            return part
        case {"text": str(text)} | {"resource": {"text": str(text)}}:
            return text
        case {"type": str(kind)}:
            return f"[{kind[:_MAX_KIND_CHARS]}: left out, as only texts are read]"
        case _:
            return "[left out, as only texts are read]"
