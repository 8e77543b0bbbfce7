"""English words: stems, numbers, and what kind of text they begin."""

import re
from collections.abc import Sequence
from functools import lru_cache

from offline_model.rules.language import vocabulary
from offline_model.rules.language.text import Text
from offline_model.rules.language.vocabulary import PASTS, POINTING, POSITIONS, UNSAID, VERBS

_WORD = re.compile(r"[^\W_]+(?:'[^\W_]+)?")
_RANGE = re.compile(r"\b([0-9]{1,18}) ?(?:-|\u2013|\.\.|to|through|until) ?(?:(?:task|number) )?([0-9]{1,18})\b")
_PART_OF_NUMBERS = re.compile(r"[0-9]+|[^\W\d_]+|[^\s\w,;&#.]")
_LONGEST_RANGE = 100
_MOST_RANGES = 10
_LONGEST_NUMBER = 18


def tokens(text: str) -> list[str]:
    return _WORD.findall(text.casefold())


def lower(text: Text) -> str:
    return text.shown().casefold()


def one_text(text: Text) -> list[str]:
    return [text.shown()]


@lru_cache(maxsize=10_000)
def base(word: str) -> str:
    """A crude stem, the same for "call", "called" and "calling"."""
    word = PASTS.get(word.removesuffix("'s"), word.removesuffix("'s"))
    for ending, instead in (("ied", "y"), ("ies", "y"), ("ing", ""), ("ed", ""), ("s", "")):
        if word.endswith(ending) and len(word) - len(ending) >= 3 and not word.endswith(("ss", "us", "is")):
            word = word.removesuffix(ending) + instead
            break
    word = word.removesuffix("e") if len(word) > 3 else word
    return word[:-1] if len(word) > 3 and word[-1] == word[-2] else word


_VERB_BASES = frozenset(map(base, VERBS))


def meaning(text: str) -> frozenset[str]:
    """The stems of the words that tell one task from another."""
    return frozenset(map(base, set(tokens(text)) - UNSAID))


def is_past(word: str) -> bool:
    return word in PASTS or (word.endswith("ed") and len(word) > 4)


def is_known_past(word: str) -> bool:
    return word not in VERBS and is_past(word) and base(word) in _VERB_BASES


def numbers_in(phrase: str) -> tuple[int, ...]:
    """The task numbers that the phrase consists of, as in "7", "task 7", "7 8" and "7-9", if it names nothing else."""
    parts = _PART_OF_NUMBERS.findall(_RANGE.sub(_spelt_out, phrase.casefold(), count=_MOST_RANGES))
    others = [part for part in parts if not (part.isdecimal() and len(part) <= _LONGEST_NUMBER)]
    is_other = not vocabulary.BESIDE_NUMBERS.issuperset(others)
    return () if is_other else tuple(int(part) for part in parts if part.isdecimal())


def _spelt_out(span: re.Match[str]) -> str:
    first, last = int(span[1]), int(span[2])
    return " ".join(map(str, range(first, min(last, first + _LONGEST_RANGE) + 1)))


def points(phrase: str) -> bool:
    """Whether it is only "it" or "the last task", which name no task, or nothing."""
    words = set(tokens(phrase))
    return not words or (bool(words & (POINTING | POSITIONS)) and words <= POINTING | POSITIONS | UNSAID)


def means_selected(phrase: str) -> bool:
    """Whether "these" or "all of them" may be the tasks that were selected."""
    return points(phrase) or {"all", "them", *POINTING, *UNSAID}.issuperset(tokens(phrase))


_ORDER = ("first", "second", "third", "fourth", "fifth")
_HOW_MANY = {"two": 2, "three": 3, "four": 4, "five": 5, "2": 2, "3": 3, "4": 4, "5": 5}
_MANY = frozenset(["them", "those", "these", "all", "both"])


def pointed_at(phrase: str, ids: Sequence[int]) -> tuple[int, ...]:
    """Which of the tasks that were just shown "them", "it" or "the first two" means; nothing if it is not clear."""
    said = [word for word in tokens(phrase) if word not in ("the", "of", "one", "ones", "task", "tasks")]
    match said:
        case [word] if word in _MANY:
            return tuple(ids) if word != "both" or len(ids) == 2 else ()
        case ["all", "them" | "those" | "these"]:
            return tuple(ids)
        case ["it" | "that" | "this"]:
            return tuple(ids) if len(ids) == 1 else ()
        case [word] if word in _ORDER:
            return tuple(ids[_ORDER.index(word) : _ORDER.index(word) + 1])
        case ["last"]:
            return tuple(ids[-1:])
        case ["first" | "last" as end, count] if count in _HOW_MANY and len(ids) >= _HOW_MANY[count]:
            return tuple(ids[: _HOW_MANY[count]] if end == "first" else ids[-_HOW_MANY[count] :])
        case _:
            return ()


def is_foreign(text: str) -> bool:
    """A guess, for a text that no wish fits."""
    words = tokens(text)
    accented = any(letter.isalpha() and not letter.isascii() for letter in text)
    return not vocabulary.FOREIGN.isdisjoint(words) or (accented and VERBS.isdisjoint(words[:1]))


def is_surely_foreign(text: str) -> bool:
    """Whether several words are of another language, and the first one is no English verb."""
    words = tokens(text)
    foreign = [word for word in set(words) if word in vocabulary.FOREIGN or not word.isascii()]
    return len(foreign) > 1 and (VERBS | {"add", "remind"}).isdisjoint(words[:1])


def may_be_task(text: str) -> bool:
    words = tokens(text)
    is_asked = not words or "?" in text or words[0] in vocabulary.NOT_A_TASK
    return not is_asked and vocabulary.NEGATIONS.isdisjoint(words)
