"""The markers of all families, as patterns that find them in a text."""

import re
from dataclasses import dataclass
from functools import cache
from typing import Literal

from backend.model.markup.families import FAMILIES, CallBlock, Thought

_ATTRIBUTES = r"(?:\s[^<>\n]{0,100})?"
_TAGS = tuple(dict.fromkeys(name for family in FAMILIES.values() for name in family.tags))
TAGS = Thought("<think>", tuple(f"</{name}>" for name in _TAGS), anywhere=False)
"""Reasoning in tags, each of which closes each, as models mix them."""


@dataclass(frozen=True)
class Marker:
    kind: Literal["thought", "closing", "call", "end", "turn", "noise", "wrap", "mention"]
    row: Thought | CallBlock | None = None


def _collect_markers() -> dict[str, Marker]:
    """Returns the markers by their text in lower case; the first row of a text counts."""
    found = dict[str, Marker]()
    for family in FAMILIES.values():
        rows = [
            *((one.opening, Marker("thought", one)) for one in family.thoughts),
            *((one.opening, Marker("call", one)) for one in family.calls),
            *((end, Marker("end")) for end in family.ends),
            *((turn, Marker("turn")) for turn in family.turns),
            *((noise, Marker("noise")) for noise in family.noise),
            *((wrap, Marker("wrap")) for wrap in family.wraps),
            *((mention, Marker("mention")) for mention in family.mentions),
        ]
        for text, marker in rows:
            found.setdefault(text.lower(), marker)
    found |= {f"<{name}>": Marker("thought", TAGS) for name in _TAGS}
    return found | {closing: Marker("closing", TAGS) for closing in TAGS.closings}


_MARKERS = _collect_markers()
_BEGINNINGS = frozenset(text[:end] for text in _MARKERS for end in range(1, len(text)))
MAX_CHARS = max(map(len, _MARKERS)) + 101
_TAG_BEGUN = re.compile(rf"<(?:{'|'.join(map(re.escape, _TAGS))})\s[^<>\n]{{0,100}}\Z", re.IGNORECASE)
_MARKS = "<[]◁"  # with which all markers begin that are no words


def _compile(texts: list[str]) -> re.Pattern[str]:
    """Returns a pattern that matches the longest text. A word may not begin within another."""
    ordered = sorted(texts, key=len, reverse=True)
    words = [re.escape(text) for text in ordered if text[0] not in _MARKS]
    marks = [
        re.escape(text[:-1]) + _ATTRIBUTES + ">" if text[0] == "<" and text[1:-1] in _TAGS else re.escape(text)
        for text in ordered
        if text[0] in _MARKS
    ]
    branches = [rf"(?=[{re.escape(_MARKS)}])(?:{'|'.join(marks)})"] if marks else []
    branches += [rf"(?<![A-Za-z0-9_])(?:{'|'.join(words)})"] if words else []
    return re.compile("|".join(branches), re.IGNORECASE)


IN_TEXT = _compile([text for text, one in _MARKERS.items() if not (isinstance(one.row, Thought) and one.row.is_word)])
BEFORE_TEXT = _compile([text for text, one in _MARKERS.items() if one.kind == "thought"])
_IN_THOUGHT = [text for text, one in _MARKERS.items() if one.kind in ("call", "noise", "wrap")]


@cache
def in_thought(thought: Thought | None) -> re.Pattern[str]:
    """Returns a pattern for what ends a thought, as `ends` or `before`, and what may be within it."""
    markers = _compile(_IN_THOUGHT).pattern
    if thought is None:
        return re.compile(markers, re.IGNORECASE)
    ends, before = ("|".join(map(re.escape, texts)) or r"(?!)" for texts in (thought.closings, thought.before))
    return re.compile(rf"(?P<ends>{ends})|(?P<before>{before})|{markers}", re.IGNORECASE)


@cache
def closing_of(call: CallBlock) -> re.Pattern[str]:
    return re.compile("|".join(map(re.escape, call.closings)) or r"(?!)", re.IGNORECASE)


def marker_of(text: str) -> Marker:
    tag = re.match(r"<[^\s<>]+(?=\s)", text) if text[:1] == "<" and text.lower() not in _MARKERS else None
    return _MARKERS[f"{tag[0]}>".lower() if tag else text.lower()]


def is_beginning(text: str) -> bool:
    """Whether a text is the beginning of a marker, which may go on."""
    return text.lower() in _BEGINNINGS or _TAG_BEGUN.match(text) is not None


def find_beginning(text: str, more: tuple[str, ...] = ()) -> int:
    """Returns where the end of a text begins that may be the beginning of a marker, or of one of `more`."""
    for found in _first_signs(more).finditer(text, max(0, len(text) - MAX_CHARS)):
        rest = text[found.start() :].lower()
        if is_beginning(rest) or any(one.lower().startswith(rest) for one in more):
            return found.start()
    return len(text)


@cache
def _first_signs(more: tuple[str, ...]) -> re.Pattern[str]:
    words = "".join({text[0] for text in _MARKERS if text[0] not in _MARKS})
    signs = "".join({_MARKS, *(text[0] for text in more)})
    return re.compile(rf"[{re.escape(signs)}]|(?<![A-Za-z0-9_])[{re.escape(words)}]", re.IGNORECASE)
