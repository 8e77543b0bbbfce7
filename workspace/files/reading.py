"""Renders a text file as numbered lines for a model."""

import codecs
import mimetypes
from collections.abc import Iterator
from typing import BinaryIO

from workspace.errors import FileNotText, OffsetTooLarge
from workspace.files import opening
from workspace.files.folder import Folder
from workspace.results import CallResult

MAX_BYTES = 50_000
_PROBE_BYTES = 8_192  # at a file's beginning in which text has no NUL
_PIECE_BYTES = 65_536  # that are read at once
_FRAME_BYTES = 1_500  # of the lines before and after, with the longest path


def read_lines(folder: Folder, path: str, *, offset: int, limit: int) -> CallResult:
    with opening.open_file(folder.descriptor, path) as opened:
        binary = FileNotText(path=path, size=opened.size, type=guess_type(path))
        if not is_text(opened.file.read(_PROBE_BYTES), is_whole=False):
            raise binary
        try:
            lines, total = _read_page(opened.file, offset, limit)
        except UnicodeDecodeError:
            raise binary from None
        if offset > max(total, 1):
            raise OffsetTooLarge(path=path, total=total)
    last = offset + len(lines) - 1
    more = [f"(Lines {last + 1:,} to {total:,} follow. Continue with offset={last + 1}.)"] if last < total else []
    shown = "\n".join([f"File: {path} ({total:,} {'line' if total == 1 else 'lines'})", *lines, *more])
    page = {"offset": offset, "lines": len(lines)}
    return CallResult(shown, {"path": path, "total_lines": total, "bytes": opened.size, **page})


def _read_page(file: BinaryIO, offset: int, limit: int) -> tuple[list[str], int]:
    """Returns as many numbered lines as fit, and the number of lines in the file."""
    lines: list[str] = []
    room = MAX_BYTES - _FRAME_BYTES
    total = 0
    for number, line in _read_lines(file):
        total = number
        if number < offset or len(lines) == limit or room <= 0:
            continue
        whole = len(line) < _PIECE_BYTES  # else it may end in the middle of a character
        numbered = f"{number}: {line.decode(errors='strict' if whole else 'ignore').removesuffix(chr(10))}"
        size = len(numbered.encode()) + 1
        if size <= room:
            lines.append(numbered)
        elif not lines:  # a line that fits no page
            lines.append(f"{numbered.encode()[:room].decode(errors='ignore')} (the line continues)")
        room -= size
    return lines, total


def _read_lines(file: BinaryIO) -> Iterator[tuple[int, bytes]]:
    """Yields each line with its number, cut at `_PIECE_BYTES`."""
    file.seek(0)
    number, beginning = 1, b""
    while piece := file.readline(_PIECE_BYTES):
        if len(beginning) < _PIECE_BYTES:
            beginning += piece
        if piece.endswith(b"\n"):
            yield number, beginning
            number, beginning = number + 1, b""
    if beginning:
        yield number, beginning


def is_text(content: bytes, *, is_whole: bool = True) -> bool:
    """The last character may be cut if the content is not the whole file."""
    if b"\0" in content[:_PROBE_BYTES]:
        return False
    try:
        codecs.getincrementaldecoder("utf-8")().decode(content, is_whole)
    except UnicodeDecodeError:
        return False
    return True


def guess_type(name: str) -> str:
    return mimetypes.guess_type(name)[0] or "of unknown type"
