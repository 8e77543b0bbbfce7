"""Replaces signs that models confuse, such as typographic quotes, by plain ones, and maps places to the original."""

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Iterator
from typing import NamedTuple

_SIGNS = {
    "'": "\u2018\u2019\u201a\u201b\u2032\u00b4\u02bc",
    '"': "\u201c\u201d\u201e\u201f\u2033",
    "-": "\u2010\u2011\u2012\u2013\u2014\u2015\u2212\ufe58\ufe63",
    " ": "\u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u202f\u205f\u3000\u2028\u2029",
    "": "\u00ad\u200b\u200c\u200d\u200e\u200f\u2060\ufeff\ufe0e\ufe0f",
    "...": "\u2026",
}
_FOLDED = {ord(sign): plain for plain, signs in _SIGNS.items() for sign in signs}
_FOLDED |= {code: chr(code - 0xFEE0) for code in range(0xFF01, 0xFF5F)}  # full-width forms of ASCII
_MARKS = ("Mn", "Mc", "Me")
_HANGUL_VOWELS_AND_FINALS = range(0x1160, 0x1200)
_BEYOND_ASCII = "[\\x80-\U0010ffff]+"


class _Part(NamedTuple):
    """A part is either equal in both texts, or one sign."""

    start: int
    end: int
    folded_start: int
    folded_end: int

    @property
    def is_equal(self) -> bool:
        return self.end - self.start == self.folded_end - self.folded_start


class FoldedText:
    def __init__(self, parts: list[_Part], text: str) -> None:
        self.text = text
        self._parts = parts
        self._starts = [part.start for part in parts]
        self._folded_starts = [part.folded_start for part in parts]

    def find_original(self, start: int, end: int) -> tuple[int, int] | None:
        """Returns the place of a part of the folded text, or None if it begins or ends within one sign."""
        first = self._parts[bisect_right(self._folded_starts, start) - 1]
        last = self._parts[bisect_right(self._folded_starts, end - 1) - 1]
        if not (first.is_equal or start == first.folded_start) or not (last.is_equal or end == last.folded_end):
            return None
        return first.start + (start - first.folded_start), last.end - (last.folded_end - end)

    def find_place(self, place: int) -> int | None:
        """Returns where a place of the folded text is in the original, or None if it is within one sign."""
        part = self._parts[bisect_right(self._folded_starts, place) - 1]
        return part.start + place - part.folded_start if part.is_equal or place == part.folded_start else None

    def find_folded(self, place: int) -> int | None:
        """Returns where a place of the original is in the folded text, or None if it is within one sign."""
        part = self._parts[max(0, bisect_right(self._starts, place) - 1)]
        place = max(place, part.start)
        if place >= part.end:
            return part.folded_end
        if part.is_equal or place == part.start:
            return part.folded_start + place - part.start
        return None


def fold_text(text: str, *, line_end: str | None, signs: bool) -> FoldedText:
    """Replaces a line end by LF, and with `signs` also signs and decomposed letters."""
    found = [re.escape(line_end)] if line_end not in (None, "\n") else []
    pattern = "|".join([*found, *([_BEYOND_ASCII] if signs else [])])
    parts, pieces = list[_Part](), list[str]()
    place = length = 0
    for start, sign in _find_signs(text, pattern):
        for begin, end, folded in ((place, start, text[place:start]), (start, start + len(sign), _fold_sign(sign))):
            if folded:
                parts.append(_Part(begin, end, length, length + len(folded)))
                pieces.append(folded)
                length += len(folded)
        place = start + len(sign)
    parts.append(_Part(place, len(text), length, length + len(text) - place))
    return FoldedText(parts, "".join(pieces) + text[place:])


def _find_signs(text: str, pattern: str) -> Iterator[tuple[int, str]]:
    """Yields each letter beyond ASCII together with the marks on it."""
    if not pattern:
        return
    for match in re.finditer(pattern, text):
        start, end = match.span()
        if text[start] == "\r":
            yield start, match[0]
            continue
        if _is_mark(text[start]) and start and text[start - 1].isalpha():
            start -= 1
        for place in range(start + 1, end + 1):
            if place == end or not _is_mark(text[place]):
                yield start, text[start:place]
                start = place


def _is_mark(c: str) -> bool:
    return unicodedata.category(c) in _MARKS or ord(c) in _HANGUL_VOWELS_AND_FINALS


def _fold_sign(sign: str) -> str:
    return "\n" if sign[0] == "\r" else unicodedata.normalize("NFC", sign).translate(_FOLDED)
