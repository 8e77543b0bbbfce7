"""Notices when what a model writes repeats itself without an end, as small models do."""

import re

_STEP = 40  # characters after which the end of the text is examined again
_NEEDLE = 100  # characters that are looked for in what came before
_MAX_PERIOD = 2_000  # characters of what is repeated
_TIMES, _CHARS = 4, 800  # how often something is repeated, and over how many characters
# Equal rows of a list or a table: an answer may list 50 equal tasks, and a list is that long on one page.
_ROWS, _ROW_CHARS = 120, 4_000
_CODE_CHARS = 4_000  # in code, and of a separator
_KEPT_CHARS = (_TIMES + 1) * _MAX_PERIOD
# A row of a list, its second line, or a row of a table, of values between commas, or of a log.
_ROW = re.compile(
    r"(?:\s*(?:[-*+•>☐☑✓✔✅]|\[[ xX]\]|\d{1,4}[.):])\s*[^\s\-|]|\s*\||  |\t).*"
    r"|[^,;]*(?:[,;](?! )[^,;]*)+"
    r"|\[?(?:\d{4}-\d\d-\d\d|\d\d:\d\d|(?:TRACE|DEBUG|INFO|WARN|WARNING|ERROR)\b).*",
    re.DOTALL,
)
_NUMBER = re.compile(r"^([ \t]*)\d{1,6}(?=[.):])", re.MULTILINE)  # of a row in a list
_JSON = re.compile(r"\{|\[\s*[\[{\"\d-]")
_SEPARATORS = "-=_*~#─━═"
_CALL = re.compile(r'"(?:arguments|parameters|args|action)"\s*:')
_FENCE = "```"


class RepetitionDetector:
    """Reads a text in pieces; the cost of a character is constant.

    A text repeats itself if its end is the same characters, four times or more and 800 or more in all. Rows of a list
    or a table may be alike for longer, and so may code, JSON and what a call that is written as text has in its
    arguments. Rows that differ in their number alone are equal.
    """

    def __init__(self) -> None:
        self.is_repeated = False
        self._text = ""  # its end, as far as it was examined
        self._rows = ""  # its last lines, each with the same number
        self._unfinished = ""  # line
        self._unread = ""  # what follows the text
        self._is_code = False
        self._is_json: bool | None = None  # None before its first character

    def feed(self, text: str) -> str:
        """Returns the text up to where it is known to repeat itself."""
        if len(self._unread) + len(text) < _STEP and not self.is_repeated:
            self._unread += text
            return text
        position = 0
        while position < len(text) and not self.is_repeated:
            piece = text[position : position + _STEP - len(self._unread)]
            position += len(piece)
            self._unread += piece
            if len(self._unread) == _STEP:
                self._examine()
        return text[:position]

    def _examine(self) -> None:
        self._text += self._unread
        fences = self._text.count(_FENCE, max(0, len(self._text) - _STEP - len(_FENCE) + 1))
        self._is_code ^= fences % 2 == 1
        self._read_rows(self._unread)
        self._unread = ""
        if self._is_json is None and (beginning := self._text.lstrip()):
            self._is_json = _JSON.match(beginning) is not None
        if (period := _find_period(self._text)) is not None:
            chars = max(_CHARS, _TIMES * period) - _STEP + 1  # as it may be other text before the next step
            if _is_periodic(self._text, period, chars):
                chars = max(chars, self._count_chars_allowed(period))
                self.is_repeated |= _is_periodic(self._text, period, chars)
        if len(self._text) > 2 * _KEPT_CHARS:
            self._text = self._text[-_KEPT_CHARS:]

    def _read_rows(self, text: str) -> None:
        lines, end, self._unfinished = (self._unfinished + text).rpartition("\n")
        if len(self._unfinished) > _MAX_PERIOD:
            self._rows = self._unfinished = ""
        if not end:
            return
        self._rows = (self._rows + _NUMBER.sub(r"\g<1>0", lines + end))[-_KEPT_CHARS:]
        if self._is_code or self._is_json or (period := _find_period(self._rows)) is None:
            return
        chars = max(_CHARS, _TIMES * period)
        if _is_periodic(self._rows, period, chars) and (rows := _list_rows(self._rows, period)):
            chars = max(chars, min(_ROW_CHARS, _ROWS * period // len(rows)))
            self.is_repeated = _is_periodic(self._rows, period, chars)

    def _count_chars_allowed(self, period: int) -> int:
        twice = 2 * self._text[-period:]
        is_data = (self._is_code or self._is_json) and not _CALL.search(twice)
        if is_data or (period == 1 and twice[0] in _SEPARATORS):
            return _CODE_CHARS
        rows = _list_rows(self._text, period)
        if rows and (len(rows) == 1 or period < _CHARS / _TIMES):
            return min(_ROW_CHARS, _ROWS * period // len(rows))
        return 0


def _find_period(text: str) -> int | None:
    """Returns the distance from the end of the text to where the same characters end before."""
    before = text[: -_MAX_PERIOD - _NEEDLE - 1 : -1]  # reversed, as `str.rfind` can take quadratic time
    position = before.find(before[:_NEEDLE], 1)
    return position if position > 0 else None


def _is_periodic(text: str, period: int, chars: int) -> bool:
    end = text[-chars:]
    return len(end) == chars and end[:-period] == end[period:]


def _list_rows(text: str, period: int) -> list[str]:
    """Returns the rows of what is repeated, without their second lines; none if anything in it is no row."""
    twice = 2 * text[-period:]
    begin = twice.find("\n") + 1
    lines = [line for line in twice[begin : begin + period].split("\n") if line.strip()] if begin else []
    if not all(map(_ROW.fullmatch, lines)):
        return []
    return [line for line in lines if not line[0].isspace()] or lines
