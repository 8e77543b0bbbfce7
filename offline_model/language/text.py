"""A message as words, and templates that sentences are compared with.

A template has words, `(one|other)` alternatives, `[optional]` words, `#` for a number, `<rule>` for the words of that
name in RULES, and slots such as `{task}`: the notation of Home Assistant's sentence templates. `...` is anything or
nothing. Each becomes a regular expression. A slot with the name of a rule has its words; what may stand in others is
checked by SLOTS in `slots.py`.
"""

import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property
from itertools import accumulate

from english import DateOrder
from offline_model.language.words import RULES

_EMOJI = "[\u2600-\u27bf\U0001f000-\U0001faff]"
_CLITIC = r"'(?i:s|m|re|ve|d|ll)\b"
_WORD = re.compile(rf"{_CLITIC}|[^\W_]+(?:(?!{_CLITIC})'[^\W_]+)?|[\ue000-\uf8ff]|:+|[-=]>|{_EMOJI}")
# It takes time in proportion to the text, as how far it may look ahead is bounded.
_QUOTED = re.compile(r"(?<!\w)([\"'`])(?! ).{1,300}?(?<! )\1(?!\w)")
_PRIVATE = re.compile("[\ue000-\uf8ff]")
_STRAIGHT = dict.fromkeys(map(ord, "\u201c\u201d\u201e\u00ab\u00bb"), '"') | {0x2018: "'", 0x2019: "'"}
_SYMBOL = re.compile(r"<[^>]*>|\{[^}]*\}|[()\[\]|]|[^\s()\[\]|]+")
_BRACKETS = {"(": "(?:", ")": ")", "[": "(?:", "]": ")?", "|": "|", "...": "(?:.* )?"}
_MAX_MATCHES = 8
_MAX_AHEAD = 300  # characters, so that what is tried at each word takes time in proportion to the text
JOINT = re.compile(r"([\n;]|,(?!\d)(?: and\b| plus\b)?|\b(?:and|plus)\b(?: (?:then|also)\b)?|& )", re.IGNORECASE)
"""What joins the items of a list."""


@dataclass(frozen=True)
class Text:
    """A part of a message. A quotation is one word, a private-use character that no rule matches."""

    raw: str
    quotations: tuple[str, ...]
    now: datetime
    """The user's clock when the message was sent."""
    order: DateOrder | None

    @classmethod
    def parse_message(cls, text: str, now: datetime | None = None, order: DateOrder | None = None) -> "Text":
        lines = (" ".join(line.split()) for line in text.splitlines())
        plain = _PRIVATE.sub("", "\n".join(line for line in lines if line)).translate(_STRAIGHT)
        quotations: list[str] = []

        def hide(quotation: re.Match[str]) -> str:
            quotations.append(quotation[0])
            return chr(0xE000 + len(quotations) - 1)

        hidden = _QUOTED.sub(hide, plain)
        return cls(hidden, tuple(quotations), now or datetime.now().replace(second=0, microsecond=0), order)

    @cached_property
    def _words(self) -> list[re.Match[str]]:
        return list(_WORD.finditer(self.raw))

    @cached_property
    def keys(self) -> list[str]:
        return [_create_key(word[0]) for word in self._words]

    @cached_property
    def line(self) -> str:
        return "".join(f"{key} " for key in self.keys)

    @cached_property
    def offsets(self) -> list[int]:
        """Where each word begins in `line`, and its end."""
        return list(accumulate((len(key) + 1 for key in self.keys), initial=0))

    def count_words(self, end: int) -> int:
        """Returns how many words of `line` end before this place."""
        return bisect_right(self.offsets, end) - 1

    def __bool__(self) -> bool:
        return bool(self.keys or self.raw.strip(" \n,.:;&-*\u2022\u2013"))

    def part(self, first: int, end: int) -> "Text":
        """Returns the words from `first` to before `end`, with the signs around them."""
        start = self._words[first - 1].end() if first else 0
        stop = self._words[end].start() if end < len(self._words) else len(self.raw)
        return self.replace_raw(self.raw[start : max(start, stop)])

    def between(self, at: int) -> str:
        return self.raw[self._words[at - 1].end() : self._words[at].start()]

    def span(self, start: int, end: int) -> "Text":
        return self.part(self.count_words(start), self.count_words(end))

    def replace_raw(self, raw: str) -> "Text":
        return replace(self, raw=raw.strip())

    def unquote(self) -> str:
        """Restores quotations; one that is the whole text loses its quotation marks."""
        text = self.raw.strip(" \n,:;?")
        plain = _PRIVATE.sub(lambda mark: self.quotations[ord(mark[0]) - 0xE000], text)
        return plain[1:-1].strip() if _PRIVATE.fullmatch(text) else " ".join(plain.split())


