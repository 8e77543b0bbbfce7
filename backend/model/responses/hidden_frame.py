"""The frame of the server's hidden notes, which is cut where a model repeats it in what it writes."""

import re
from typing import Literal

FRAME = "Hidden context for the agent (not shown to the user):\n<HiddenContext>\n{}\n</HiddenContext>"

_SPACE = r"\s{1,8}"
_HEADER = [_SPACE if c == " " else re.escape(c) for c in FRAME.partition(":")[0]]
_ADDRESSEE, _REMARK = "for the agent", "(not shown to the user)"  # of the header, of which models repeat one or both
_TICK = r"(?<!\S)`"
_LESS, _GREATER = r"(?:<|&lt;|&#60;)", r"(?:>|&gt;|&#62;)"
_ATTRIBUTE = r"\s[\w-]{1,20} ?=[^<>&\n]{0,60}"
_OPENING = rf"(?:{_LESS}[ ]{{0,2}}hidden[ _-]?context(?:{_ATTRIBUTE})?[ ]{{0,4}}{_GREATER}|\[hidden[_-]?context\])"
_CLOSING = rf"(?:{_LESS}[ ]{{0,2}}/[ ]{{0,2}}hidden[ _-]?context[ ]{{0,4}}{_GREATER}|\[/hidden[_-]?context\])"
_DAY = r"(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)"
_FACTS = "(?: calendar feed on,?)?(?: notifications on)?"
_LINE_OF_CLOCK = rf"(?<![^\n]){_DAY} \d{{4}}-\d\d-\d\d \d\d:\d\d, [^\s<&\[`]{{1,50}}{_FACTS}\s{{0,8}}"
_SHORT_HEADER = rf"(?<!\w)hidden context (?:{_ADDRESSEE}|{re.escape(_REMARK)})"
_COLON = r"[*_ ]{0,4}:[*_ ]{0,4}"
_PART = re.compile(
    r"(?=[hmtwfs<&\[`])(?:"  # without which it would be slow
    rf"(?<!\w)(?P<header>{''.join(_HEADER)})"
    rf"|(?P<short_header>{_SHORT_HEADER}){_COLON}(?=\n|{_DAY} \d{{4}}-|{_TICK}{_OPENING}|{_OPENING})"
    rf"|(?:{_LINE_OF_CLOCK}(?={_CLOSING}))?(?P<tick>{_TICK})?(?:(?P<opening>{_OPENING})|(?P<closing>{_CLOSING})))",
    re.IGNORECASE,
)
_DECORATION = re.compile(r"\A[\s:*_]*")
_AFTER_HEADER = re.compile(rf"(?:`(?={_OPENING}))?(?:(?P<opening>{_OPENING})|(?P<rest>.))", re.IGNORECASE | re.DOTALL)
_CLOCK = re.compile(rf"\A\w{{3}} \d{{4}}-\d\d-\d\d \d\d:\d\d, \S+{_FACTS}(?:\s+|\Z)")
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


_ATTRIBUTE_BEGUN = rf"(?:\s[\w-]{{0,20}}|{_ATTRIBUTE})?"
_NAME = [*"hidden", r"[ _-]?", *"context", _ATTRIBUTE_BEGUN, r"[ ]{0,4}", r"(?:&(?:g|gt|#|#6|#62)?)?"]
_TAG_BEGUN = rf"(?:&(?:l|lt|#|#6|#60)?|(?:{_LESS}[ ]{{0,2}}/?[ ]{{0,2}}|\[/?){_match_beginning(_NAME)})"
_DATE = [" ", *[r"\d"] * 4, "-", r"\d", r"\d", "-", r"\d", r"\d", " "]
_TIME = [r"\d", r"\d", ":", r"\d", r"\d", ",", " ", r"[^\s<&\[`]{1,50}", r"(?: [a-z ,]{0,34})?", r"\s{0,8}", _TAG_BEGUN]
_CLOCK_STARTED = rf"(?:M|Mo|T|Tu|Th|W|We|F|Fr|S|Sa|Su|{_DAY}{_match_beginning(_DATE + _TIME)})"
_BEGUN = re.compile(
    rf"(?:(?<!\w)h{_match_beginning(_HEADER[1:])}|(?<!\w)hidden context {_match_beginning([*map(re.escape, _REMARK)])}"
    rf"|{_SHORT_HEADER}[*_ ]{{0,4}}|{_SHORT_HEADER}{_COLON}(?:{_CLOCK_STARTED}|{_TICK}|(?:{_TICK})?{_TAG_BEGUN})?"
    rf"|(?<![^\n]){_CLOCK_STARTED}|{_TICK}(?:{_TAG_BEGUN})?|{_TAG_BEGUN})\Z",
    re.IGNORECASE,
)
_MAY_BEGIN = re.compile(
    r"[<&\[`]|\b[Hh]|^[MTWFS]", re.MULTILINE
)  # which most pieces have not, and need not be searched
# What a response that ends within the frame must at least have of it.
_CLEARLY_BEGUN = re.compile(
    rf"{''.join(_HEADER[:23])}|hidden context \(not|`?(?:{_LESS}[ ]{{0,2}}/?[ ]{{0,2}}hidden|\[/?hidden[_-]?c)",
    re.IGNORECASE,
)


