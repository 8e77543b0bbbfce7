"""The frame of the server's hidden notes, which is cut where a model repeats it in what it writes."""

import re
from typing import Literal

FRAME = "Hidden context for the agent (not shown to the user):\n<HiddenContext>\n{}\n</HiddenContext>"

_SPACE = r"\s{1,8}"
_HEADER = [_SPACE if c == " " else re.escape(c) for c in FRAME.partition(":")[0]]
_NAME = ["hidden", r"[ _-]?", "context", r"[ ]{0,4}"]
_LESS, _GREATER = r"(?:<|&lt;)", r"(?:>|&gt;)"
_OPENING = rf"{_LESS}{''.join(_NAME)}{_GREATER}"
_CLOSING = rf"{_LESS}/{''.join(_NAME)}{_GREATER}"
_PART = re.compile(
    rf"(?<!\w)(?P<header>{''.join(_HEADER)})|(?P<opening>{_OPENING})|(?P<closing>{_CLOSING})", re.IGNORECASE
)
_AFTER_HEADER = re.compile(rf"[\s:*_]*(?:(?P<opening>{_OPENING})|(?P<rest>.))?", re.IGNORECASE | re.DOTALL)
_CLOCK = re.compile(r"\w{3} \d{4}-\d\d-\d\d \d\d:\d\d, \S+(?: calendar feed on)?(?:\s+|\Z)")
_CLOCK_BEGUN = re.compile(r"\w{1,3}\Z|\w{3} (?:\d[^\n]*)?\Z")
_PARAGRAPH = re.compile(r"\s*\S.*?(?:\n[ \t\r]*\n\s*|\Z)", re.DOTALL)
_LINE = re.compile(r"\s*\S[^\n]*\n?\s*")
_QUOTES = ("`", '"', "'", "“", "”", "\u2018", "\u2019", "„", "«", "»")
_MAX_NOTE_CHARS = 30_000  # of 50 calls with 400 characters each, escaped
_MAX_PIECE_CHARS, _MAX_PART_CHARS, _MAX_CLOCK_CHARS = 4_000, 200, 100


def _match_beginning(parts: list[str]) -> str:
    """Returns a pattern for each beginning of what the parts match one after the other."""
    pattern = ""
    for part in reversed(parts):
        pattern = f"(?:{part}{pattern})?"
    return pattern


_TAG = [*"hidden", r"[ _-]?", *"context", r"[ ]{0,4}", r"(?:&|&g|&gt)?"]
_BEGUN = re.compile(
    rf"(?:(?<!\w)h{_match_beginning(_HEADER[1:])}|(?:<|&(?:l(?:t(?:;)?)?)?)(?:/)?{_match_beginning(_TAG)})\Z",
    re.IGNORECASE,
)
_MAY_BEGIN = re.compile(r"[<&]|\b[Hh]")  # which most pieces have not, and need not be searched
# What a response that ends within the frame must at least have of it.
_CLEARLY_BEGUN = re.compile(rf"{''.join(_HEADER[:23])}|{_LESS}/?hidden", re.IGNORECASE)


