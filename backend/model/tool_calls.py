"""Assembles the tool calls of a response from the fragments in which servers send them."""

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from backend.ids import new_id

INVALID = object()
_DECODER = json.JSONDecoder(strict=False)
MAX_NAME_CHARS = 64  # that OpenAI accepts
_MAX_DEPTH = 100  # open brackets in arguments; the SDK parses them recursively
_ILLEGAL = re.compile(r"[^A-Za-z0-9_-]")
# Of models' own formats: `functions.add_task`, `add_task<|channel|>commentary`, `list_tasks</arg_value>`, `add_task:0`.
_BEFORE_NAME = re.compile(r"\A(?:to=)?(?:functions?|tools?|default_api)[.:/]")
_AFTER_NAME = re.compile(r"(?:<.*|:\d+)\Z", re.DOTALL)
_BRACKET = re.compile(r"[\[\]{}]")
_SURROGATE = re.compile(r"\\ud[89a-f]", re.IGNORECASE)
_UNSTORABLE = re.compile("[\\x00\\ud800-\\udfff]")


@dataclass
class Fragment:
    """What one frame has of a call. `index` and `id` say of which one, as far as the server gives them."""

    index: int | None = None
    id: str = ""
    name: str = ""
    arguments: str = ""
    replay: dict[str, Any] | None = None

    def extend(self, more: "Fragment") -> None:
        """Adds a later fragment of the same call, whose name and arguments are the next piece or all so far."""
        self.id = self.id or more.id
        self.replay = self.replay or more.replay
        self.name = more.name if more.name.startswith(self.name) else self.name + more.name
        if more.name and self.arguments and more.arguments.startswith(self.arguments):
            self.arguments = more.arguments  # all so far, not only what is new
        else:
            self.arguments += more.arguments


@dataclass
class ParsedToolCall:
    name: str
    arguments: str
    replay: dict[str, Any] | None = None
    """Fields that the server has to get back with the call, as Gemini's signature of a thought."""
    id: str = field(default_factory=lambda: new_id("call"), compare=False)
    """Ours: providers leave ids out, repeat them in one response and reuse them in the next."""


class ToolCallAssembler:
    def __init__(self) -> None:
        self._begun: list[Fragment] = []

    def __bool__(self) -> bool:
        return bool(self._begun)

    def take(self, fragments: list[Fragment], *, is_last: bool) -> None:
        """Adds the fragments of a frame, and may change them."""
        earlier = [*self._begun]
        for fragment in fragments:
            if _is_repeated(fragment, earlier, is_last=is_last):
                continue
            begun = self._find(fragment)
            if begun is not None and _continues(fragment, begun):
                begun.extend(fragment)
            else:
                self._begun.append(fragment)

    def assemble(self) -> list[ParsedToolCall]:
        """Returns the calls, without those that have no name, under new ids and clean names.

        Arguments become valid JSON as far as that is possible without guessing; what was cut off stays invalid.
        """
        return [
            ParsedToolCall(clean_name(one.name), repair_arguments(one.arguments), one.replay)
            for one in self._begun
            if one.name
        ]

    def _find(self, fragment: Fragment) -> Fragment | None:
        latest = self._begun[::-1]
        if fragment.id and not fragment.name:
            by_id = next((one for one in latest if one.id == fragment.id), None)
            if by_id is not None:
                return by_id
        if fragment.index is not None:
            return next((one for one in latest if one.index == fragment.index), None)
        return latest[0] if latest else None


def add_written_calls(calls: list[ParsedToolCall], written: Iterable[ParsedToolCall]) -> list[ParsedToolCall]:
    """Returns the calls with those of the markup that are not among them: some servers send a call in both forms."""
    sent, added = [_simplify_call(one) for one in calls], list[ParsedToolCall]()
    for call in written:
        simple = _simplify_call(call)
        empty = next((one for one in calls if one.name == call.name and one.arguments == "{}"), None)
        if simple in sent:
            sent.remove(simple)
        elif empty is not None:  # its arguments were lost, cline/cline#13348
            calls = [call if one is empty else one for one in calls]
        else:
            added.append(call)
    return [*calls, *added]


