"""Renders a text file as numbered lines for a model."""

import mimetypes
from collections import Counter
from collections.abc import Iterator
from typing import BinaryIO

from workspace.errors import FileNotText, OffsetTooLarge
from workspace.files import opening
from workspace.files.folder import Folder
from workspace.files.text_form import TextForm, describe_encoding, is_text, sort_line_ends
from workspace.results import CallResult

MAX_BYTES = 50_000
_PROBE_BYTES = 8_192
_PIECE_BYTES = 65_536  # that are read at once
_FRAME_BYTES = 1_500  # of the lines before and after, with the longest path
_BOM = b"\xef\xbb\xbf"


def read_lines(folder: Folder, path: str, *, offset: int, limit: int) -> CallResult:
    with opening.open_file(folder.descriptor, path) as opened:
        probe = opened.file.read(_PROBE_BYTES)
        error = FileNotText(path=path, encoding=describe_encoding(probe), size=opened.size, type=guess_type(path))
        if not is_text(probe, is_whole=False):
            raise error
        try:
            lines, total, form = _read_page(opened.file, offset, limit, has_bom=probe.startswith(_BOM))
        except UnicodeDecodeError:
            raise error from None
        if offset > max(total, 1):
            raise OffsetTooLarge(path=path, total=total)
    last = offset + len(lines) - 1
    more = [f"(Lines {last + 1:,} to {total:,} follow. Continue with offset={last + 1}.)"] if last < total else []
    head = ", ".join(part for part in (f"{total:,} {'line' if total == 1 else 'lines'}", form.describe()) if part)
    shown = "\n".join([f"File: {path} ({head})", *lines, *more])
    page = {"offset": offset, "lines": len(lines)}
    return CallResult(shown, {"path": path, "total_lines": total, "bytes": opened.size, **page})


def _read_page(file: BinaryIO, offset: int, limit: int, *, has_bom: bool) -> tuple[list[str], int, TextForm]:
    """Returns as many numbered lines as fit, the number of lines in the file, and its form."""
    lines: list[str] = []
    ends = Counter[str]()
    room = MAX_BYTES - _FRAME_BYTES
    total = 0
    for number, line, end in _read_lines(file):
        total = number
        ends[end] += 1
        if number < offset or len(lines) == limit or room <= 0:
            continue
        whole = len(line) < _PIECE_BYTES  # else it may end in the middle of a character
        text = line.removeprefix(_BOM if number == 1 else b"").decode(errors="strict" if whole else "ignore")
        numbered = f"{number}: {text}"
        size = len(numbered.encode()) + 1
        if size <= room:
            lines.append(numbered)
        elif not lines:  # a line that fits no page
            lines.append(f"{numbered.encode()[:room].decode(errors='ignore')} (the line continues)")
        room -= size
    ends.pop("", None)
    return lines, total, TextForm(has_bom, sort_line_ends(ends))


def _read_lines(file: BinaryIO) -> Iterator[tuple[int, bytes, str]]:
    """Yields each line, cut at `_PIECE_BYTES`, with its number and its end."""
    number, beginning, last = 1, b"", b""
    uses_cr = _uses_cr(file)
    for piece in _read_pieces(file, uses_cr=uses_cr):
        if uses_cr:
            end = "\r" if piece.endswith(b"\r") else ""
        else:
            end = "\r\n" if (last + piece).endswith(b"\r\n") else "\n" if piece.endswith(b"\n") else ""
        if len(beginning) < _PIECE_BYTES:
            beginning += piece
        last = piece[-1:]
        if end:
            yield number, beginning.removesuffix(end.encode()), end
            number, beginning, last = number + 1, b"", b""
    if beginning and (number > 1 or beginning != _BOM):
        yield number, beginning, ""


def _uses_cr(file: BinaryIO) -> bool:
    """Whether lines end with CR alone, which is so only in a file without any LF."""
    file.seek(0)
    has_cr = False
    while piece := file.read(_PIECE_BYTES):
        if b"\n" in piece:
            return False
        has_cr = has_cr or b"\r" in piece
    return has_cr


def _read_pieces(file: BinaryIO, *, uses_cr: bool) -> Iterator[bytes]:
    file.seek(0)
    while piece := file.readline(_PIECE_BYTES):
        if uses_cr:
            yield from piece.splitlines(keepends=True)
        else:
            yield piece


def guess_type(name: str) -> str:
    return mimetypes.guess_type(name)[0] or "of unknown type"
