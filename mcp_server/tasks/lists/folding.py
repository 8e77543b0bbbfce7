# ruff: noqa: RUF001 - letters that look alike are the subject
"""Which letters a search takes for the same: one table, for SQL and for Python."""

import unicodedata
from typing import Any, LiteralString

_ACCENTS = range(0x300, 0x370)
_HEBREW_POINTS = (*range(0x591, 0x5BE), 0x5BF, 0x5C1, 0x5C2, 0x5C4, 0x5C5, 0x5C7)
_ARABIC_MARKS = (0x640, *range(0x64B, 0x660), 0x670)  # the first stretches words
# What the compatibility decomposition (NFKD) leaves apart.
_LETTERS = {
    **{"ł": "l", "ø": "o", "đ": "d", "ð": "d", "ħ": "h", "ŧ": "t", "ı": "i", "ς": "σ", "ٱ": "ا"},
    **dict.fromkeys("‘’‛ʹʻʼʾʿ׳′", "'"),
    **dict.fromkeys("‐‒–—―−־", "-"),
}
_WRITTEN_OUT = {"ß": "ss", "æ": "ae", "œ": "oe", "þ": "th"}
_IN_PYTHON = str.maketrans(_LETTERS | _WRITTEN_OUT | {chr(mark): "" for mark in (*_HEBREW_POINTS, *_ARABIC_MARKS)})
VALUES: dict[str, Any] = {
    "letters": "".join(_LETTERS) + "".join(map(chr, (*_HEBREW_POINTS, *_ARABIC_MARKS))),  # those without another go
    "alike": "".join(_LETTERS.values()),
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
    """What is left to do of `fold` for a text without accents."""
    plain: LiteralString = f"translate({folded}, %(letters)s, %(alike)s)"
    for letter, letters in (("ß", "ss"), ("æ", "ae"), ("œ", "oe"), ("þ", "th")):
        plain = f"replace({plain}, '{letter}', '{letters}')"
    return f"CASE WHEN octet_length({folded}) = char_length({folded}) THEN {folded} ELSE {plain} END"
