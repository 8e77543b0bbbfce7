"""Notices when what a model writes repeats itself without an end, as small models do."""

import re

_STEP = 20  # characters after which the end of the text is examined again
_NEEDLE = 100  # characters that are looked for in what came before
_MAX_PERIOD = 2_000  # characters of what is repeated
_TIMES, _CHARS = 4, 800  # how often something is repeated, and over how many characters
# Equal rows of a list or a table: an answer may list 50 equal tasks, and a list is that long on one page.
_ROWS, _ROW_CHARS = 120, 4_000
_CODE_CHARS = 4_000  # in code, and of a separator
_KEPT_CHARS = (_TIMES + 1) * _MAX_PERIOD
_ROW = re.compile(r"(?:\s*(?:[-*+•|>☐☑✓✔✅]|\[[ xX]\]|\d{1,4}[.):])\s*[^\s\-|]| {4}|\t).*", re.DOTALL)
_SEPARATORS = "-=_*~#─━═"
_CALL = re.compile(r'"(?:arguments|parameters|args|action)"\s*:')
_FENCE = "```"


class RepetitionDetector:
    """Reads a text in pieces; the cost of a character is constant.

    A text repeats itself if its end is the same characters, four times or more and 800 or more in all. Rows of a list
    or a table may be alike for longer, and so may code and what a call that is written as text has in its arguments.
    """

    def __init__(self) -> None:
        self.is_repeated = False
        self._text = ""  # its end
        self._unread = 0  # characters at its end, since it was examined
        self._is_code = False
        self._first = ""  # character that is no space

    def feed(self, text: str) -> str:
        """Returns the text up to where it is known to repeat itself."""
        position = 0
        while position < len(text) and not self.is_repeated:
            piece = text[position : position + _STEP - self._unread]
            position += len(piece)
            self._text += piece
            self._unread += len(piece)
            if self._unread == _STEP:
                self._examine()
        return text[:position]

    def _examine(self) -> None:
        fences = self._text.count(_FENCE, max(0, len(self._text) - self._unread - len(_FENCE) + 1))
        self._is_code ^= fences % 2 == 1
        self._unread = 0
        self._first = self._first or self._text.lstrip()[:1]
        if (period := self._find_period()) is not None:
            chars = self._count_chars_needed(period)
            end = self._text[-chars:]
            self.is_repeated = len(end) == chars and end[:-period] == end[period:]
        if len(self._text) > 2 * _KEPT_CHARS:
            self._text = self._text[-_KEPT_CHARS:]

    def _find_period(self) -> int | None:
        """Returns the distance from the end of the text to where the same characters end before."""
        before = self._text[: -_MAX_PERIOD - _NEEDLE - 1 : -1]  # reversed, as `str.rfind` can take quadratic time
        position = before.find(before[:_NEEDLE], 1)
        return position if position > 0 else None

    def _count_chars_needed(self, period: int) -> int:
        chars = max(_CHARS, _TIMES * period) - _STEP + 1  # as it may be other text before the next step
        twice = 2 * self._text[-period:]
        is_argument = self._first == "{" and "{" not in twice and "}" not in twice
        if (self._is_code and not _CALL.search(twice)) or is_argument or (period == 1 and twice[0] in _SEPARATORS):
            return max(chars, _CODE_CHARS)
        rows = [row for row in twice.split("\n")[1:-1] if row.strip()]
        if rows and all(map(_ROW.fullmatch, rows)) and (len(rows) == 1 or period < _CHARS / _TIMES):
            return max(chars, min(_ROW_CHARS, _ROWS * period // len(rows)))
        return chars
