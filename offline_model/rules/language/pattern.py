"""The language of patterns, and a match that takes one look from each end of a text.

`word`, `(this|that one)`, `[may be left out]`, `#` for a number, `{name}` for the words of that name in NAMES. `<task>`
is a gap, the part that the wish is about. A pattern has one at most, or two with one bracket between them and nothing
after, as in `rename <task> (to|as) <value>`: so a match takes time in proportion to the text's length.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice, product

from offline_model.rules.language.text import Text
from offline_model.rules.language.vocabulary import NAMES

_SYMBOL = re.compile(r"<[^>]*>|[()\[\]|]|[^\s()\[\]|]+")
_MOST_READINGS = 8
Keys = Sequence[str]
Words = tuple[str, ...]
Reading = dict[str, Text]
"""What the gaps of a pattern stand for in a text."""


class Phrases:
    """All that a part of a pattern may stand for, each as its words."""

    def __init__(self, phrases: Iterable[Words]) -> None:
        self._phrases = frozenset(phrases)
        self._lengths = sorted({len(phrase) for phrase in self._phrases}, reverse=True)
        self.first_words = {phrase[0] if phrase else "" for phrase in self._phrases}

    @classmethod
    def of(cls, source: str) -> "Phrases":
        return cls(_choices(iter(_SYMBOL.findall(source))))

    def ends(self, keys: Keys, at: int) -> list[int]:
        """Where those end that begin at this word, the longest first."""
        ends = [at + length for length in self._lengths]
        return [end for end in ends if end <= len(keys) and tuple(keys[at:end]) in self._phrases]

    def starts(self, keys: Keys, at: int) -> list[int]:
        """Where those begin that end before this word, the longest first."""
        starts = [at - length for length in self._lengths]
        return [start for start in starts if start >= 0 and tuple(keys[start:at]) in self._phrases]

    def places(self, keys: Keys) -> Iterator[tuple[int, int]]:
        """One after the other, each as the word at which it begins and the one before which it ends."""
        free = 0
        for at, key in enumerate(keys):
            if at >= free and not self.first_words.isdisjoint(("", key)) and (ends := self.ends(keys, at)):
                free = ends[0]
                yield at, free


def without(text: Text, leading: Phrases | None = None, trailing: Phrases | None = None) -> Text:
    """The text without such phrases at its ends, however many there are; something is always left."""
    keys, first, end = text.keys, 0, len(text.keys)
    while leading and first < (at := max(leading.ends(keys, first), default=first)) < end:
        first = at
    while trailing and first < (at := min(trailing.starts(keys, end), default=end)) < end:
        end = at
    return text.part(first, end)


class Pattern:
    def __init__(self, source: str) -> None:
        symbols = iter(_SYMBOL.findall(source))
        runs: list[list[Phrases]] = [[]]
        self.gaps: list[str] = []
        for symbol in symbols:
            if symbol == "..." or symbol[0] == "<":
                self.gaps.append(symbol.strip("<>"))
                runs.append([])
            else:
                runs[-1].append(Phrases(_meant(symbol, symbols)))
        if len(self.gaps) > 1 and [len(run) for run in runs[1:]] != [1, 0]:
            raise ValueError(f"one gap, or two with one bracket between them and nothing after: {source}")
        self._before, self._after = runs[0], runs[-1] if self.gaps else []
        self._between = runs[1][0] if len(self.gaps) == 2 else None
        self._first_words = {""}
        for phrases in self._before:
            if "" in self._first_words:
                self._first_words = self._first_words - {""} | phrases.first_words

    def readings(self, text: Text) -> list[Reading]:
        """The ways in which it fits the whole text; more than one if two gaps can be parted in more than one place."""
        keys, firsts, ends = text.keys, {0}, {len(text.keys)}
        if not keys or self._first_words.isdisjoint(("", keys[0])):
            return []
        for phrases in self._before:
            firsts = {end for first in firsts for end in phrases.ends(keys, first)}
        for phrases in reversed(self._after):
            ends = {start for end in ends for start in phrases.starts(keys, end)}
        if not self.gaps:
            return [{}] if len(keys) in firsts else []
        places = ((first, end) for first in sorted(firsts, reverse=True) for end in sorted(ends) if end >= first)
        parts = (text.part(first, end) for first, end in places)
        part = next((part for part in parts if part or self.gaps == ["..."]), None)
        if part is None or not self._between:
            return [] if part is None else [{self.gaps[0]: part}]
        one, other = self.gaps
        places = islice(self._between.places(part.keys), _MOST_READINGS)
        return [{one: part.part(0, first), other: part.part(end, len(part.keys))} for first, end in places]


def _choices(symbols: Iterator[str]) -> list[Words]:
    """All that may be said up to the next closing bracket, which is used up."""
    choices: list[Words] = []
    said: list[Words] = [()]
    for symbol in symbols:
        if symbol in (")", "]"):
            break
        if symbol == "|":
            choices += said
            said = [()]
        else:
            said = [words + more for words, more in product(said, _meant(symbol, symbols))]
    return choices + said


def _meant(symbol: str, symbols: Iterator[str]) -> list[Words]:
    """What a word, a name or an opening bracket stands for, with what follows up to the bracket's end."""
    if symbol[0] == "{":
        return _choices(iter(_SYMBOL.findall(NAMES[symbol[1:-1]])))
    if symbol in ("(", "["):
        return _choices(symbols) + ([()] if symbol == "[" else [])
    return [tuple(Text.of(symbol).keys) or (symbol,)]
