"""How hard a secret is to guess, as far as its text tells."""

import math
import re

_PLACEHOLDER = re.compile(r"change.?(me|this|it)|example|placeholder|your.?secret", re.IGNORECASE)
_WORD = re.compile(r"[a-z]{5,}|[A-Z]{5,}|[A-Z][a-z]{4,}")
_HEXADECIMAL = frozenset("abcdefABCDEF")  # hardly a word is made of these, and many a random secret
_SHORTEST_BYTES = 32
_FEWEST_BITS = 50
_BITS_OF_A_LETTER_IN_A_WORD = 1.5  # Shannon, "Prediction and Entropy of Printed English", 1951, says 0.6 to 1.3


def is_weak(secret: str) -> bool:
    """Whether a secret is short, still an example's, or made of words, sequences or what repeats."""
    return (
        len(secret.encode()) < _SHORTEST_BYTES
        or _PLACEHOLDER.search(secret) is not None
        or _bits(secret) < _FEWEST_BITS
    )


def _bits(secret: str) -> float:
    """About how many bits a guesser lacks, in one pass.

    A character counts as much as the variety of the secret's characters allows; a letter of what could be a word counts
    less; one that repeats what came before, or goes on in equal steps (aaaa, 4567, a1b2c3), counts nothing.
    """
    each = math.log2(len(set(secret)))
    words = [word.span() for word in _WORD.finditer(secret) if not _HEXADECIMAL.issuperset(word[0])]
    in_words = {place for span in words for place in range(*span)}
    codes, folded = [ord(character) for character in secret], secret.casefold()
    seen: set[str] = set()
    bits = 0.0
    for place in range(2, len(secret)):
        three = folded[place - 2 : place + 1]
        if three not in seen and not _goes_on(codes, place):
            bits += min(each, _BITS_OF_A_LETTER_IN_A_WORD) if place in in_words else each
        seen.add(three)
    return bits


def _goes_on(codes: list[int], place: int) -> bool:
    """Whether a character is as far from the one before, or from the one before that, as that was from its own."""
    return any(
        place >= 2 * step and codes[place] - codes[place - step] == codes[place - step] - codes[place - 2 * step]
        for step in (1, 2)
    )
