"""Removes invisible characters from titles and from text for a model, and checks what can be stored."""

import re
import unicodedata
from collections.abc import Sequence

from common.default_ignorable import DEFAULT_IGNORABLE

# The flag of a part of a country is a black flag, three to six tags and an end tag; other tags are invisible text.
_FLAG_TAGS = "[\U000e0030-\U000e0039\U000e0061-\U000e007a]{3,6}\U000e007f"
FLAG = f"\U0001f3f4{_FLAG_TAGS}"
# Zero-width joiners and non-joiners join emoji or shape letters: one of them, between two characters beyond ASCII.
_DRAWN = "[^\\x00-\\x7f\u200b-\u200f\u2028-\u202e\u2060-\u206f]"
# A variation selector chooses how the character before it looks, emoji or text, or which form of a sign it is.
_SELECTORS = "\ufe00-\ufe0f\U000e0100-\U000e01ef"
_MARKS = "\u200e\u200f\u061c"
_IGNORABLE = frozenset(chr(c) for first, last in DEFAULT_IGNORABLE for c in range(first, last + 1))
# Ranges, as the `re` of Python would compare each character with thousands beyond the Basic Multilingual Plane.
_IGNORABLE_RANGES = "".join(f"{chr(first)}-{chr(last)}" for first, last in DEFAULT_IGNORABLE)
_REMOVED = f"\\x00-\\x08\\x0b\\x0c\\x0e-\\x1f\\x7f-\x9f\ufff9-\ufffb{_IGNORABLE_RANGES}"
_MAY_BE_INVISIBLE = re.compile(f"[{_REMOVED}](?<![{_MARKS}])")
# It begins with one set of characters, as all others are skipped several times as fast then. A group means: keep it.
_INVISIBLE = re.compile(
    f"[{_REMOVED}\U0001f3f4]"
    f"(?:(?<=\U0001f3f4)(?:{_FLAG_TAGS})?()"
    f"|(?<={_DRAWN}[\u200c\u200d])(?={_DRAWN})()"
    f"|(?<=[^\\s{_SELECTORS}][\ufe0e\ufe0f])()"
    f"|(?<=[^\\x00-\\x7f{_SELECTORS}][{_SELECTORS}])()"
    f"|(?<=[{_MARKS}])()"
    "|)"
)
_DIRECTION_MARKS = re.compile(f"[{_MARKS}]")  # needed only in text of right-to-left scripts
_RIGHT_TO_LEFT = re.compile(
    "[\u0590-\u061b\u061d-\u08ff\ufb1d-\ufdff\ufe70-\ufefc\U00010800-\U00010fff\U0001e800-\U0001efff]"
)
_BLANK = frozenset("\u115f\u1160\u2800\u3164\uffa0")  # letters and symbols that look like nothing

_MAX_MARKS = 30  # on one letter, as in UAX #15, Stream-Safe Text Format: no language needs more


def remove_invisible(text: str) -> str:
    """Removes control characters, direction overrides, tags and zero-width characters.

    Keeps line breaks, tabs and what emoji and scripts such as Arabic, Hebrew, Persian and Devanagari need.
    """
    if text.isascii() and text.isprintable():
        return text
    if _MAY_BE_INVISIBLE.search(text):
        text = _INVISIBLE.sub(lambda match: match[0] if match.lastindex else "", text)
    if _DIRECTION_MARKS.search(text) and not _RIGHT_TO_LEFT.search(text):
        text = _DIRECTION_MARKS.sub("", text)
    return text


def is_ignorable(c: str) -> bool:
    """Whether a character is one that Unicode says looks like nothing, if no program draws it in a way of its own."""
    return c in _IGNORABLE


def remove_stacked_marks(text: str) -> str:
    """Removes combining marks beyond 30 on one letter: PostgreSQL takes seconds to normalize thousands."""
    if text.isascii():
        return text
    result: list[str] = []
    marks = 0
    for c in text:
        marks = marks + 1 if unicodedata.combining(c) else 0
        if marks <= _MAX_MARKS:
            result.append(c)
    return "".join(result)


def is_visible(text: str) -> bool:
    """Whether the text has a letter, number, punctuation or symbol that is not blank."""
    return any(unicodedata.category(c)[0] in "LNPS" and c not in _BLANK for c in text)


def is_storable(text: str, allowed: str = "") -> bool:
    """Whether PostgreSQL can store the text and one line can show it: no control characters, no lone surrogates."""
    return not any(unicodedata.category(c) in ("Cc", "Cs", "Zl", "Zp") and c not in allowed for c in text)


def is_single_line_text(text: str, *, max_length: int) -> bool:
    return len(text) <= max_length and is_storable(text) and is_visible(text)


def join_words(words: Sequence[str], last: str = "and") -> str:
    """Joins words as a sentence lists them: "a, b and c"."""
    return f" {last} ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)
