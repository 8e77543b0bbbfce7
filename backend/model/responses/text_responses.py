"""Reads responses of models that write tool calls as text: text for the user, reasoning and actions."""

import json
import re
from collections.abc import Collection, Iterator
from itertools import islice
from typing import Any

from backend.model.markup.quoting import Quotable
from backend.model.tool_calls import ParsedToolCall, parse_json, storable

NO_ANSWER = "[NO ANSWER]"

# Possessive and bounded, so that the time for a run of backticks grows with its length only.
_MARK = r"<tool_call>|```(?:json|tool_call)?(?!\w)|`|\["
_OBJECT = rf"""(?<!\s)\s*+(?>(?>{_MARK})\s*+){{0,4}}+(?=\{{\s*["'])"""
_OBJECT_OR_CODE = re.compile(rf"(?P<marks>{_OBJECT})|```.*?(?:```|\Z)", re.DOTALL)
# What is held back has room for more marks, as "``" may become one.
_HELD = re.compile(r"""(?<!\s)\s*+(?>(?><tool_call>|`(?!``)|\[)\s*+){0,8}+(?:```|(?=\{\s*["']))""")
_POSSIBLY_HELD = re.compile(rf"(?<!\s)\s*+(?>(?>{_MARK})\s*+){{0,8}}+(?:<[a-z_]*|\{{\s*)?\Z")
_AFTER_ACTION = re.compile(r"(?>\s*+(?></?tool_call>|```(?:json|tool_call)?(?!\w)|`|\]|,))*+")
_STRING_OR_BRACE = re.compile(r'"(?:\\.|[^"\\])*+(?P<end>"?)|[{}]', re.DOTALL)
_FENCE = "```"
_MAX_MARKS_CHARS = 1_000  # characters before an object, which each piece of the response searches again
# More would hold the event loop: objects in a response, strings and braces of one, and characters of one with a comma
# too many.
_MAX_OBJECTS, _MAX_TOKENS, _MAX_REPAIRED_CHARS = 1_000, 50_000, 20_000

_KEYS = frozenset({"thought", "action", "tool", "target_agent", "args", "answer"})
_CALL_KEYS = frozenset({"name", "arguments", "parameters", "id", "type", "thought"})
_ACTIONS = ("use_tool", "delegate", "final")
_ABSENT = ("", "null", "none")  # models write words for null
_AGENT_TOOL = "do_with_"  # begins the names of the tools that start agents
_MAX_NAME_CHARS = 60

# A string, so that a comma in it stays, or a comma that closes an object or a list.
_TRAILING_COMMA = re.compile(r'("(?:\\.|[^"\\])*+")|,(?=\s*[}\]])', re.DOTALL)
_NAME_KEY = re.compile(r"""["']name["']\s*:""")
_ARGUMENTS_KEY = re.compile(r"""["'](?:arguments|parameters)["']\s*:""")


Action = ParsedToolCall | str
"""A call, or a final answer."""


class Fault(Exception):
    """An action cannot be carried out; the text is a sentence for the model."""


class TextResponse:
    """Passes text on up to the first object or code block, and reads the rest at the end of the response.

    Text between and after calls is dropped: it was written before their outputs were known. The `goal` is what the user
    wants, which an agent gets that is called without a task.
    """

    def __init__(
        self, tools: Collection[str], *, goal: str, quotable: Quotable | None = None, follows_text: bool = False
    ) -> None:
        self.raw = ""
        self.calls: list[ParsedToolCall] = []
        self.fault: str | None = None
        self.has_text = follows_text
        self._tools, self._goal, self._quotable = tools, goal, quotable or Quotable(())
        self._pending = ""
        self._is_held = False
        self._is_separated = follows_text  # from the text before, by an object

    def feed(self, text: str) -> str:
        """Returns what of the text read so far is to be shown now."""
        self.raw += text
        self._pending += text
        if self._is_held:
            return ""
        end = len(self._pending)
        if held := _HELD.search(self._pending):
            self._is_held, end = True, held.start()
        elif possible := _POSSIBLY_HELD.search(self._pending, max(0, end - _MAX_MARKS_CHARS)):
            end = possible.start()
        passed, self._pending = self._pending[:end], self._pending[end:]
        return self._separate(passed)

    def finish(self, *, cut_off: bool) -> tuple[str, str]:
        """Returns the rest, with the final answers unless there are calls, and its reasoning; nothing after a fault."""
        try:
            found = list(_split_at_actions(self._pending, self._tools, self._goal, self._quotable, cut_off=cut_off))
        except Fault as fault:
            self.fault = str(fault)
            return "", ""
        actions = [action for _, action, _ in found]
        self.calls = [action for action in actions if isinstance(action, ParsedToolCall)]
        text = ""
        for before, action, _ in found:
            text += self._separate(before)
            if isinstance(action, ParsedToolCall):
                break
            self._is_separated = True
            if isinstance(action, str) and not self.calls:
                text += self._separate(action)
                self._is_separated = True
        if not self.calls and not self.has_text and any(isinstance(action, str) for action in actions):
            text += NO_ANSWER
        return text, "\n".join(thought for _, _, thought in found if thought)

    def _separate(self, text: str) -> str:
        """Returns text as a new paragraph if an object stands between it and the text before."""
        if self._is_separated:
            text = text.lstrip()
            text = f"\n\n{text}" if text and self.has_text else text
        if text.strip():
            self._is_separated, self.has_text = False, True
        return text


