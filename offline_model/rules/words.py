"""English words: quotations, stems, and which titles a phrase fits."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from offline_model.rules.vocabulary import FOREIGN, NEGATIONS, NOT_A_TASK, PASTS, POINTING, POSITIONS, UNSAID, VERBS


def compiled(pattern: str) -> re.Pattern[str]:
    """A space stands for any white space, an optional one for none as well."""
    return re.compile(pattern.replace(" ?", r"\s*").replace(" ", r"\s+"), re.IGNORECASE | re.DOTALL)


_QUOTED = re.compile(r"(?<!\w)([\"'`])(?=\S)(.+?)(?<=\S)\1(?!\w)")
_PRIVATE = re.compile("[\ue000-\uf8ff]")
_STRAIGHT = dict.fromkeys(map(ord, "\u201c\u201d\u201e\u00ab\u00bb"), '"') | {0x2018: "'", 0x2019: "'"}
_WORD = re.compile(r"[^\W_]+(?:'[^\W_]+)?")
_NUMBER = compiled(r"(?:the )?(?:(?:tasks?|to-?dos?|items?|numbers?|no\.?|nr\.?|id) ?)*#? ?([0-9]{1,18})")
_RANGE = compiled(
    r"(?:(?:tasks?|numbers?) )?#?([0-9]{1,18}) ?(?:-|\u2013|\.\.+|\bto\b|\bthrough\b|\buntil\b) ?#?([0-9]{1,18})"
)
_SEVERAL = compiled(r"(?:(?:the )?(?:tasks?|items?|numbers?) )?#?[0-9]{1,18}(?: #?[0-9]{1,18})+")
_LONGEST_RANGE = 100
_PARTS = compiled(r" ?(?:[,;&]|\band\b|\bplus\b) ?")


@dataclass(frozen=True)
class Masked:
    """A text in which each quotation is one character, so that no rule looks into it."""

    text: str
    quotations: tuple[str, ...]

    @classmethod
    def of(cls, text: str) -> "Masked":
        quotations: list[str] = []

        def hide(match: re.Match[str]) -> str:
            quotations.append(match[0])
            return chr(0xE000 + len(quotations) - 1) if len(quotations) < 0x1000 else match[0]

        lines = (" ".join(line.split()) for line in text.splitlines())
        plain = _PRIVATE.sub("", "\n".join(line for line in lines if line)).translate(_STRAIGHT)
        return cls(_QUOTED.sub(hide, plain), tuple(quotations))

    def shown(self, part: str) -> str:
        """With the quotations back in; one that is the whole part loses its quotation marks."""
        part = part.strip()
        if _PRIVATE.fullmatch(part):
            return self._quotation(part)[1:-1].strip()
        return " ".join(_PRIVATE.sub(lambda match: self._quotation(match[0]), part).split())

    def named(self, part: str) -> str:
        """The same for the name of a task: of `the task "x"`, x."""
        marks = _PRIVATE.findall(part)
        if len(marks) == 1 and set(tokens(_PRIVATE.sub(" ", part))) <= UNSAID:
            return self.shown(marks[0])
        return self.shown(part)

    def _quotation(self, mark: str) -> str:
        return self.quotations[ord(mark) - 0xE000]


def tokens(text: str) -> list[str]:
    return _WORD.findall(text.casefold())


def base(word: str) -> str:
    """A crude stem, the same for "call", "called" and "calling"."""
    word = PASTS.get(word.removesuffix("'s"), word.removesuffix("'s"))
    for ending, instead in (("ied", "y"), ("ies", "y"), ("ing", ""), ("ed", ""), ("s", "")):
        if word.endswith(ending) and len(word) - len(ending) >= 3 and not word.endswith(("ss", "us", "is")):
            word = word.removesuffix(ending) + instead
            break
    word = word.removesuffix("e") if len(word) > 3 else word
    return word[:-1] if len(word) > 3 and word[-1] == word[-2] else word


_ANY_DEED = frozenset(map(base, ("do", "get", "finish", "complete")))
_VERB_BASES = frozenset(base(verb) for verb in VERBS)


def is_past(word: str) -> bool:
    return word in PASTS or (word.endswith("ed") and len(word) > 4)


def is_known_past(word: str) -> bool:
    return word not in VERBS and is_past(word) and base(word) in _VERB_BASES


def starts_with_verb(text: str) -> bool:
    return first_word(text) in VERBS


def first_word(text: str) -> str:
    return next(iter(tokens(text)), "")


def numbers_in(phrase: str) -> tuple[int, ...]:
    """The task numbers that the phrase consists of, if it names nothing else."""
    found = [_numbers(part) for part in parts_of(phrase)]
    return tuple(number for numbers in found for number in numbers) if all(found) else ()


def _numbers(part: str) -> tuple[int, ...]:
    """Of "7", "task 7", "7 8" and "7-9"."""
    if match := _NUMBER.fullmatch(part):
        return (int(match[1]),)
    if _SEVERAL.fullmatch(part):
        return tuple(int(word) for word in tokens(part) if word.isdecimal())
    if match := _RANGE.fullmatch(part):
        first, last = int(match[1]), int(match[2])
        return tuple(range(first, min(last, first + _LONGEST_RANGE) + 1))
    return ()


def points(phrase: str) -> bool:
    """Whether it is only "it" or "the last task", which name no task."""
    words = set(tokens(phrase))
    return bool(words & (POINTING | POSITIONS)) and words <= POINTING | POSITIONS | UNSAID


def is_foreign(text: str) -> bool:
    """A guess, for a text that no rule understood."""
    words = tokens(text)
    accented = any(letter.isalpha() and not letter.isascii() for letter in text)
    return bool(set(words) & FOREIGN) or (accented and not starts_with_verb(text))


def may_be_task(text: str) -> bool:
    words = tokens(text)
    return bool(words) and "?" not in text and words[0] not in NOT_A_TASK and not set(words) & NEGATIONS


def parts_of(phrase: str) -> list[str]:
    """What commas and "and" join, outside quotations."""
    masked = Masked.of(phrase)
    return [masked.named(part) for part in _PARTS.split(masked.text) if part.strip()]


def meaning(text: str) -> frozenset[str]:
    """The stems of the words that tell one task from another."""
    return frozenset(base(word) for word in tokens(text) if word not in UNSAID)


def fitting(phrase: str, titles: Sequence[str], *, told: bool = False) -> list[int]:
    """The titles that equal the phrase, else those of the same words, else those that have all its words."""
    found = _fitting(phrase, titles)
    if found or not told:
        return found
    verb, _, rest = phrase.partition(" ")
    found = _fitting(rest, titles)  # "bought the milk" means "milk", but not "sell milk"
    return found if base(verb) in _ANY_DEED else [index for index in found if not starts_with_verb(titles[index])]


def _fitting(phrase: str, titles: Sequence[str]) -> list[int]:
    words, wanted = tokens(phrase), meaning(phrase)
    equal = [index for index, title in enumerate(titles) if words and tokens(title) == words]
    alike = [index for index, title in enumerate(titles) if wanted and meaning(title) == wanted]
    having = [index for index, title in enumerate(titles) if wanted and wanted <= set(map(base, tokens(title)))]
    return equal or alike or having
