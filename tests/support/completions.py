"""Renders parts of chat completions, and checks the messages of requests."""

import json
from typing import Any


def chunk(delta: dict[str, Any], finish: str | None = None) -> str:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    body = {"id": "x", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [choice]}
    return f"data: {json.dumps(body)}\n\n"


def call_delta(**fields: Any) -> dict[str, Any]:
    arguments = fields.pop("arguments", None)
    name = fields.pop("name", None)
    function = {key: value for key, value in (("name", name), ("arguments", arguments)) if value is not None}
    return {"tool_calls": [{"type": "function", "function": function, **fields}]}


def orchestrator_json(**values: Any) -> str:
    """Returns the JSON object of an orchestrator's response with all of its keys."""
    empty = {"thought": "", "action": "", "tool": None, "target_agent": None, "args": {}, "answer": ""}
    return json.dumps(empty | values)


def check_pairs(messages: list[dict[str, Any]]) -> None:
    """Checks that the outputs of a message's tool calls follow it in order, and that there are no other outputs."""
    index = 0
    while index < len(messages):
        calls = [call["id"] for call in messages[index].get("tool_calls") or []]
        answers = messages[index + 1 : index + 1 + len(calls)]
        assert [answer.get("tool_call_id") for answer in answers] == calls
        index += 1 + len(calls)
        assert index >= len(messages) or messages[index]["role"] != "tool"
