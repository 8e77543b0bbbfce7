"""Reads values that are almost JSON: Python's, JavaScript's and Gemma's, with bare names for keys."""

import json
import re
from typing import Any

_DECODER = json.JSONDecoder(strict=False)
# More would hold the event loop: parts and depth of a value that is no JSON.
_MAX_PARTS, _MAX_DEPTH = 5_000, 50
_PART = re.compile(
    r"""\s*+(?:(?P<string>"(?:\\.|[^"\\])*+"|'(?:\\.|[^'\\])*+')"""
    r"""|<\|"\|>(?P<gemma>.*?)<\|"\|>|<escape>(?P<escape>.*?)<escape>"""
    r"""|(?P<mark>[{}\[\](),:=])|(?P<word>[^\s{}\[\](),:="'<][^{}\[\](),:="'<\n]*+))""",
    re.DOTALL,
)
_WORDS: dict[str, Any] = {"true": True, "false": False, "null": None, "none": None}
_ESCAPE = re.compile(r"\\(?!u)(.)", re.DOTALL)
_ESCAPED = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f"}


class CutOff(Exception):
    """The text ends within the value."""


class NotReadable(Exception):
    """The text is no value."""


def read_object(text: str, begin: int) -> tuple[dict[str, Any], int]:
    """Returns the object that begins there, and the position after it. Raises `CutOff` or `NotReadable`."""
    try:
        value, end = _DECODER.raw_decode(text, begin)
    except (ValueError, RecursionError):
        if text.startswith("{{", begin) and not text.startswith("{{{", begin):  # Gemma's own braces around JSON
            value, end = read_object(text, begin + 1)
            return value, end + text.startswith("}", end)
        reader = _Reader(text, begin)
        value, end = reader.read_value(0), reader.position
    if not isinstance(value, dict):
        raise NotReadable
    return value, end


def read_value(text: str) -> Any:
    """Returns a list or an object that is the whole text. Raises `CutOff` or `NotReadable`."""
    reader = _Reader(text, 0)
    value = reader.read_value(0)
    if not isinstance(value, list | dict) or text[reader.position :].strip():
        raise NotReadable
    return value


def read_named(text: str, begin: int) -> tuple[dict[str, Any], int]:
    """Returns the arguments of `name(key=value, …)` or `name({…})` behind the bracket, and the position after them."""
    reader = _Reader(text, begin)
    return reader.read_pairs(")", 0), reader.position


class _Reader:
    def __init__(self, text: str, position: int) -> None:
        self.position = position
        self._text, self._parts = text, 0

    def read_value(self, depth: int) -> Any:
        part = self._next()
        if part["mark"] is None:
            return _read_scalar(part)
        if depth > _MAX_DEPTH or part["mark"] not in "{[":
            raise NotReadable
        return self.read_pairs("}", depth + 1) if part["mark"] == "{" else self._read_list(depth + 1)

    def read_pairs(self, closing: str, depth: int) -> dict[str, Any]:
        pairs = dict[str, Any]()
        while not self._takes(closing):
            if closing == ")" and not pairs and self._peek()["mark"] == "{":
                pairs = self.read_value(depth)
                continue
            key = self._next()
            if key["mark"] is not None or self._next()["mark"] not in (":", "="):
                raise NotReadable
            pairs[str(_read_text(key)).strip()] = self.read_value(depth)
            self._takes(",")
        return pairs

    def _read_list(self, depth: int) -> list[Any]:
        values: list[Any] = []
        while not self._takes("]"):
            values.append(self.read_value(depth))
            self._takes(",")
        return values

    def _takes(self, mark: str) -> bool:
        part = self._peek()
        if part["mark"] != mark:
            return False
        self.position = part.end()
        return True

    def _next(self) -> re.Match[str]:
        part = self._peek()
        self.position = part.end()
        return part

    def _peek(self) -> re.Match[str]:
        self._parts += 1
        part = _PART.match(self._text, self.position) if self._parts < _MAX_PARTS else None
        if part is None:
            rest = self._text[self.position : self.position + 20].lstrip()
            raise CutOff if not rest or rest[0] in "\"'<" else NotReadable
        return part


def _read_text(part: re.Match[str]) -> str:
    if part["string"] is not None:
        return _unescape(part["string"])
    return next(one for one in (part["gemma"], part["escape"], part["word"]) if one is not None)


def _unescape(quoted: str) -> str:
    try:
        return _DECODER.decode(quoted)
    except ValueError:
        return _ESCAPE.sub(lambda escape: _ESCAPED.get(escape[1], escape[1]), quoted[1:-1])


def _read_scalar(part: re.Match[str]) -> Any:
    text = _read_text(part)
    if part["word"] is None:
        return text
    word = text.strip()
    if word.lower() in _WORDS:
        return _WORDS[word.lower()]
    try:
        return json.loads(word)  # a number
    except (ValueError, RecursionError):
        return word
