"""Reads calls within markup. Models mix the forms of their families, so that each form is read in each markup."""

import json
import re
from collections.abc import Mapping
from typing import Any, NoReturn

from backend.model.markup import notation
from backend.model.tool_calls import ParsedToolCall, clean_name, repair_arguments, storable

Tools = Mapping[str, Any]
"""The schema of the arguments of each tool that the model may call."""

_MARKER = r"<[/\w|｜‖▁:]{1,60}>"  # `</tool_call>`, `<｜tool▁call▁end｜>`
_BETWEEN = re.compile(rf"(?:\s|\[TOOL_CALLS\]|[,;\[\]]|```(?:json)?|{_MARKER})*+")
_NAMESPACE = r"(?:[｜|‖]{1,2}DSML[｜|‖]{1,2}|[a-z]{1,10}:)?"
_ELEMENT = re.compile(
    rf"""<{_NAMESPACE}(?:function|invoke|call|toolscall)(?:=|\s+(?:name|tool)\s*=\s*)["']?(?P<name>[\w./:-]{{1,80}})"""
    r"""(?P<end>["']?[^<>{}]{0,200}>|(?=[{(]))"""
)
_ELEMENT_BEGUN = re.compile(r"<[^<>{}\n]{0,250}\Z")
_ELEMENT_CLOSING = rf"</{_NAMESPACE}(?:function|invoke|call)>"
_ELEMENT_END = re.compile(rf"\s*{_ELEMENT_CLOSING}")
_ELEMENT_END_AFTER = re.compile(_ELEMENT_CLOSING)  # to search: with spaces before it, it would try each of many
_PARAMETER = re.compile(
    rf"""\s*<{_NAMESPACE}(?:(?:parameter|param|argument|arg)(?:=|\s+(?:name|key)\s*=\s*)["']?(?P<key>[\w.-]{{1,80}})["']?"""
    r"""(?P<attributes>[^<>]{0,200})|(?P<tag>[A-Za-z_][\w-]{0,80}))>"""
)
# Some are closed by their name, as in anthropics/claude-code#83088.
_PARAMETER_END = re.compile(rf"</(?:{_NAMESPACE}(?:parameter|param|argument|arg)|(?P<name>[\w.-]{{1,80}}))>")
_AFTER_NAME = re.compile(rf"\s*+(?:<{_NAMESPACE}(?:parameter|param|argument|arg)\b|{_ELEMENT_CLOSING})")
_DATA = re.compile(r"<!\[CDATA\[(?P<text>.*)\]\]>", re.DOTALL)
_ITEM = re.compile(r"<item>([^<]*+(?:<(?!/?item>)[^<]*+)*+)</item>")
_IS_TEXT = re.compile(r"""(?:string|type)\s*=\s*["']?(?P<value>\w+)""")
_NAMED = re.compile(r"(?:function<｜tool▁sep｜>|<\|plugin\|>)?(?:call:|to=)?\s*(?P<name>[\w./:-]{1,80})")
# What stands between a name and its arguments.
_SEPARATOR = re.compile(
    r"(?:[^\s<>{}()\[\]]{1,20}(?=<\|tool_call_argument_begin\|>))?(?:\s|\[ARGS\]|\[CALL_ID\]\w{0,64}|```|(?:json|code|commentary)(?!\w)|<tool_sep>"
    r"|<\|(?:channel|constrain)\|>\w*+|<\|message\|>|<\|tool_call_argument_begin\|>|<｜tool▁sep｜>)*+"
)
_STRAY_WORD = re.compile(r"[^\x00-\x7f][^\s{}<>]{0,40}\s*(?=\{)")  # livekit/agents-js#1632
# Under load, GLM leaves the opening tags out, or writes another: vllm-project/vllm#49248, getsigit/sigit#94.
_PAIR = re.compile(
    r"\s*+(?:<(?:\w{0,20}arg_key|tool_call)(?::\w+)?>\s*+)?(?P<key>[\w.-]{1,100})\s*</(?P<tag>\w{0,20}arg_)key(?::\w+)?>"
    r"(?:\s|\\n)*(?:<(?P=tag)value(?::\w+)?>)?"
)
_KEY_END = re.compile(r"</\w{0,20}arg_key")
_PAIR_BEGUN = re.compile(r"<\w{0,20}(?:arg_|\Z)")
_MINIMAX = "]<]minimax[>["  # before each tag of MiniMax M3
_TAG_TOKENS = {"<|open|>": "<", "<|close|>": "</", "<|sep|>": ">"}  # of Kimi K3
_TOKENS_BEGUN = [token[:end] for token in (_MINIMAX, *_TAG_TOKENS) for end in range(len(token) - 1, 0, -1)]
_NAME_KEYS = ("name", "tool_name", "tool", "function")
_ARGUMENT_KEYS = ("arguments", "parameters", "args", "input")
_NAME_IN_OBJECT = re.compile(r"""["'](?:name|tool_name|tool)["']\s*:\s*["'](?P<name>[\w./:-]{1,80})["']""")
_ARGUMENTS_IN_OBJECT = re.compile(r"""["'](?:arguments|parameters|args|input)["']\s*:\s*""")
_HEAD_CHARS = 500
_MARKER_BEGUN = re.compile(r"[<\[`][^\s>{}]{0,60}")
_PREFIX = "function<｜tool▁sep｜>"  # of a name, in DeepSeek V3
_BEFORE_NAME = ("", "functions.", "call:", "to=functions.")
_INVALID = "{"  # arguments that are rejected as invalid JSON, so that the model learns of it


