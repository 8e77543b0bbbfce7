# ruff: noqa: RUF001 - letters that look alike are the subject
"""Which letters a search takes for the same, in SQL and in Python, and which titles are spelled nearly as a query."""

import unicodedata
from collections.abc import Iterable
from itertools import pairwise
from typing import Any, LiteralString

_LEAST = 0.3  # of the query's pieces
_MOST_LOOKED_AT = 200  # letters: some signs are written out with eighteen
_ACCENTS = range(0x300, 0x370)
_HEBREW_POINTS = (*range(0x591, 0x5BE), 0x5BF, 0x5C1, 0x5C2, 0x5C4, 0x5C5, 0x5C7)
_ARABIC_MARKS = (0x640, *range(0x64B, 0x660), 0x670)  # the first stretches words
# What the compatibility decomposition (NFKD) leaves apart.
_LETTERS = {
    **{"ł": "l", "ø": "o", "đ": "d", "ð": "d", "ħ": "h", "ŧ": "t", "ı": "i", "ς": "σ", "ٱ": "ا"},
    **dict.fromkeys("‘’‛ʹʻʼʾʿ׳′", "'"),
    **dict.fromkeys("‐‒–—―−־", "-"),
}
_WRITTEN_OUT: dict[LiteralString, LiteralString] = {"ß": "ss", "æ": "ae", "œ": "oe", "þ": "th"}
_MARKS = "".join(map(chr, (*_HEBREW_POINTS, *_ARABIC_MARKS)))
_IN_PYTHON = str.maketrans(_LETTERS | _WRITTEN_OUT | dict.fromkeys(_MARKS, ""))
VALUES: dict[str, Any] = {
    "letters": "".join(_LETTERS),
    "alike": "".join(_LETTERS.values()),
    "marks": f"[{_MARKS}]",
    "special": f"[{''.join([*_LETTERS, *_WRITTEN_OUT, *_MARKS])}]",
}
"""Of the statements that use `fold_letters`."""


def fold(text: str) -> str:
    """The text without case, accents and points, as a search compares it."""
    without = "".join(c for c in unicodedata.normalize("NFKD", text) if ord(c) not in _ACCENTS)
    return without.lower().translate(_IN_PYTHON)


def fold_accents(text: LiteralString) -> LiteralString:
    """A text in SQL without its case and its accents, as the column `folded` of tasks has it."""
    return rf"lower(regexp_replace(normalize({text}, NFKD), '[\u0300-\u036F]', '', 'g'))"


def fold_letters(folded: LiteralString) -> LiteralString:
    """What is left to do of `fold` for a text without accents.

    Most texts have nothing special: to look first takes a fiftieth of the time.
    """
    plain: LiteralString = f"translate(regexp_replace({folded}, %(marks)s, '', 'g'), %(letters)s, %(alike)s)"
    for letter, letters in _WRITTEN_OUT.items():
        plain = f"replace({plain}, '{letter}', '{letters}')"
    is_plain: LiteralString = f"octet_length({folded}) = char_length({folded}) OR {folded} !~ %(special)s"
    return f"CASE WHEN {is_plain} THEN {folded} ELSE {plain} END"


def nearest(query: str, titles: Iterable[tuple[int, str]], *, most: int) -> list[tuple[int, str]]:
    """Of numbered titles those that have most of the query's pieces, of equals the shortest first."""
    wanted = _pieces(query)
    scored = [(len(wanted & found), len(found), id, title) for id, title in titles if (found := _pieces(title))]
    enough = [one for one in scored if one[0] > 0 and one[0] >= _LEAST * len(wanted)]
    return [(id, title) for _, _, id, title in sorted(enough, key=lambda one: (-one[0], *one[1:3]))[:most]]


def _pieces(text: str) -> set[tuple[str, ...]]:
    """Three letters in a row, and two that stand next to each other or have one between them.

    Those are the same for most of a word when two of its letters change places, or one is missing.
    """
    pieces: set[tuple[str, ...]] = set()
    for word in fold(text)[:_MOST_LOOKED_AT].split():
        spaced = f" {word} "
        pieces.update(pairwise(spaced), zip(spaced, spaced[2:], strict=False))
        pieces.update(zip(spaced, spaced[1:], spaced[2:], strict=False))
    return pieces