def _simplify_call(call: ParsedToolCall) -> tuple[str, Any]:
    """Returns what two forms of a call have in common, as servers convert its arguments differently."""
    value = parse_json(call.arguments)
    if not isinstance(value, dict):
        return call.name, call.arguments.strip()
    texts = {key: one if isinstance(one, str) else json.dumps(one) for key, one in value.items() if one is not None}
    return call.name, {key: "".join(text.split()).lower() for key, text in texts.items()}


def _is_repeated(fragment: Fragment, earlier: list[Fragment], *, is_last: bool) -> bool:
    """Whether a call of an earlier frame is sent again, whole."""
    return bool(fragment.name and is_object(fragment.arguments)) and any(
        one.name == fragment.name
        and not _is_another(fragment, one)
        and (is_last or not (fragment.id and one.id) or fragment.id == one.id)
        and parse_json(one.arguments) == parse_json(fragment.arguments)
        for one in earlier
    )


def _is_another(fragment: Fragment, earlier: Fragment) -> bool:
    """Whether two fragments have two ids and two positions, so that both calls are meant, however equal."""
    ids, indexes = (fragment.id, earlier.id), (fragment.index, earlier.index)
    return all(ids) and ids[0] != ids[1] and None not in indexes and indexes[0] != indexes[1]


def _continues(fragment: Fragment, begun: Fragment) -> bool:
    if not fragment.name or not begun.name:
        return True
    if fragment.id and begun.id and fragment.id != begun.id:
        return False
    if fragment.name != begun.name:  # a name in pieces; calls that share an index have no ids, or one each
        return bool(begun.id) and not begun.arguments
    return not (is_object(begun.arguments) and fragment.arguments.lstrip().startswith("{"))


def clean_name(name: str) -> str:
    return _AFTER_NAME.sub("", _BEFORE_NAME.sub("", name.strip())) or name


def legal_name(name: str) -> str:
    return _ILLEGAL.sub("_", clean_name(name))[:MAX_NAME_CHARS] or "unknown"


def storable(text: str) -> str:
    """Replaces what PostgreSQL cannot hold, NUL and lone surrogates, by U+FFFD."""
    return _UNSTORABLE.sub("\ufffd", text)


def make_storable(value: Any) -> Any:
    """Returns a JSON value whose texts and names are `storable`: programs write any characters."""
    match value:
        case str():
            return storable(value)
        case list():
            return [make_storable(one) for one in value]
        case dict():
            return {storable(str(name)): make_storable(one) for name, one in value.items()}
        case _:
            return value


def parse_json(text: str) -> Any:
    """The value of a JSON text, or `INVALID`. Line breaks may stand in its strings."""
    try:
        return _DECODER.decode(text)
    except (ValueError, RecursionError):
        return INVALID


def is_object(text: str) -> bool:
    return isinstance(parse_json(text), dict)


def repair_arguments(text: str) -> str:
    """One JSON object, where the arguments have one; otherwise what was written, which the model gets an error for."""
    text = _cut_nesting(text.strip())
    value = parse_json(text)
    if isinstance(value, dict):
        return storable(json.dumps(value, ensure_ascii=False)) if _SURROGATE.search(text) else text
    if text in ("", '""', "null", "None"):
        return "{}"
    if isinstance(value, str) and is_object(value):
        return repair_arguments(value)  # encoded twice
    return _find_repeated_object(text) or text


def _find_repeated_object(text: str) -> str | None:
    """Returns the arguments if the same object was sent twice, or after an empty one; None for anything else."""
    try:
        first, end = json.JSONDecoder(strict=False).raw_decode(text)
    except (ValueError, RecursionError):
        return None
    second = parse_json(text[end:])
    if not isinstance(first, dict) or not isinstance(second, dict):
        return None
    return text[end:].strip() if first == {} else text[:end] if first == second else None


def _cut_nesting(text: str) -> str:
    """Cuts a text where it is nested too deeply, so that it is invalid JSON and not parsed recursively."""
    depth = 0
    for bracket in _BRACKET.finditer(text):
        depth += 1 if bracket[0] in "[{" else -1
        if depth > _MAX_DEPTH:
            return text[: bracket.start()]
    return text
