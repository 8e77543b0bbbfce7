"""Markup that is text: in code and quotations of Markdown, and where an answer quotes a message for the model."""

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

_FENCES = ("```", "~~~")
_QUOTES = ("`", '"', "'", "“", "”", "\u2018", "\u2019", "„", "«", "»")
_ESCAPES = ("\\n", "\\r", "\\t", "\\")


class Quotable:
    """What users and tools have written. A call that an answer has from there is data, and is not made."""

    def __init__(self, messages: Sequence[Mapping[str, Any]]) -> None:
        self._messages = messages

    def __contains__(self, written: str) -> bool:
        return _condense(written) in self._text

    @cached_property
    def _text(self) -> str:
        texts = (one.get("content") for one in self._messages if one.get("role") in ("user", "tool"))
        return "\n".join(_condense(text) for text in texts if isinstance(text, str))


def _condense(text: str) -> str:
    """Returns a text without that in which the same text within JSON differs; a pattern takes several times as long."""
    for escape in _ESCAPES:
        text = text.replace(escape, "")
    return "".join(text.split())


class Quoting:
    """Reads a text in pieces, and says what its end is within."""

    def __init__(self) -> None:
        self.has_text = False
        self.last = ""
        """The last character."""
        self._fence = self._head = ""  # how the block of code and the line begin
        self._ticks = 0  # in the line

    def read(self, text: str) -> None:
        """Reads a text that is not empty."""
        self.has_text = self.has_text or not text.isspace()
        self.last = text[-1:] or self.last
        if len(self._head) == len(_FENCES[0]) and "\n" not in text and "`" not in text:
            return
        for number, line in enumerate(text.split("\n")):
            if number:
                self._end_line()
            self._ticks += line.count("`")
            if len(self._head) < len(_FENCES[0]):
                self._head = f"{self._head}{line}".lstrip()[: len(_FENCES[0])]

    def _end_line(self) -> None:
        if self._fence:
            self._fence = "" if self._head == self._fence else self._fence
        elif self._head in _FENCES:
            self._fence = self._head
        self._head, self._ticks = "", 0

    @property
    def is_in_block(self) -> bool:
        return self._head != self._fence if self._fence else self._head in _FENCES

    @property
    def is_in_line(self) -> bool:
        """Whether it is in code within the line, behind a quotation mark, or in a quoted line."""
        is_code = self._ticks % 2 == 1 and self._head not in _FENCES
        return is_code or (self.last in _QUOTES and self._head not in _FENCES) or self._head.startswith(">")
