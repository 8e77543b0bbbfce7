"""Replaces signs that models confuse, such as typographic quotes, by plain ones, and maps places to the original."""

import re
import unicodedata
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from io import StringIO

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
_RESIZED = re.compile(f"[{_SIGNS['']}{_SIGNS['...']}]")
_MARKS = ("Mn", "Mc", "Me")
_HANGUL_VOWELS_AND_FINALS = range(0x1160, 0x1200)
_BEYOND_ASCII = "[\\x80-\U0010ffff]+"
_SEARCHED_CHARS = 30_000  # at a time, as other threads wait for each call
_MAX_MARKS = 30  # on one letter, as in UAX #15, Stream-Safe Text Format


class FoldedText:
    """A text and where its signs were that had another length. Arrays, as collecting many objects takes long."""

    def __init__(self) -> None:
        self._text = StringIO()
        self._starts, self._ends = array("q"), array("q")
        self._folded_starts, self._folded_ends = array("q"), array("q")
        self._length = 0

    @property
    def text(self) -> str:
        return self._text.getvalue()

    def add(self, folded: str, start: int, end: int) -> None:
        """Adds the part that was between `start` and `end` in the original."""
        if len(folded) != end - start:
            self._starts.append(start)
            self._ends.append(end)
            self._folded_starts.append(self._length)
            self._folded_ends.append(self._length + len(folded))
        self._text.write(folded)
        self._length += len(folded)

    def find_original(self, start: int, end: int) -> tuple[int, int] | None:
        """Returns the place of a part of the folded text, or None if it begins or ends within one sign."""
        first = self.find_place(start)
        sign = bisect_left(self._folded_starts, end) - 1  # without signs of no length at the end
        if first is None or (sign >= 0 and end < self._folded_ends[sign]):
            return None
        return first, end if sign < 0 else self._ends[sign] + end - self._folded_ends[sign]

    def find_place(self, place: int) -> int | None:
        """Returns where a place of the folded text is in the original, or None if it is within one sign."""
        sign = bisect_right(self._folded_starts, place) - 1
        if sign < 0:
            return place
        if place < self._folded_ends[sign]:
            return self._starts[sign] if place == self._folded_starts[sign] else None
        return self._ends[sign] + place - self._folded_ends[sign]

    def find_folded(self, place: int) -> int | None:
        """Returns where a place of the original is in the folded text, or None if it is within one sign."""
        sign = bisect_right(self._starts, place) - 1
        if sign < 0:
            return place
        if place < self._ends[sign]:
            return self._folded_starts[sign] if place == self._starts[sign] else None
        return self._folded_ends[sign] + place - self._ends[sign]


def fold_text(text: str, *, line_end: str, signs: bool) -> FoldedText:
    """Replaces a line end by LF, and with `signs` also signs and decomposed letters."""
    folded, place = FoldedText(), 0
    for start, end in _find_signs(re.compile(f"{line_end}|{_BEYOND_ASCII}" if signs else line_end), text):
        if signs and start > place and _is_mark(text[start]):
            start -= 1  # the letter that has the mark
        folded.add(text[place:start], place, start)
        place = end
        if text[start] == "\r":
            folded.add("\n", start, end)
            continue
        run = text[start:end]
        if unicodedata.is_normalized("NFC", run) and not _RESIZED.search(run):
            folded.add(run.translate(_FOLDED), start, end)
            continue
        for first, last in _split_letters(run):
            sign = unicodedata.normalize("NFC", run[first:last]).translate(_FOLDED)
            folded.add(sign, start + first, start + last)
    folded.add(text[place:], place, len(text))
    return folded


def _find_signs(pattern: re.Pattern[str], text: str) -> Iterator[tuple[int, int]]:
    start = 0
    while start < len(text):
        end = min(start + _SEARCHED_CHARS, len(text))
        limit = min(end + _MAX_MARKS, len(text))
        while end < limit and (_is_mark(text[end]) or text.startswith("\r\n", end - 1)):
            end += 1
        yield from (match.span() for match in pattern.finditer(text, start, end))
        start = end


def _split_letters(run: str) -> Iterator[tuple[int, int]]:
    """Yields the place of each letter with the marks on it."""
    start = 0
    for place in range(1, len(run) + 1):
        if place == len(run) or not _is_mark(run[place]):
            yield start, place
            start = place


def _is_mark(c: str) -> bool:
    return unicodedata.category(c) in _MARKS or ord(c) in _HANGUL_VOWELS_AND_FINALS