class FrameFilter:
    """Cuts the frame and the note in it out of a text, however the text is divided into pieces.

    It holds back only what may be the beginning of the frame. A tag in quotation marks is text about it, unless it is
    alone on its line and closed. Where the closing tag is missing, the note is the first paragraph, or the first line
    of a single one.
    """

    def __init__(self) -> None:
        self._pending = ""
        self._before = ""  # the last characters that were returned
        self._state: Literal["text", "header", "block"] = "text"
        self._searched = 0  # characters of a note, in which it does not end
        self._quoted_opening = ""
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
        if not self._pending and self._state == "text":
            return ""
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
            is_frame = _is_frame(part, text, is_last)
            if is_frame is None:
                return self._pass_on(part.start() - start)
            if is_frame:
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
            self._quoted_opening = part[0] if part["tick"] else ""
            line = self._before.rpartition("\n")[2]
            self._state = "block" if part["opening"] is not None else "header"
            self._is_whole_note = self._state == "header" or not line.strip()
        return text

    def _read_after_header(self, is_last: bool) -> str:
        self._pending = _DECORATION.sub("", self._pending, count=1)
        if (found := _AFTER_HEADER.match(self._pending)) is None:
            return ""
        if found["opening"] is not None:
            self._pending, self._state = self._pending[found.end() :], "block"
        elif is_last or not _BEGUN.fullmatch(self._pending):
            if not is_last and len(self._pending) < _MAX_CLOCK_CHARS and _CLOCK_BEGUN.match(self._pending):
                return ""
            # The note may be without its tags.
            self._pending = _CLOCK.sub("", self._pending, count=1)
            self._end()
        return ""

    def _read_block(self, is_last: bool) -> str:
        part = _PART.search(self._pending, self._searched, _MAX_NOTE_CHARS)
        if part is not None and part["closing"] is not None and not self._is_prose(part):
            end = part.end()
            is_quoted = part["tick"] is not None or self._quoted_opening != ""
            if is_quoted and end == len(self._pending) and not is_last:
                return ""
            self._pending = self._pending[end + (is_quoted and self._pending.startswith("`", end)) :]
            self._end()
        elif self._quoted_opening and self._pending.startswith("`") and (part is not None or self._is_over(is_last)):
            self._pending = self._quoted_opening + self._pending
            self._end()
            return self._pass_on(len(self._quoted_opening))
        elif part is not None or self._is_over(is_last):
            end = part.start() if part is not None else min(len(self._pending), _MAX_NOTE_CHARS)
            self._pending = self._remove_note(self._pending[:end]) + self._pending[end:]
            self._end()
        else:
            begun = _BEGUN.search(self._pending, max(self._searched, len(self._pending) - _MAX_PART_CHARS))
            self._searched = begun.start() if begun else len(self._pending)
        return ""

    def _is_prose(self, closing: re.Match[str]) -> bool:
        line = self._pending[: closing.start()].rpartition("\n")[2]
        return closing["tick"] is not None and self._quoted_opening != "" and line.strip() != ""

    def _is_over(self, is_last: bool) -> bool:
        return is_last or len(self._pending) > _MAX_NOTE_CHARS

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


def _is_frame(part: re.Match[str], text: str, is_last: bool) -> bool | None:
    """Whether the part is one of the frame; None if that depends on what follows."""
    line, following = text[: part.start()].rpartition("\n")[2], text[part.end() :]
    if part["header"] is not None:
        return True
    if part["short_header"] is not None:
        return not line.strip("#>*_ ")
    if part["tick"] is None and not line.endswith(_QUOTES):
        return True
    if not following:
        return True if is_last else None
    if not following.startswith(_QUOTES):
        return True
    if part["tick"] is None or part["closing"] is not None or line.strip():
        return False
    after = following[1:].lstrip(" ")
    return after.startswith("\n") if after or is_last else None


def cut_frames(text: str) -> str:
    frames = FrameFilter()
    return frames.feed(text) + frames.finish()