class FrameFilter:
    """Cuts the frame and the note in it out of a text, however the text is divided into pieces.

    It holds back only what may be the beginning of the frame. A tag in quotation marks is text about it. Where the
    closing tag is missing, the note is the first paragraph, or the first line of a single one.
    """

    def __init__(self) -> None:
        self._pending = ""
        self._before = ""  # the last characters that were returned
        self._state: Literal["text", "header", "block"] = "text"
        self._searched = 0  # characters of a note, in which it does not end
        self._is_whole_note = True  # rather than a tag in the middle of a line
        self._drops_space = False

    def feed(self, text: str) -> str:
        """Returns what is known to be no part of the frame."""
        if not self._pending and self._state == "text" and not self._drops_space and not _MAY_BEGIN.search(text):
            self._before = (self._before + text)[-_MAX_PART_CHARS:]
            return text
        passed = ""
        for start in range(0, len(text), _MAX_PIECE_CHARS):
            self._pending += text[start : start + _MAX_PIECE_CHARS]
            passed += self._read(is_last=False)
        return passed

    def finish(self) -> str:
        """Returns the rest, at the end of the text. Another text may follow."""
        rest = self._read(is_last=True)
        self._pending, self._state = "", "text"
        return rest

    def _read(self, *, is_last: bool) -> str:
        steps = {"text": self._read_text, "header": self._read_after_header, "block": self._read_block}
        passed = ""
        while self._pending:
            state, length = self._state, len(self._pending)
            passed += steps[state](is_last)
            if (self._state, len(self._pending)) == (state, length):
                break
        return passed

    def _read_text(self, is_last: bool) -> str:
        text, start = self._before + self._pending, len(self._before)
        for part in _PART.finditer(text, start):
            may_be_quoted = part["header"] is None and text.endswith(_QUOTES, 0, part.start())
            if may_be_quoted and part.end() == len(text) and not is_last:
                return self._pass_on(part.start() - start)
            if not (may_be_quoted and text.startswith(_QUOTES, part.end())):
                return self._begin(part, start)
        begun = _BEGUN.search(text, max(start, len(text) - _MAX_PART_CHARS))
        passed = self._pass_on((begun.start() if begun else len(text)) - start)
        if is_last and not _CLEARLY_BEGUN.match(self._pending):
            passed += self._pass_on(len(self._pending))
        return passed

    def _begin(self, part: re.Match[str], start: int) -> str:
        text = self._pass_on(part.start() - start)
        self._pending = self._pending[part.end() - part.start() :]
        if part["closing"] is not None:
            self._end()
        else:
            line = self._before.rpartition("\n")[2]
            self._state = "header" if part["header"] is not None else "block"
            self._is_whole_note = self._state == "header" or not line.strip()
        return text

    def _read_after_header(self, is_last: bool) -> str:
        found = _AFTER_HEADER.match(self._pending)
        assert found is not None
        if found["opening"] is not None:
            self._pending, self._state = self._pending[found.end() :], "block"
        elif found["rest"] is not None and (is_last or not _BEGUN.fullmatch(self._pending, found.end() - 1)):
            text = self._pending[found.end() - 1 :]
            if not is_last and len(text) < _MAX_CLOCK_CHARS and _CLOCK_BEGUN.match(text):
                return ""
            clock = _CLOCK.match(text)  # the note, without its tags
            self._pending = text[clock.end() :] if clock else text
            self._end()
        elif found["rest"] is None:
            self._pending = ""
        return ""

    def _read_block(self, is_last: bool) -> str:
        part = _PART.search(self._pending, self._searched, _MAX_NOTE_CHARS)
        if part is not None and part["closing"] is not None:
            self._pending = self._pending[part.end() :]
            self._end()
        elif part is not None or is_last or len(self._pending) > _MAX_NOTE_CHARS:
            end = part.start() if part is not None else min(len(self._pending), _MAX_NOTE_CHARS)
            self._pending = self._remove_note(self._pending[:end]) + self._pending[end:]
            self._end()
        else:
            begun = _BEGUN.search(self._pending, max(self._searched, len(self._pending) - _MAX_PART_CHARS))
            self._searched = begun.start() if begun else len(self._pending)
        return ""

    def _remove_note(self, text: str) -> str:
        if not self._is_whole_note and not text.lstrip(" \t\r").startswith("\n"):
            return text
        paragraph = _PARAGRAPH.match(text)
        if paragraph is None or paragraph.end() < len(text):
            return text[paragraph.end() :] if paragraph else ""
        line = _LINE.match(text)
        return text[line.end() :] if line else ""

    def _end(self) -> None:
        self._state, self._searched = "text", 0
        self._drops_space = not self._before or self._before[-1].isspace()

    def _pass_on(self, end: int) -> str:
        text, self._pending = self._pending[:end], self._pending[end:]
        if self._drops_space:
            text = text.lstrip()
            self._drops_space = not text
        self._before = (self._before + text)[-_MAX_PART_CHARS:]
        return text


def cut_frames(text: str) -> str:
    frames = FrameFilter()
    return frames.feed(text) + frames.finish()
