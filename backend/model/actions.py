"""The actions that a model writes as JSON objects in its text: a tool call or a final answer."""

import json
import re
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from backend.model.tool_calls import ParsedToolCall, parse_json, storable

_KEYS = frozenset({"thought", "action", "tool", "target_agent", "args", "answer"})
_CALL_KEYS = frozenset({"name", "arguments", "parameters", "id", "type", "thought"})
_ACTIONS = ("use_tool", "delegate", "final")
_ABSENT = ("", "null", "none")  # models write words for null
_AGENT_TOOL = "do_with_"  # begins the names of the tools that start agents
_LONGEST_NAME = 60

# A string, so that a comma in it stays, or a comma that closes an object or a list.
_TRAILING_COMMA = re.compile(r'("(?:\\.|[^"\\])*+")|,(?=\s*[}\]])', re.DOTALL)


@dataclass(frozen=True)
class Final:
    answer: str


@dataclass(frozen=True)
class Fault:
    """An action that cannot be carried out; `reason` is a sentence for the model."""

    reason: str


Action = ParsedToolCall | Final | Fault


def read_object(text: str, tools: Collection[str]) -> tuple[Action | None, str]:
    """Returns the action in a JSON object that a model wrote as text, None for other JSON, and the reasoning in it."""
    try:
        value = json.loads(_TRAILING_COMMA.sub(lambda match: match[1] or "", text), strict=False)
    except (ValueError, RecursionError) as error:
        fault = Fault(f"it is not valid JSON ({error}).") if looks_like_action(text, tools) else None
        return fault, ""
    if not isinstance(value, dict) or not _is_action(value, tools):
        return None, ""
    thought = value.get("thought")
    return _parse_action(value, tools), thought.strip() if isinstance(thought, str) else ""


def looks_like_action(text: str, tools: Collection[str]) -> bool:
    if re.match(rf"""\{{\s*["'](?:{"|".join(_KEYS)})["']\s*:""", text):
        return True
    if re.search(r"""["']name["']\s*:.*["'](?:arguments|parameters)["']\s*:""", text, re.DOTALL):
        return True
    names = "|".join(map(re.escape, tools))
    return bool(names and re.search(rf"""["'](?:name|tool|target_agent)["']\s*:\s*["'](?:{names})["']""", text))


def _is_action(value: dict[str, Any], tools: Collection[str]) -> bool:
    """Whether an object is an action rather than JSON that the user wanted: that has other keys, and names no tool."""
    keys = value.keys() & _KEYS
    return (
        value.get("action") in _ACTIONS
        or keys == value.keys() != set()
        or len(keys) > len(_KEYS) / 2
        or any(_text(value, key) in tools for key in ("name", "tool", "target_agent"))
        or (value.keys() <= _CALL_KEYS and "name" in value and bool(value.keys() & {"arguments", "parameters"}))
    )


def _parse_action(value: dict[str, Any], tools: Collection[str]) -> Action:
    tool, agent = _text(value, "name") or _text(value, "tool"), _text(value, "target_agent")
    action = _text(value, "action").lower() or _infer_action(value, tool, agent)
    match action:
        case "final":
            return _parse_final(value)
        case "use_tool" | "tool":
            return _parse_call(value, "tool", tool or agent, tools)
        case "delegate":
            return _parse_call(value, "agent", agent or tool, tools)
        case _:
            return _report_unknown("action", action, _ACTIONS)


def _infer_action(value: dict[str, Any], tool: str, agent: str) -> str:
    if tool and agent:
        return ""
    if tool:
        return "use_tool"
    if agent:
        return "delegate"
    return "final" if value.get("answer") else ""


def _parse_final(value: dict[str, Any]) -> Action:
    answer = value.get("answer")
    if isinstance(answer, dict | list):
        return Fault('"answer" is not a text.')
    return Final(answer.strip() if isinstance(answer, str) else "" if answer is None else json.dumps(answer))


def _parse_call(value: dict[str, Any], kind: str, name: str, tools: Collection[str]) -> Action:
    tool = next((one for one in (name, f"{_AGENT_TOOL}{name.lower()}") if one in tools), None)
    if tool is None:
        agents = [tool.removeprefix(_AGENT_TOOL) for tool in tools if tool.startswith(_AGENT_TOOL)]
        return _report_unknown(kind, name, agents if kind == "agent" else tools)
    arguments = _parse_arguments(value)
    if arguments is None:
        return Fault(f'The arguments of {tool} are not a JSON object, as in {{"name": …, "arguments": {{…}}}}.')
    if tool.startswith(_AGENT_TOOL) and not arguments.get("task"):
        task = _text(value, "answer")  # where the protocol has it as well
        if not task:
            return Fault(f'The task is missing: say in "args" what {tool} is to do, as {{"task": "…"}}.')
        arguments = {**arguments, "task": task}
    return ParsedToolCall(tool, storable(json.dumps(arguments, ensure_ascii=False)))


def _report_unknown(kind: str, name: str, existing: Collection[str]) -> Fault:
    fault = f'There is no {kind} "{name[:_LONGEST_NAME]}".' if name else f"The {kind} is missing."
    return Fault(f"{fault} These exist: {', '.join(sorted(existing)) or 'none'}.")


def _parse_arguments(value: dict[str, Any]) -> dict[str, Any] | None:
    arguments = next((value[key] for key in ("arguments", "parameters", "args") if value.get(key)), {})
    if isinstance(arguments, str):
        arguments = {} if arguments.strip().lower() in _ABSENT else parse_json(arguments)
    return arguments if isinstance(arguments, dict) else None


def _text(value: dict[str, Any], key: str) -> str:
    text = value.get(key)
    return text.strip() if isinstance(text, str) and text.strip().lower() not in _ABSENT else ""
