"""Titles that are spelled nearly as a query: what was not found may be a slip of the pen."""

from collections.abc import Iterable
from itertools import pairwise

from mcp_server.tasks.lists.folding import fold

_LEAST = 0.3  # of the query's pieces
_MOST_LOOKED_AT = 200  # letters: some signs are written out with eighteen


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
