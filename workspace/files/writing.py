"""Writes and edits files atomically."""

import difflib
import os
import re
import secrets
import stat
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from io import BufferedRandom

from workspace.errors import (
    ContentTooLarge,
    FileNotText,
    GitReadOnly,
    NotFile,
    NothingToEdit,
    OldTextNotFound,
    OldTextNotUnique,
    PathNotFound,
)
from workspace.files import opening, reading
from workspace.files.directories import is_git_path
from workspace.files.folder import Folder
from workspace.files.quota import Amount
from workspace.results import CallResult

MAX_BYTES = 1_000_000
_MODE = 0o644  # of new files
_DIFF_BYTES = 20_000
_DIFF_LINES = 2_000  # on each side: the time grows with their product
_CONTEXT_LINES = 3  # lines before and after a change
_CUT = "(further changes are not shown)"


def write_file(folder: Folder, path: str, content: str, *, append: bool = False) -> CallResult:
    data = _encode(content, "content")
    try:
        before = _read_text(folder, path)
    except PathNotFound:
        before, append = "", False
    except (ContentTooLarge, FileNotText):
        if append:
            raise
        before = None
    if append and before is not None:
        after = before + content
        whole = _encode(after, path)
        write_bytes(folder, path, whole)
        lines = after.count("\n")
        text = f"Added {len(data):,} bytes to {path}: {len(whole):,} bytes and {lines:,} lines now."
        return _create_result(text, path, before, after, appended=True)
    created = write_bytes(folder, path, data)
    text = f"{'Created' if created else 'Replaced'} {path}: {len(data):,} bytes."
    return _create_result(text, path, before, content, created=created)


def edit_file(folder: Folder, path: str, old_text: str, new_text: str) -> CallResult:
    if not old_text or old_text == new_text:
        raise NothingToEdit
    before = _read_text(folder, path)
    places = [*_find_all(before, old_text)]
    if not places:
        raise OldTextNotFound(path=path)
    if len(places) > 1:
        raise OldTextNotUnique(path=path, times=len(places))
    [(start, end)] = places
    after = before[:start] + _adapt_line_ends(new_text, before, start, end) + before[end:]
    data = _encode(after, path)
    write_bytes(folder, path, data)
    return _create_result(f"Edited {path}: {len(data):,} bytes now.", path, before, after)


def _create_result(text: str, path: str, before: str | None, after: str, **more: bool) -> CallResult:
    size = len(after.encode())
    return CallResult(text, {"path": path, **more, "bytes": size, "diff": _render_diff(before, after, path)})


def _encode(content: str, what: str) -> bytes:
    data = content.encode()
    if len(data) > MAX_BYTES:
        instead = "write it in parts with a command"
        raise ContentTooLarge(what=what, size=len(data), most=MAX_BYTES, instead=instead)
    return data


def write_bytes(folder: Folder, path: str, data: bytes) -> bool:
    """Returns whether the file is new."""
    with create_incoming(folder) as file:
        file.write(data)
        return move_incoming(folder, path, file)


@contextmanager
def create_incoming(folder: Folder) -> Iterator[BufferedRandom]:
    """Yields a hidden new file, which is deleted unless it is moved away."""
    name = secrets.token_hex(16)
    if folder.is_outside:  # a file can be moved only within a file system
        name = f".todo-{name}"
    with open(name, "x+b", opener=lambda name, flags: os.open(name, flags, 0o600, dir_fd=folder.incoming)) as file:
        try:
            yield file
        finally:
            with suppress(FileNotFoundError):
                os.unlink(name, dir_fd=folder.incoming)


def move_incoming(folder: Folder, path: str, file: BufferedRandom) -> bool:
    """Moves an incoming file to its path if the folder has space; returns whether the path is new."""
    *above, name = opening.split_file_path(path)
    file.flush()
    if not folder.is_outside:
        folder.quota.check(folder.path, more=Amount(os.fstat(file.fileno()).st_size, 1))
    elif is_git_path((*above, name)):
        raise GitReadOnly(path=path)
    with opening.open_directory(folder.descriptor, above, create=True) as at:
        with opening.translate_errors(at, name, path):
            mode = _read_mode(at, name, path)
            os.fchmod(file.fileno(), _MODE if mode is None else mode)
            os.fsync(file)
            os.rename(file.name, name, src_dir_fd=folder.incoming, dst_dir_fd=at)
        os.fsync(at)
    return mode is None


