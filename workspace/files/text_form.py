"""Reads how a text file is stored (encoding, byte order mark, line ends), and stores other text in the same way."""

import codecs
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

BOM = "\N{ZERO WIDTH NO-BREAK SPACE}"
_BINARY_PROBE_BYTES = 8_192  # at a file's beginning in which text has no NUL
_LINE_ENDS: Mapping[str, str] = {"\n": "LF", "\r\n": "CRLF", "\r": "CR"}
_BOMS = ((codecs.BOM_UTF32_LE, "UTF-32"), (codecs.BOM_UTF32_BE, "UTF-32"))
_BOMS = (*_BOMS, (codecs.BOM_UTF16_LE, "UTF-16"), (codecs.BOM_UTF16_BE, "UTF-16"))


@dataclass(frozen=True)
class TextForm:
    has_bom: bool = False
    line_ends: tuple[str, ...] = ()
    """Each kind of line end in the text, the most frequent one first."""
    ends_last_line: bool = True
    """True for an empty text."""

    @property
    def line_end_names(self) -> str:
        return " and ".join(_LINE_ENDS[end] for end in self.line_ends)

    def describe(self) -> str:
        """Names what is special: nothing for UTF-8 with LF."""
        ends = "" if self.line_ends in ((), ("\n",)) else f"{self.line_end_names} line ends"
        return ", ".join(part for part in (ends, "a byte order mark" if self.has_bom else "") if part)


def is_text(data: bytes, *, is_whole: bool = True) -> bool:
    """The last character may be cut if the data is not the whole file."""
    if b"\0" in data[:_BINARY_PROBE_BYTES]:
        return False
    try:
        codecs.getincrementaldecoder("utf-8")().decode(data, is_whole)
    except UnicodeDecodeError:
        return False
    return True


def describe_encoding(data: bytes) -> str:
    """Returns what data that is not UTF-8 seems to be."""
    if encoding := next((name for bom, name in _BOMS if data.startswith(bom)), None):
        return f"text in {encoding}, not in UTF-8"
    if b"\0" in data[:_BINARY_PROBE_BYTES]:
        return "not text"
    return "not text in UTF-8"


def read_form(text: str) -> TextForm:
    has_bom, text = text.startswith(BOM), text.removeprefix(BOM)
    crlf = text.count("\r\n")
    counts = {"\n": text.count("\n") - crlf, "\r\n": crlf, "\r": text.count("\r") - crlf}
    if "\n" in text:
        counts["\r"] = 0  # within a line, as programs print it that draw a progress bar
    line_ends = sort_line_ends(counts)
    return TextForm(has_bom, line_ends, ends_last_line=not text or text.endswith(line_ends))


def sort_line_ends(counts: Mapping[str, int]) -> tuple[str, ...]:
    return tuple(sorted((end for end in counts if counts[end]), key=lambda end: -counts[end]))


def split_lines(text: str) -> list[str]:
    """Returns the lines with their ends. Only texts without a line feed have lines that end with CR."""
    end = "\r" if "\n" not in text else "\n"
    lines = [f"{line}{end}" for line in text.split(end)]
    lines[-1] = lines[-1].removesuffix(end)
    return lines if lines[-1] else lines[:-1]


def adapt_line_ends(text: str, line_end: str | None) -> str:
    """Gives a text with LF alone other line ends; those of all other texts were chosen by their author."""
    if line_end in (None, "\n") or "\r" in text:
        return text
    return text.replace("\n", line_end)


def find_line_end(text: str, start: int, end: int) -> str | None:
    """Returns the first line end in a part of a text, else the next one after it, else the one before it."""
    if "\n" not in text:
        return "\r" if "\r" in text else None
    place = text.find("\n", start)
    if place == -1:
        place = text.rfind("\n", 0, end)
    return "\r\n" if text[:place].endswith("\r") else "\n"


def describe_change(before: TextForm, after: TextForm) -> Iterator[str]:
    """Yields a sentence for each difference."""
    if before.line_ends and after.line_ends and set(before.line_ends) != set(after.line_ends):
        yield f"Its line ends are {after.line_end_names} now; they were {before.line_end_names}."
    if before.has_bom != after.has_bom:
        yield f"It has {'a' if after.has_bom else 'no'} byte order mark now."
    if before.ends_last_line != after.ends_last_line:
        yield f"Its last line has {'a' if after.ends_last_line else 'no'} line end now."
