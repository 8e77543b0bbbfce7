"""The markers of all families, as patterns that find them in a text."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from typing import Literal

from backend.model.markup.families import FAMILIES, CallBlock, Thought

_ATTRIBUTES = r"(?:\s[^<>\n]{0,100})?"
_TAGS = tuple(dict.fromkeys(name for family in FAMILIES.values() for name in family.tags))
TAGS = Thought("<think>", tuple(f"</{name}>" for name in _TAGS), anywhere=False)
"""Reasoning in tags, each of which closes each, as models mix them."""
_TOKENS = tuple(
    closing
    for family in FAMILIES.values()
    for thought in family.thoughts
    for closing in thought.closings
    if not thought.is_word and closing not in family.ends
)
UNOPENED = Thought("", (*TAGS.closings, *_TOKENS))
"""Reasoning whose opening was in the prompt."""
_STRAY = ("</parameter>", "</arg_value>", "</function_invocation>", "</answer>")


@dataclass(frozen=True)
class Marker:
    kind: Literal["thought", "closing", "call", "end", "turn", "noise", "wrap", "mention", "stray"]
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
    for token in _TOKENS:
        found.setdefault(token.lower(), Marker("closing", UNOPENED))
    calls = (one for family in FAMILIES.values() for one in family.calls)
    for closing in (*_STRAY, *(closing for call in calls for closing in call.closings if closing.startswith("</"))):
        found.setdefault(closing.lower(), Marker("stray"))
    return found | {closing: Marker("closing", TAGS) for closing in TAGS.closings}


_MARKERS = _collect_markers()
_BEGINNINGS = frozenset(text[:end] for text in _MARKERS for end in range(1, len(text)))
MAX_CHARS = max(map(len, _MARKERS)) + 101
_TAG_BEGUN = re.compile(rf"<(?:{'|'.join(map(re.escape, _TAGS))})\s[^<>\n]{{0,100}}\Z", re.IGNORECASE)
_MARKS = "<[]◁"  # the first signs of all markers that are not words


class Finder:
    """Finds the first of some markers; if several begin there, the longest.

    A word may not begin within another one, unless it is an `inner` marker.
    """

    def __init__(self, texts: Iterable[str], inner: Iterable[str] = ()) -> None:
        ordered = sorted({*texts, *inner}, key=len, reverse=True)
        # A pattern whose alternatives begin with one sign each is several times as fast.
        signs = {sign: [_escape(text) for text in ordered if text[0] == sign] for sign in _MARKS}
        marks = [rf"{re.escape(sign)}(?:{'|'.join(rests)})" for sign, rests in signs.items() if rests]
        self._marks = re.compile("|".join(marks) or r"(?!)", re.IGNORECASE)
        words = [text for text in ordered if text[0] not in _MARKS]
        inner = [re.escape(text) for text in words if text in {*inner}]
        outer = [re.escape(text) for text in words if re.escape(text) not in inner]
        branches = [*inner, *([rf"(?<![A-Za-z0-9_])(?:{'|'.join(outer)})"] if outer else [])]
        self._words = re.compile("|".join(branches) or r"(?!)")
        self._hints = [word for word in words if not any(other != word and other in word for other in words)]

    def search(self, text: str) -> re.Match[str] | None:
        found = self._marks.search(text)
        if any(hint in text for hint in self._hints) and (word := self._words.search(text)):
            return word if found is None or word.start() < found.start() else found
        return found

    def match(self, text: str) -> re.Match[str] | None:
        return self._marks.match(text) or self._words.match(text)


def _escape(text: str) -> str:
    """Returns a pattern for a marker without its first sign."""
    is_tag = text[0] == "<" and text[1:-1] in _TAGS
    return re.escape(text[1:-1]) + _ATTRIBUTES + ">" if is_tag else re.escape(text[1:])


IN_TEXT = Finder(text for text, one in _MARKERS.items() if not (isinstance(one.row, Thought) and one.row.is_word))
BEFORE_TEXT = Finder(text for text, one in _MARKERS.items() if one.kind == "thought")
_IN_THOUGHT = [text for text, one in _MARKERS.items() if one.kind in ("call", "noise", "wrap")]


@cache
def in_thought(thought: Thought | None) -> Finder:
    """Returns what finds the ends of a thought, and markers in it."""
    return Finder(_IN_THOUGHT, (*thought.closings, *thought.before) if thought else ())


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
    for found in _SIGN.finditer(text, max(0, len(text) - MAX_CHARS)):
        rest = text[found.start() :]
        if is_beginning(rest) or (more and any(one.startswith(rest.lower()) for one in more)):
            return found.start()
    if text.endswith(_PHRASES_BEGUN):
        return len(text) - max(len(one) for one in _PHRASES_BEGUN if text.endswith(one))
    if (word := _LAST_WORD.search(text)) and word[0] in _BEGINNINGS:
        return word.start()
    inner = [one[:end] for one in more if one[0] not in _MARKS for end in range(1, len(one))] if more else []
    return len(text) - max((len(one) for one in inner if text.endswith(one)), default=0)


_SIGN = re.compile(rf"[{re.escape(_MARKS)}]")
_LAST_WORD = re.compile(r"(?<![A-Za-z0-9_])[a-z]{1,20}\Z")
_PHRASES_BEGUN = tuple(
    {text[:end] for text in _MARKERS if text[0] not in _MARKS for end in range(len(text)) if not text[:end].isalpha()}
    - {""}
)
