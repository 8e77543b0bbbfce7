"""Writing a file, or changing the one place in it that has a text: whole or not at all."""

import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from workspace.files import diffs, opening, text
from workspace.files.folder import Answer, Folder
from workspace.files.quota import DEEPEST
from workspace.refusals import (
    Binary,
    ContentTooLarge,
    NestedTooDeep,
    NoFile,
    NothingToEdit,
    NotThere,
    OldTextNotFound,
    OldTextNotUnique,
)

MOST_BYTES = 1_000_000
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_MODE = 0o644  # of a new file; an older one's stays


def write(folder: Folder, path: str, content: str, *, append: bool = False) -> Answer:
    """Write a whole file, or with `append` its next part at its end."""
    data = checked(content, "content")
    if append and (before := _appendable(folder, path)) is not None:
        return _append(folder, path, before, content)
    before = _content(folder, path)
    created = put_bytes(folder, path, data)
    done = "Created" if created else "Replaced"
    details = {"path": path, "created": created, "bytes": len(data), "diff": diffs.between(before, content, path)}
    return Answer(f"{done} {path}: {len(data):,} bytes.", details)


def _append(folder: Folder, path: str, before: str, content: str) -> Answer:
    after = before + content
    data = checked(after, path)
    put_bytes(folder, path, data)
    details = {"path": path, "appended": True, "bytes": len(data), "diff": diffs.between(before, after, path)}
    added, lines = len(content.encode()), after.count("\n")
    return Answer(f"Added {added:,} bytes to {path}: {len(data):,} bytes and {lines:,} lines now.", details)


def _appendable(folder: Folder, path: str) -> str | None:
    """The text of the file that a part is added to; None where there is no file yet."""
    try:
        return text_of(folder, path)
    except NotThere:
        return None


def edit(folder: Folder, path: str, old_text: str, new_text: str) -> Answer:
    """Replace the one place in a file that has a text."""
    if not old_text or old_text == new_text:
        raise NothingToEdit
    before = text_of(folder, path)
    if "\r\n" in before and "\r\n" not in old_text:  # lines are shown without their ends
        old_text, new_text = (text.replace("\n", "\r\n") for text in (old_text, new_text))
    times = _times(before, old_text)
    if times == 0:
        raise OldTextNotFound(path=path)
    if times > 1:
        raise OldTextNotUnique(path=path, times=times)
    after = before.replace(old_text, new_text)
    data = checked(after, path)
    put_bytes(folder, path, data)
    details = {"path": path, "bytes": len(data), "diff": diffs.between(before, after, path)}
    return Answer(f"Edited {path}: {len(data):,} bytes now.", details)


def checked(content: str, what: str) -> bytes:
    """The content as UTF-8, where a tool may write so much."""
    data = content.encode()
    if len(data) > MOST_BYTES:
        instead = "write it in parts with a command"
        raise ContentTooLarge(what=what, size=len(data), most=MOST_BYTES, instead=instead)
    return data


def put_bytes(folder: Folder, path: str, data: bytes) -> bool:
    """Whether the file is new."""
    with incoming(folder) as (name, descriptor):
        with os.fdopen(os.dup(descriptor), "wb") as file:
            file.write(data)
        return put(folder, path, name, descriptor)


@contextmanager
def incoming(folder: Folder) -> Iterator[tuple[str, int]]:
    """A new file where no command sees it: its name and descriptor. It is gone again unless it was put somewhere."""
    name = secrets.token_hex(16)
    descriptor = os.open(name, _NEW, 0o600, dir_fd=folder.incoming)
    try:
        yield name, descriptor
    finally:
        os.close(descriptor)
        with suppress(FileNotFoundError):
            os.unlink(name, dir_fd=folder.incoming)


def put(folder: Folder, path: str, incoming: str, descriptor: int) -> bool:
    """Give a file that came in its place in the folder, where it fits in, and tell whether it is new there."""
    *above, name = opening.names(path) or ("",)
    if not name:
        raise NoFile(path=path or ".", kind="a directory")
    if len(above) >= DEEPEST:  # and the folder itself is one
        raise NestedTooDeep(most=DEEPEST - 1)
    folder.quota.check(folder.path, more_bytes=os.fstat(descriptor).st_size, more_files=1)
    with opening.directory(folder.descriptor, above, create=True) as at:
        mode = _mode(at, name, path)
        os.fchmod(descriptor, _MODE if mode is None else mode)
        os.fsync(descriptor)
        try:
            os.rename(incoming, name, src_dir_fd=folder.incoming, dst_dir_fd=at)
        except OSError as error:
            raise opening.refusal(error, at, name, path) from None
        os.fsync(at)
    return mode is None


def delete(folder: Folder, path: str) -> None:
    """A file that could be opened; whatever takes its name meanwhile is in the folder, too."""
    with opening.file(folder.descriptor, path):
        *above, name = opening.names(path)
    with opening.directory(folder.descriptor, above) as at:
        try:
            os.unlink(name, dir_fd=at)
        except OSError as error:
            raise opening.refusal(error, at, name, path) from None


def _mode(at: int, name: str, path: str) -> int | None:
    """Of the file that is there; None where there is none. What is no file is not replaced."""
    try:
        found = os.stat(name, dir_fd=at, follow_symlinks=False).st_mode
    except FileNotFoundError:
        return None
    except OSError as error:
        raise opening.refusal(error, at, name, path) from None
    if not stat.S_ISREG(found):
        raise NoFile(path=path, kind=opening.kind(found))
    return found & 0o777


def _content(folder: Folder, path: str) -> str | None:
    """What a diff begins with: the text that is there, if it is one and not too long."""
    try:
        with opening.file(folder.descriptor, path) as opened:
            if opened.size > MOST_BYTES:
                return None
            data = read_whole(opened.descriptor)
    except NotThere:
        return ""
    return data.decode() if text.is_text(data) else None


def read_whole(descriptor: int) -> bytes:
    """All of a file of at most as many bytes as may be written."""
    with os.fdopen(os.dup(descriptor), "rb") as file:
        return file.read(MOST_BYTES + 1)


def text_of(folder: Folder, path: str) -> str:
    """A file's text, to be changed; raises a `Refusal` for what is none or too long."""
    with opening.file(folder.descriptor, path) as opened:
        if opened.size > MOST_BYTES:
            instead = "change it with a command"
            raise ContentTooLarge(what=path, size=opened.size, most=MOST_BYTES, instead=instead)
        data = read_whole(opened.descriptor)
    if not text.is_text(data):
        raise Binary(path=path, size=len(data), type=text.type_of(path))
    return data.decode()


def _times(text: str, part: str) -> int:
    """In how many places a text has a part; they may overlap."""
    times, at = 0, text.find(part)
    while at != -1:
        times, at = times + 1, text.find(part, at + 1)
    return times