class CutCall(Exception):
    """The text ends within a call. `calls` are those before it, with the cut one if its name is known."""

    def __init__(self, calls: list[ParsedToolCall]) -> None:
        super().__init__()
        self.calls = calls


def may_begin(text: str, tools: Tools) -> bool:
    """Whether a text may be the beginning of calls of these tools."""
    text = _normalize(_without_begun_token(text[:_HEAD_CHARS]))
    begin = _skip(text, 0)
    rest = text[begin:]
    if not rest or _MARKER_BEGUN.fullmatch(rest) or _PREFIX.startswith(rest):
        return True
    if rest[0] == "{":
        return re.match(r"""\{\s*(?:["'\w]|\Z)""", rest) is not None
    if rest[0] == "<":
        element = _ELEMENT.match(rest)
        return _find_tool(element["name"], tools) is not None if element else bool(_ELEMENT_BEGUN.match(rest))
    named = _NAMED.match(rest)
    if named is None:
        return False
    is_begun = named.end() == len(rest) and any(
        f"{before}{tool}".startswith(named["name"]) for before in _BEFORE_NAME for tool in tools
    )
    return is_begun or any(_find_tools(named["name"], tools))


def read_calls(text: str, tools: Tools, *, is_whole: bool) -> list[ParsedToolCall]:
    """Returns the calls in a block of markup; none if it does not begin with a call of one of the tools.

    Raises `CutCall` if it ends within one; a block that `is_whole` does not end within tags that are only not closed.
    """
    text = text if is_whole else _without_begun_token(text)
    return _Block(_normalize(text), tools, is_whole=is_whole).read()


def _without_begun_token(text: str) -> str:
    return text.removesuffix(next((token for token in _TOKENS_BEGUN if text.endswith(token)), ""))


def _normalize(text: str) -> str:
    for token, sign in _TAG_TOKENS.items():
        text = text.replace(token, sign)
    return text.replace(_MINIMAX, "")


def _skip(text: str, position: int) -> int:
    found = _BETWEEN.match(text, position)
    return found.end() if found else position


def _find_tool(name: str, tools: Tools) -> str | None:
    return next((one for one in (name, clean_name(name), clean_name(name).rstrip(":")) if one in tools), None)


def _find_tools(name: str, tools: Tools) -> list[str]:
    """Returns the tool of this name, else those that the name begins with, the longest first."""
    if tool := _find_tool(name, tools):
        return [tool]
    return sorted((tool for tool in tools if clean_name(name).startswith(tool)), key=len, reverse=True)


