"""Text that people can see: what both services keep out of titles, and out of what a model reads."""

import re
import unicodedata

# A flag of a part of a country is a black flag, three to six tags and their end; tags elsewhere spell what nobody sees.
_FLAG = "\U0001f3f4[\U000e0030-\U000e0039\U000e0061-\U000e007a]{3,6}\U000e007f"
# Zero-width joiners and non-joiners join emoji, or shape letters beyond ASCII: one, and between two of those.
_DRAWN = "[^\\x00-\\x7f\u200b-\u200f\u2028-\u202e\u2060-\u206f]"
_JOINER = f"(?<={_DRAWN})[\u200c\u200d](?={_DRAWN})"
# A variation selector chooses how the character before it looks, emoji or text, or which form of a sign it is.
_SELECTORS = "\ufe00-\ufe0f\U000e0100-\U000e01ef"
_SELECTOR = f"(?<=[^\\s{_SELECTORS}])[\ufe0e\ufe0f]|(?<=[^\\x00-\\x7f{_SELECTORS}])[{_SELECTORS}]"
_UNSEEN = re.compile(
    f"({_FLAG}|{_JOINER}|{_SELECTOR})"
    "|[\\x00-\\x08\\x0b\\x0c\\x0e-\\x1f\\x7f-\x9f\xad\u034f\u180b-\u180f\u200b-\u200d\u202a-\u202e\u2060-\u206f\ufeff"
    f"\ufff9-\ufffb\U0001d173-\U0001d17a\U000e0000-\U000e007f{_SELECTORS}]"
)
_MARKS = re.compile("[\u200e\u200f\u061c]")  # of direction: they mean something beside letters from right to left
_BLANK = frozenset("\u115f\u1160\u2800\u3164\uffa0")  # letters and symbols that look like nothing

_MOST_MARKS = 30  # on one letter, as UAX #15 has it for texts in streams: no language needs more


def without_unseen(text: str) -> str:
    """The text without control characters, overrides of direction, tags and zero-width characters.

    Line breaks and tabs stay, and what emoji and scripts such as Arabic, Hebrew, Persian and Devanagari need.
    """
    if text.isascii() and text.isprintable():
        return text
    text = _UNSEEN.sub(lambda found: found[1] or "", text)
    if _MARKS.search(text) and not _runs_to_the_left(text):
        text = _MARKS.sub("", text)
    return text


def without_heaps(text: str) -> str:
    """The text without what is heaped upon a letter beyond 30 accents and points.

    The database puts them in an order of their own, for which it takes seconds where there are thousands.
    """
    if text.isascii():
        return text
    kept: list[str] = []
    marks = 0
    for c in text:
        marks = marks + 1 if unicodedata.combining(c) else 0
        if marks <= _MOST_MARKS:
            kept.append(c)
    return "".join(kept)


def _runs_to_the_left(text: str) -> bool:
    return any(unicodedata.bidirectional(c) in ("R", "AL") and not _MARKS.match(c) for c in text)


def can_be_seen(text: str) -> bool:
    """Whether there is a letter, a number, a sign or a symbol in it that is not blank."""
    return any(unicodedata.category(c)[0] in "LNPS" and c not in _BLANK for c in text)


def is_storable(text: str, allowed: str = "") -> bool:
    """Whether PostgreSQL can store it and a line can show it: no control characters, no lone surrogates."""
    return not any(unicodedata.category(c) in ("Cc", "Cs", "Zl", "Zp") and c not in allowed for c in text)


def is_single_line_text(text: str, *, longest: int) -> bool:
    """Whether it is one line with something to see, of at most `longest` characters, that PostgreSQL can store."""
    return len(text) <= longest and is_storable(text) and can_be_seen(text)