def delete(folder: Folder, path: str) -> None:
    with opening.open_file(folder.descriptor, path):
        *above, name = opening.split_path(path)
    with opening.open_directory(folder.descriptor, above) as at, opening.translate_errors(at, name, path):
        os.unlink(name, dir_fd=at)


def _read_mode(at: int, name: str, path: str) -> int | None:
    """Returns the mode of an existing file, or None; raises `NotFile` for anything else."""
    try:
        found = os.stat(name, dir_fd=at, follow_symlinks=False).st_mode
    except FileNotFoundError:
        return None
    if not stat.S_ISREG(found):
        raise NotFile(path=path, kind=opening.describe_kind(found))
    return found & 0o777


def _read_text(folder: Folder, path: str) -> str:
    with opening.open_file(folder.descriptor, path) as opened:
        if opened.size > MAX_BYTES:
            instead = "change it with a command"
            raise ContentTooLarge(what=path, size=opened.size, most=MAX_BYTES, instead=instead)
        data = opened.file.read(MAX_BYTES + 1)
    if not reading.is_text(data):
        raise FileNotText(path=path, size=len(data), type=reading.guess_type(path))
    return data.decode()


def _find_all(text: str, part: str) -> Iterator[tuple[int, int]]:
    """Yields all matches, also overlapping ones; a line feed in the part also matches CR LF in the text."""
    if "\r\n" in text and "\r" not in part and "\n" in part:
        pattern = "\r?\n".join(re.escape(line) for line in part.split("\n"))
        yield from (found.span(1) for found in re.finditer(f"(?=({pattern}))", text))
        return
    start = text.find(part)
    while start != -1:
        yield start, start + len(part)
        start = text.find(part, start + 1)


def _adapt_line_ends(new: str, text: str, start: int, end: int) -> str:
    """Adapts line ends to the replaced lines, because models do not see the difference."""
    line_end = text.find("\n", text.find("\n", start, end) if "\n" in text[start:end] else end)
    is_crlf = line_end > 0 and text[line_end - 1] == "\r"
    return new.replace("\n", "\r\n") if is_crlf and "\r" not in new else new


def _render_diff(before: str | None, after: str, path: str) -> str:
    """Renders a unified diff; `before` is None if it cannot be compared."""
    if before is None:
        return _CUT
    old, new = before.splitlines(), after.splitlines()
    head = _count_common(old, new)
    tail = _count_common(old[head:][::-1], new[head:][::-1])
    if max(len(old), len(new)) - head - tail > _DIFF_LINES:
        return _CUT
    first, rest = max(0, head - _CONTEXT_LINES), max(0, tail - _CONTEXT_LINES)
    lines = difflib.unified_diff(old[first : len(old) - rest], new[first : len(new) - rest], path, path, lineterm="")
    return "\n".join(_limit_lines(_shift_numbers(first, lines)))


def _count_common(one: Sequence[str], other: Sequence[str]) -> int:
    pairs = enumerate(zip(one, other, strict=False))
    return next((place for place, (a, b) in pairs if a != b), min(len(one), len(other)))


def _shift_numbers(first: int, lines: Iterable[str]) -> Iterator[str]:
    """Adds the number of omitted leading lines to a diff's line numbers."""
    for line in lines:
        if line.startswith("@@"):
            yield re.sub(r"(?<=[-+])\d+", lambda number: str(int(number[0]) + first), line)
        else:
            yield line


def _limit_lines(lines: Iterable[str]) -> Iterator[str]:
    left = _DIFF_BYTES - len(_CUT) - 1
    for line in lines:
        left -= len(line.encode()) + 1
        if left < 0:
            yield _CUT
            return
        yield line