class _Block:
    def __init__(self, text: str, tools: Tools, *, is_whole: bool) -> None:
        self._text, self._tools, self._is_whole = text, tools, is_whole
        self._position = 0
        self._calls: list[ParsedToolCall] = []

    def read(self) -> list[ParsedToolCall]:
        while (begin := _skip(self._text, self._position)) < len(self._text):
            self._position = begin
            try:
                call = self._read_call()
            except notation.CutOff:
                self._cut(begin)
            except notation.NotReadable:
                call = self._read_broken(begin)
            if call is None:
                break
            self._calls.append(call)
        else:
            if not self._calls and not self._is_whole:
                self._cut(begin)
        return self._calls

    def _read_call(self) -> ParsedToolCall | None:
        text, begin = self._text, self._position
        if text[begin] == "{":
            value, self._position = notation.read_object(text, begin)
            return self._read_object(value)
        if element := _ELEMENT.match(text, begin):
            name = _find_tool(element["name"], self._tools)
            return None if name is None else self._read_element(name, element.end())
        if text[begin] == "<" and not self._is_whole and _ELEMENT_BEGUN.match(text, begin):
            raise notation.CutOff
        named = _NAMED.match(text, begin)
        name = _find_tool(named["name"], self._tools) if named else None
        if named is not None and name is None and _KEY_END.match(text, named.end()):
            for tool in _find_tools(named["name"], self._tools):  # and its first argument, vllm-project/vllm#47190
                return self._read_pairs(tool, text.index(tool, begin) + len(tool))
        if named is None or name is None:
            if named is not None and named.end() == len(text) and not self._is_whole:
                raise notation.CutOff
            return None
        return self._read_named(name, named.end())

    def _read_object(self, value: dict[str, Any]) -> ParsedToolCall | None:
        function = value.get("function")
        value = function if isinstance(function, dict) else value
        name = next((value[key] for key in _NAME_KEYS if isinstance(value.get(key), str)), None)
        if name is None and len(value) == 1 and isinstance(next(iter(value.values())), dict):
            [(name, arguments)] = value.items()  # Apertus
        else:
            arguments = next((value[key] for key in _ARGUMENT_KEYS if key in value), None)
        tool = _find_tool(name, self._tools) if name else None
        return None if tool is None else _create_call(tool, arguments)

    def _read_named(self, name: str, position: int) -> ParsedToolCall | None:
        text = self._text
        if _PAIR.match(text, position):
            return self._read_pairs(name, position)
        found = _SEPARATOR.match(text, position)
        position = found.end() if found else position
        if _PAIR.match(text, position):
            return self._read_pairs(name, position)
        if stray := _STRAY_WORD.match(text, position):
            position = stray.end()
        if position == len(text) or _BETWEEN.fullmatch(text, position):
            if not self._is_whole:
                raise notation.CutOff
            self._position = len(text)
            return _create_call(name, {})
        if text[position] == "{":
            arguments, self._position = notation.read_object(text, position)
        elif text[position] == "(":
            arguments, self._position = notation.read_named(text, position + 1)
        elif _PAIR_BEGUN.match(text, position):
            raise notation.CutOff
        else:
            return None
        return _create_call(name, arguments)

    def _read_pairs(self, name: str, position: int) -> ParsedToolCall:
        arguments = dict[str, Any]()
        while pair := _PAIR.match(self._text, position):
            closing = f"</{pair['tag']}value"
            end = self._text.find(closing, pair.end())
            after = self._text.find(">", end) + 1 if end >= 0 else 0
            if not after:
                raise notation.CutOff
            key = pair["key"].strip()
            arguments[key] = self._convert(name, key, self._text[pair.end() : end])
            position = after
        self._check_end(position)
        self._position = position
        return _create_call(name, arguments)

    def _read_element(self, name: str, position: int) -> ParsedToolCall:
        text, arguments = self._text, dict[str, Any]()
        begin = _skip_space(text, position)
        if text.startswith(("{", "("), begin):  # Llama 3
            read = notation.read_object if text[begin] == "{" else notation.read_named
            arguments, position = read(text, begin + (text[begin] == "("))
        while not (ending := _ELEMENT_END.match(text, position)):
            parameter = _PARAMETER.match(text, position)
            if parameter is None:
                self._check_end(position)
                break
            end = self._find_value_end(parameter)
            key = parameter["key"] or parameter["tag"]
            value = text[parameter.end() : end[0]]
            arguments[key] = self._convert(name, key, value, parameter["attributes"] or "")
            position = end[1]
        self._position = ending.end() if ending else position
        return _create_call(name, arguments)

    def _check_end(self, position: int) -> None:
        """Raises `CutOff` if another argument may have followed."""
        rest = self._text[position:].strip()
        if not self._is_whole and not rest.startswith("</"):
            raise notation.CutOff

    def _find_value_end(self, parameter: re.Match[str]) -> tuple[int, int]:
        """Returns where a value ends, and the position after its closing tag. Raises `CutOff`."""
        text, begin = self._text, parameter.end()
        if tag := parameter["tag"]:
            end = text.find(f"</{tag}>", begin)
            if end >= 0:
                return end, end + len(tag) + 3
        elif found := _find_closing(text, begin, parameter["key"]):
            return found
        if self._is_whole and (ending := _ELEMENT_END_AFTER.search(text, begin)):
            end = begin + len(text[begin : ending.start()].rstrip())
            return end, end
        raise notation.CutOff

    def _convert(self, tool: str, key: str, text: str, attributes: str = "") -> Any:
        """Returns an argument that was written as text, by its attributes and the tool's schema."""
        text = text.removeprefix("\n").removesuffix("\n")
        if data := _DATA.fullmatch(text.strip()):
            return data["text"]
        declared = _IS_TEXT.search(attributes)
        if declared and declared["value"].lower() in ("true", "string"):
            return text
        kinds = _list_types(self._tools[tool], key)
        if "string" in kinds and not (text.strip() == "null" and "null" in kinds):
            return text
        if "array" in kinds and (items := _ITEM.findall(text)):  # MiniMax M3
            return items
        try:
            return json.loads(text, strict=False)
        except (ValueError, RecursionError):
            pass
        try:
            return notation.read_value(text)  # Python's
        except (notation.CutOff, notation.NotReadable):
            return {"True": True, "False": False, "None": None}.get(text.strip(), text)

    def _cut(self, begin: int) -> NoReturn:
        broken = self._read_broken(begin)
        raise CutCall([*self._calls, broken] if broken else self._calls)

    def _read_broken(self, begin: int) -> ParsedToolCall | None:
        """Returns a call with invalid arguments, whose error the model reads; None if its tool is not known."""
        rest = self._text[begin:]
        self._position = len(self._text)
        found = _NAME_IN_OBJECT.search(rest) if rest.startswith("{") else _ELEMENT.match(rest) or _NAMED.match(rest)
        tool = _find_tool(found["name"], self._tools) if found else None
        if found is None or tool is None:
            return None
        key = _ARGUMENTS_IN_OBJECT.search(rest) if rest.startswith("{") else None
        written = rest[key.end() if key else found.end() :].strip()
        return ParsedToolCall(tool, storable(written if _is_invalid(written) else _INVALID))


