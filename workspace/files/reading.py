"""A file as a model reads it: a page of its lines, each with its number."""

import os
from collections.abc import Iterator

from workspace.files import opening, text
from workspace.files.folder import Answer, Folder
from workspace.refusals import Binary, OffsetBehindEnd

_PIECE = 65_536  # bytes that are read at once; a longer line comes in several
_AROUND = 1_500  # bytes of what is said beside the lines, with the longest path


def read(folder: Folder, path: str, *, offset: int = 1, limit: int = text.MOST_LINES) -> Answer:
    with opening.file(folder.descriptor, path) as opened:
        binary = Binary(path=path, size=opened.size, type=text.type_of(path))
        if not text.may_be_text(os.pread(opened.descriptor, 8_192, 0)):
            raise binary
        try:
            lines, total = _page(opened.descriptor, offset, min(limit, text.MOST_LINES))
        except UnicodeDecodeError:
            raise binary from None
        if offset > max(total, 1):
            raise OffsetBehindEnd(path=path, total=total)
    last = offset + len(lines) - 1
    more = [f"(Lines {last + 1:,} to {total:,} follow. Continue with offset={last + 1}.)"] if last < total else []
    shown = "\n".join([f"File: {path} ({total:,} {'line' if total == 1 else 'lines'})", *lines, *more])
    page = {"offset": offset, "lines": len(lines)}
    return Answer(shown, {"path": path, "total_lines": total, "bytes": opened.size, **page})


def _page(descriptor: int, offset: int, limit: int) -> tuple[list[str], int]:
    """The lines from `offset` on with their numbers, as many as fit, and how many the file has."""
    lines: list[str] = []
    room = text.MOST_BYTES - _AROUND
    total = 0
    for number, line in _lines(descriptor):
        total = number
        if number < offset or len(lines) == limit or room <= 0:
            continue
        whole = len(line) < _PIECE  # else its beginning may end in the middle of a character
        numbered = f"{number}: {line.decode(errors='strict' if whole else 'ignore').removesuffix(chr(10))}"
        size = len(numbered.encode()) + 1
        if size <= room:
            lines.append(numbered)
        elif not lines:  # a line that no page could hold
            lines.append(f"{text.cut(numbered, room)} (the line continues)")
        room -= size
    return lines, total


def _lines(descriptor: int) -> Iterator[tuple[int, bytes]]:
    """Each line with its number; of one that is longer than any page only its beginning."""
    with os.fdopen(os.dup(descriptor), "rb", buffering=_PIECE) as file:
        file.seek(0)
        number, beginning = 1, b""
        while piece := file.readline(_PIECE):
            if len(beginning) < _PIECE:
                beginning += piece
            if piece.endswith(b"\n"):
                yield number, beginning
                number, beginning = number + 1, b""
        if beginning:
            yield number, beginning