def _create_key(word: str) -> str:
    key = word.casefold()
    return "#" if key.isdecimal() else ":" if key[0] == ":" else key


class Template:
    def __init__(self, source: str) -> None:
        self._pattern = _compile_source(source) + ("" if "{" in source else f"(?:{_EMOJI} )*")
        self._whole = re.compile(self._pattern, re.DOTALL)
        self.slots = tuple(self._whole.groupindex)

    def matches(self, text: Text) -> bool:
        return self._whole.fullmatch(text.line) is not None

    def readings(self, text: Text) -> Iterator[Mapping[str, Text]]:
        """Yields the texts of the slots; two slots may divide a text in several ways."""
        line = text.line
        for _ in range(_MAX_MATCHES):
            match = self._whole.fullmatch(line)
            if match is None:
                return
            yield {name: text.span(*match.span(name)) for name in self.slots}
            if len(self.slots) < 2 or match.end(self.slots[0]) == match.start(self.slots[1]):
                return
            end, start = match.end(self.slots[0]), match.start(self.slots[1])
            line = line[:end] + "\0" * (start - end) + line[start:]

    def starts(self, text: Text, first: int) -> bool:
        """Whether it matches the next words from `first` on, of which it reads `_MAX_AHEAD` characters."""
        start = text.offsets[first]
        return self._whole.match(text.line, start, start + _MAX_AHEAD) is not None

    def find_all(self, text: Text) -> Iterator[tuple[int, int]]:
        for match in re.finditer(f"(?<![^ ]){self._pattern}", text.line):
            yield text.count_words(match.start()), text.count_words(match.end())

    def strip_leading(self, text: Text) -> Text:
        """Removes all matches at the start, but never the whole text."""
        match = re.match(f"(?:{self._pattern})+(?=.)", text.line, re.DOTALL)
        return text.span(match.end(), len(text.line)) if match else text

    def strip_trailing(self, text: Text) -> Text:
        """Removes all matches at the end, in the last `_MAX_AHEAD` characters."""
        at_end = re.compile(f"(?<= )(?:{self._pattern})+$")
        match = at_end.search(text.line, max(0, len(text.line) - _MAX_AHEAD))
        return text.span(0, match.start()) if match else text


def _compile_source(source: str) -> str:
    """Returns a regular expression for a line, in which a space follows each word."""
    return f"(?:{''.join(map(_compile_symbol, _SYMBOL.findall(source)))})"


def _compile_symbol(symbol: str) -> str:
    if symbol[0] == "<":
        return _compile_source(RULES[symbol[1:-1]])
    if symbol[0] == "{":
        slot = symbol[1:-1]
        return f"(?P<{slot}>{_compile_source(RULES[slot]) if slot in RULES else '(?:.+? )??'})"
    words = [_create_key(word) for word in _WORD.findall(symbol)] or [symbol]
    return _BRACKETS.get(symbol) or re.escape("".join(f"{word} " for word in words))


def split_parts(phrase: str) -> list[str]:
    text = Text.parse_message(phrase)
    parts = [text.replace_raw(raw) for raw in JOINT.split(text.raw)[::2]]
    return [part.unquote() for part in parts if part]