def _find_closing(text: str, begin: int, key: str) -> tuple[int, int] | None:
    """Returns where a parameter is closed, and the position after that."""
    for found in _PARAMETER_END.finditer(text, begin):
        if found["name"] is None or (found["name"] == key and _AFTER_NAME.match(text, found.end())):
            return found.span()
    return None


def _skip_space(text: str, position: int) -> int:
    while text[position : position + 1].isspace():
        position += 1
    return position


def _is_invalid(written: str) -> bool:
    try:
        json.loads(written, strict=False)
    except (ValueError, RecursionError):
        return bool(written)
    return False


def _create_call(name: str, arguments: Any) -> ParsedToolCall:
    written = arguments if isinstance(arguments, str) else json.dumps(arguments or {}, ensure_ascii=False)
    return ParsedToolCall(name, repair_arguments(storable(written)))


def _list_types(schema: Any, key: str) -> set[str]:
    """Returns the types that an argument may have; a text if the schema does not say."""
    properties = schema.get("properties") if isinstance(schema, dict) else None
    found = properties.get(key) if isinstance(properties, dict) else None
    if not isinstance(found, dict):
        return {"any"}
    kinds = set[str]()
    for one in (found, *(found.get("anyOf") or ()), *(found.get("oneOf") or ())):
        kind = one.get("type") if isinstance(one, dict) else None
        kinds |= {kind} if isinstance(kind, str) else set(kind) if isinstance(kind, list) else set()
    return kinds or {"string"}
