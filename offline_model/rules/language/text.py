"""A message as words, each of which knows where it stands; a quotation is one word, into which no rule looks."""

import re
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property, lru_cache

from english import DateOrder

_CLITIC = r"'(?i:s|m|re|ve|d|ll)\b"
_WORD = re.compile(rf"{_CLITIC}|[^\W_]+(?:(?!{_CLITIC})'[^\W_]+)?|[\ue000-\uf8ff]|:+|[-=]>")
# It takes time in proportion to the text, as how far it may look ahead is bounded.
_QUOTED = re.compile(r"(?<!\w)([\"'`])(?! ).{1,300}?(?<! )\1(?!\w)")
_PRIVATE = re.compile("[\ue000-\uf8ff]")
_STRAIGHT = dict.fromkeys(map(ord, "\u201c\u201d\u201e\u00ab\u00bb"), '"') | {0x2018: "'", 0x2019: "'"}
JOINT = re.compile(r"([\n;]|,(?!\d)(?: and\b| plus\b)?|\b(?:and|plus)\b(?: (?:then|also)\b)?|& )", re.IGNORECASE)
"""What stands between the things of a list."""


@dataclass(frozen=True)
class Text:
    """A part of a message; its `keys` are what patterns compare: folded words, and # for each number."""

    whole: str
    quotations: tuple[str, ...]
    keys: list[str]
    spans: list[tuple[int, int]]
    """Where each word stands in the whole."""
    start: int
    end: int
    now: datetime | None = None
    """When it was said, by the user's clock; None where nobody told."""
    order: DateOrder | None = None

    @classmethod
    def of(
        cls,
        text: str,
        quotations: tuple[str, ...] = (),
        now: datetime | None = None,
        order: DateOrder | None = None,
    ) -> "Text":
        """Of a text whose quotations are hidden."""
        words = list(_WORD.finditer(text))
        keys, spans = [_key(word[0]) for word in words], [word.span() for word in words]
        return cls(text, quotations, keys, spans, 0, len(text), now, order)

    @classmethod
    def said(cls, text: str, now: datetime | None = None, order: DateOrder | None = None) -> "Text":
        lines = (" ".join(line.split()) for line in text.splitlines())
        plain = _PRIVATE.sub("", "\n".join(line for line in lines if line)).translate(_STRAIGHT)
        quotations: list[str] = []

        def hidden(quotation: re.Match[str]) -> str:
            quotations.append(quotation[0])
            return chr(0xE000 + len(quotations) - 1)

        return cls.of(_QUOTED.sub(hidden, plain), tuple(quotations), now, order)

    @cached_property
    def raw(self) -> str:
        return self.whole[self.start : self.end].strip()

    def __bool__(self) -> bool:
        """Whether it is more than the signs that stand between words."""
        return bool(self.keys or self.raw.strip(" \n,.:;&-*\u2022\u2013"))

    def part(self, first: int, end: int) -> "Text":
        """From a word to before another, with the signs around them."""
        start = self.spans[first - 1][1] if first else self.start
        stop = self.spans[end][0] if end < len(self.spans) else self.end
        return replace(self, keys=self.keys[first:end], spans=self.spans[first:end], start=start, end=max(start, stop))

    def with_raw(self, raw: str) -> "Text":
        """Another text of the same quotations, said at the same time."""
        return Text.of(raw, self.quotations, self.now, self.order)

    def shown(self) -> str:
        """With the quotations back in; one that is the whole part loses its quotation marks."""
        text = self.raw.strip(" \n,:;?")
        shown = _PRIVATE.sub(lambda mark: self.quotations[ord(mark[0]) - 0xE000], text)
        return shown[1:-1].strip() if _PRIVATE.fullmatch(text) else " ".join(shown.split())


def parts_of(phrase: str) -> list[str]:
    """What commas, lines and "and" join, outside quotations."""
    text = Text.said(phrase)
    parts = [text.with_raw(raw) for raw in JOINT.split(text.raw)[::2]]
    return [part.shown() for part in parts if part]


@lru_cache(maxsize=10_000)
def _key(word: str) -> str:
    key = word.casefold()
    return "#" if key.isdecimal() else ":" if key[0] == ":" else key
