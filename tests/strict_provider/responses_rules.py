"""What OpenAI's Responses API rejects, by its reference and by public reports; see `sources.md`."""

import json
import re
from collections.abc import Iterator
from typing import Any

Json = dict[str, Any]

_FIELDS = {
    *("background", "context_management", "conversation", "include", "input", "instructions", "max_output_tokens"),
    *("max_tool_calls", "metadata", "model", "parallel_tool_calls", "previous_response_id", "prompt"),
    *("prompt_cache_key", "prompt_cache_retention", "reasoning", "safety_identifier", "service_tier", "store"),
    *("stream", "stream_options", "temperature", "text", "tool_choice", "tools", "top_logprobs", "top_p"),
    *("truncation", "user"),
}
_ITEM_FIELDS = {
    "message": {"type", "role", "content", "status", "id", "phase"},
    "reasoning": {"type", "summary", "content", "encrypted_content", "status", "id"},
    "function_call": {"type", "call_id", "name", "arguments", "status", "id"},
    "function_call_output": {"type", "call_id", "output", "status", "id"},
}
_REASONS = re.compile(r"(ft:)?(o\d|gpt-([5-9]|\d\d))(?!\S*-chat)|\S*codex")
_EFFORTS = {
    r"gpt-6(\.\d)?-(astra|sol)": ("low", "medium", "high", "xhigh", "max"),
    r"\S*-pro": ("medium", "high", "xhigh"),
    "": ("none", "low", "medium", "high", "xhigh", "max"),
}
_LEAST_OUTPUT = 16


def find_violations(body: Json, issued: dict[str, str]) -> Iterator[str]:
    """Yields reasons; `issued` are the encrypted contents that were sent, with the model of each."""
    yield from _check_fields(body)
    yield from _check_tools(body.get("tools", ()))
    for number, item in enumerate(body["input"]):
        yield from _check_item(number, item, body)
    yield from _check_order(body["input"])
    for item in body["input"]:
        if item["type"] == "reasoning" and issued.get(item["encrypted_content"]) != body["model"]:
            yield f"The encrypted content {item['encrypted_content'][:4]}… could not be verified."


def _check_fields(body: Json) -> Iterator[str]:
    yield from (f"Unknown parameter: '{name}'." for name in body if name not in _FIELDS)
    model, reasoning = body["model"], body.get("reasoning", {})
    reasons = _REASONS.match(model) is not None
    if body.get("max_output_tokens", _LEAST_OUTPUT) < _LEAST_OUTPUT:
        yield f"Invalid 'max_output_tokens': integer below minimum value. Expected a value >= {_LEAST_OUTPUT}."
    if reasons and "temperature" in body and reasoning.get("effort") != "none":
        yield "Unsupported parameter: 'temperature' is not supported with this model."
    yield from (f"Unknown parameter: 'reasoning.{name}'." for name in reasoning if name not in ("effort", "summary"))
    if reasoning and not reasons:
        yield "Unsupported parameter: 'reasoning.effort' is not supported with this model."
    efforts = next(efforts for name, efforts in _EFFORTS.items() if re.match(name, model))
    if reasoning.get("effort", efforts[0]) not in efforts:
        yield f"Unsupported value: '{reasoning['effort']}' is not supported with the '{model}' model."
    if body.get("include") and not reasons:
        yield "Encrypted content is not supported with this model."
    if "stream_options" in body and not body.get("stream"):
        yield "The 'stream_options' parameter is only allowed when 'stream' is enabled."
    if body.get("store", True):
        yield "store: this stand-in expects false"


def _check_tools(tools: Any) -> Iterator[str]:
    for number, tool in enumerate(tools):
        if tool.get("type") != "function" or not re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", tool.get("name", "")):
            yield f"Missing required parameter: 'tools[{number}].name'."
        if tool.get("strict", True):  # the default, with which every argument is required
            yield f"Invalid schema for function '{tool.get('name')}': 'required' is required to be supplied."


def _check_item(number: int, item: Json, body: Json) -> Iterator[str]:
    kind = item.get("type")
    if kind not in _ITEM_FIELDS:
        yield f"Invalid value: '{kind}' at 'input[{number}]'."
        return
    yield from (f"Unknown parameter: 'input[{number}].{name}'." for name in item if name not in _ITEM_FIELDS[kind])
    if "id" in item and not body.get("store"):
        yield f"Item with id '{item['id']}' not found. Items are not persisted when `store` is set to false."
    match item:
        case {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": str()}]}:
            if item.get("phase", "final_answer") not in ("commentary", "final_answer"):
                yield f"Invalid value: 'input[{number}].phase'."
        case {"type": "message", "role": "user" | "developer", "content": [{"type": "input_text", "text": str()}]}:
            if "phase" in item:
                yield f"Unknown parameter: 'input[{number}].phase'."
        case {"type": "reasoning", "summary": list(), "encrypted_content": str()}:
            pass
        case {"type": "function_call", "call_id": str(), "name": str(name), "arguments": str(arguments)}:
            if not re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", name) or not isinstance(json.loads(arguments), dict):
                yield f"Invalid 'input[{number}].name': string does not match pattern."
        case {"type": "function_call_output", "call_id": str(), "output": str()}:
            pass
        case _:
            yield f"Missing required parameter: 'input[{number}]'."


def _check_order(items: list[Json]) -> Iterator[str]:
    called, answered = set[str](), set[str]()
    for number, item in enumerate(items):
        following = items[number + 1] if number + 1 < len(items) else {}
        is_output = following.get("type") in ("function_call", "reasoning") or following.get("role") == "assistant"
        if item["type"] == "reasoning" and not is_output:
            yield "Item 'rs_…' of type 'reasoning' was provided without its required following item."
        if item["type"] == "function_call":
            called.add(item["call_id"])
        if item["type"] == "function_call_output":
            if item["call_id"] not in called:
                yield f"No tool call found for function call output with call_id {item['call_id']}."
            answered.add(item["call_id"])
    yield from (f"No tool output found for function call {call_id}." for call_id in called - answered)