def _split_at_actions(
    text: str, tools: Collection[str], goal: str, quotable: Quotable, *, cut_off: bool
) -> Iterator[tuple[str, Action | None, str]]:
    """Yields each action with the text before it and its reasoning, and at last the text after them.

    Objects that are no actions, that are quotable, and that are in a code block of another language are text. Raises
    `Fault`.
    """
    begin = position = objects = 0
    while objects < _MAX_OBJECTS and (found := _OBJECT_OR_CODE.search(text, position)):
        position = found.end()
        if found["marks"] is None:
            continue
        objects += 1
        end = _find_end(text, position)
        written = text[position:end]
        if end is None and _looks_like_action(written, tools):
            raise Fault("it was cut off at the output limit." if cut_off else "it is not valid JSON: it has no end.")
        action, thought = (None, "") if end is None else _read_object(written, tools, goal, quotable)
        position = len(text) if end is None else end
        if action is not None:
            yield text[begin : found.start()], action, thought
            if after := _AFTER_ACTION.match(text, position):
                position = after.end()
            begin = position
        elif _FENCE in found["marks"] and (closing := text.find(_FENCE, position)) >= 0:
            position = closing + len(_FENCE)
    yield text[begin:], None, ""


def _find_end(text: str, begin: int) -> int | None:
    """Returns the position after the brace that closes the object which begins there; None if none does soon."""
    depth = 0
    for token in islice(_STRING_OR_BRACE.finditer(text, begin), _MAX_TOKENS):
        if token[0] in "{}":
            depth += 1 if token[0] == "{" else -1
            if depth == 0:
                return token.end()
        elif not token["end"]:
            return None
    return None


def _read_object(text: str, tools: Collection[str], goal: str, quotable: Quotable) -> tuple[Action | None, str]:
    """Returns the action in a JSON object that a model wrote as text, None for other JSON, and the reasoning in it."""
    try:
        value = _load_object(text)
    except (ValueError, RecursionError) as error:
        if _looks_like_action(text, tools) and text not in quotable:
            raise Fault(f"it is not valid JSON ({error}).") from None
        return None, ""
    if not isinstance(value, dict) or not _is_action(value, tools) or text in quotable:
        return None, ""
    thought = value.get("thought")
    return _parse_action(value, tools, goal), thought.strip() if isinstance(thought, str) else ""


def _load_object(text: str) -> Any:
    try:
        return json.loads(text, strict=False)
    except ValueError:
        if len(text) > _MAX_REPAIRED_CHARS:
            raise
        return json.loads(_TRAILING_COMMA.sub(lambda match: match[1] or "", text), strict=False)


def _looks_like_action(text: str, tools: Collection[str]) -> bool:
    if re.match(rf"""\{{\s*["'](?:{"|".join(_KEYS)})["']\s*:""", text):
        return True
    if (name := _NAME_KEY.search(text)) and _ARGUMENTS_KEY.search(text, name.end()):
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


def _parse_action(value: dict[str, Any], tools: Collection[str], goal: str) -> Action:
    tool, agent = _text(value, "name") or _text(value, "tool"), _text(value, "target_agent")
    action = _text(value, "action").lower() or _infer_action(value, tool, agent)
    match action:
        case "final":
            return _parse_final(value)
        case "use_tool" | "tool":
            return _parse_call(value, "tool", tool or agent, tools, goal)
        case "delegate":
            return _parse_call(value, "agent", agent or tool, tools, goal)
        case _:
            raise _create_fault("action", action, _ACTIONS)


def _infer_action(value: dict[str, Any], tool: str, agent: str) -> str:
    if tool and agent:
        return ""
    if tool:
        return "use_tool"
    if agent:
        return "delegate"
    return "final" if value.get("answer") else ""


def _parse_final(value: dict[str, Any]) -> str:
    answer = value.get("answer")
    if isinstance(answer, dict | list):
        raise Fault('"answer" is not a text.')
    return answer.strip() if isinstance(answer, str) else "" if answer is None else json.dumps(answer)


def _parse_call(value: dict[str, Any], kind: str, name: str, tools: Collection[str], goal: str) -> ParsedToolCall:
    tool = next((one for one in (name, f"{_AGENT_TOOL}{name.lower()}") if one in tools), None)
    if tool is None:
        agents = [tool.removeprefix(_AGENT_TOOL) for tool in tools if tool.startswith(_AGENT_TOOL)]
        raise _create_fault(kind, name, agents if kind == "agent" else tools)
    arguments = next((value[key] for key in ("arguments", "parameters", "args") if value.get(key)), {})
    if isinstance(arguments, str):
        arguments = {} if arguments.strip().lower() in _ABSENT else parse_json(arguments)
    if not isinstance(arguments, dict):
        raise Fault(f'The arguments of {tool} are not a JSON object, as in {{"name": …, "arguments": {{…}}}}.')
    if tool.startswith(_AGENT_TOOL) and not arguments.get("task"):
        arguments = {**arguments, "task": _text(value, "answer") or goal}
    return ParsedToolCall(tool, storable(json.dumps(arguments, ensure_ascii=False)))


def _create_fault(kind: str, name: str, existing: Collection[str]) -> Fault:
    fault = f'There is no {kind} "{name[:_MAX_NAME_CHARS]}".' if name else f"The {kind} is missing."
    return Fault(f"{fault} These exist: {', '.join(sorted(existing)) or 'none'}.")


def _text(value: dict[str, Any], key: str) -> str:
    text = value.get(key)
    return text.strip() if isinstance(text, str) and text.strip().lower() not in _ABSENT else ""
