# ruff: noqa: RUF001 - letters that look alike are the subject
"""Equivalent letters of a search, in SQL and in Python, and titles that are similar to a query."""

import re
import unicodedata
from collections.abc import Iterable
from heapq import nlargest
from itertools import pairwise
from typing import Any, LiteralString

_MIN_SHARE = 0.3  # of the query's pieces
_MAX_CANDIDATES = 50  # titles of which all pieces are compared
_MAX_COMPARED = 200  # letters; NFKD may expand a sign to eighteen
_ACCENTS = re.compile("[\u0300-\u036f]+")
# As PostgreSQL prints the column `folded` of tasks, because Alembic compares the two.
FOLD_ACCENTS = r"lower(regexp_replace(NORMALIZE({}, NFKD), '[\u0300-\u036F]'::text, ''::text, 'g'::text))"
"""SQL that removes case and accents from a text."""
_HEBREW_POINTS = (*range(0x591, 0x5BE), 0x5BF, 0x5C1, 0x5C2, 0x5C4, 0x5C5, 0x5C7)
_ARABIC_MARKS = (0x640, *range(0x64B, 0x660), 0x670)  # the first stretches words
# Letters that the compatibility decomposition (NFKD) does not unify.
_LETTERS = {
    **{"ł": "l", "ø": "o", "đ": "d", "ð": "d", "ħ": "h", "ŧ": "t", "ı": "i", "ς": "σ", "ٱ": "ا"},
    **dict.fromkeys("‘’‛ʹʻʼʾʿ׳′", "'"),
    **dict.fromkeys("‐‒–—―−־", "-"),
}
_JOINTS = frozenset("-'")
_WRITTEN_OUT: dict[LiteralString, LiteralString] = {"ß": "ss", "æ": "ae", "œ": "oe", "þ": "th"}
_MARKS = "".join(map(chr, (*_HEBREW_POINTS, *_ARABIC_MARKS)))
_IN_PYTHON = str.maketrans(_LETTERS | _WRITTEN_OUT | dict.fromkeys(_MARKS, ""))
VALUES: dict[str, Any] = {
    "letters": "".join(_LETTERS),
    "alike": "".join(_LETTERS.values()),
    "marks": f"[{_MARKS}]",
    "special": f"[{''.join([*_LETTERS, *_WRITTEN_OUT, *_MARKS])}]",
}
"""The values of statements that use `fold_letters`."""


def fold(text: str) -> str:
    if text.isascii():
        return text.lower()
    return _ACCENTS.sub("", unicodedata.normalize("NFKD", text)).lower().translate(_IN_PYTHON)


def fold_letters(folded: LiteralString) -> LiteralString:
    """Returns SQL that does the rest of `fold` for a text without accents.

    It checks first whether there is anything to do, which takes a fiftieth of the time. With an empty text added,
    PostgreSQL decompresses a long text once, and not for each pattern that it is compared with.
    """
    plain: LiteralString = f"translate(regexp_replace({folded}, %(marks)s, '', 'g'), %(letters)s, %(alike)s)"
    for letter, letters in _WRITTEN_OUT.items():
        plain = f"replace({plain}, '{letter}', '{letters}')"
    is_plain: LiteralString = f"octet_length({folded}) = char_length({folded}) OR {folded} !~ %(special)s"
    return f"CASE WHEN {is_plain} THEN {folded} || '' ELSE {plain} END"


def remove_joints(folded: LiteralString) -> LiteralString:
    """Returns SQL for a folded text without hyphens and apostrophes, which a search may leave out."""
    return f"replace(replace({folded}, '-', ''), '''', '')"


def is_joint(word: str) -> bool:
    return set(fold(word)) <= _JOINTS


def find_nearest(query: str, titles: Iterable[tuple[int, str]], *, limit: int) -> list[tuple[int, str]]:
    """Returns the titles with most of the query's pieces, among equals the shortest first."""
    of_query = _split_pieces(fold(query))
    pieces = [(id, title, _split_pieces(folded)) for id, title, folded in _choose_candidates(query, titles)]
    scores = [(len(of_query & of_title), len(of_title), id, title) for id, title, of_title in pieces]
    similar = [score for score in scores if score[0] > 0 and score[0] >= _MIN_SHARE * len(of_query)]
    return [(id, title) for _, _, id, title in sorted(similar, key=lambda score: (-score[0], *score[1:3]))[:limit]]


def _choose_candidates(query: str, titles: Iterable[tuple[int, str]]) -> list[tuple[int, str, str]]:
    """Returns the titles, with their folded texts, that share most pairs of letters with the query.

    To look for a pair in a text takes a hundredth of the time that it takes to make the pieces of all titles.
    """
    pairs = {first + second for word in fold(query)[:_MAX_COMPARED].split() for first, second in pairwise(f" {word} ")}
    folded = [(id, title, f" {fold(title)} ") for id, title in titles]
    return nlargest(_MAX_CANDIDATES, folded, key=lambda each: sum(map(each[2].__contains__, pairs)))


def _split_pieces(folded: str) -> set[tuple[str, ...]]:
    """Returns trigrams, bigrams and pairs of letters with one between them.

    Most of them stay the same when two letters of a word are swapped or one is missing.
    """
    pieces: set[tuple[str, ...]] = set()
    for word in folded[:_MAX_COMPARED].split():
        spaced = f" {word} "
        pieces.update(pairwise(spaced), zip(spaced, spaced[2:], strict=False))
        pieces.update(zip(spaced, spaced[1:], spaced[2:], strict=False))
    return pieces
