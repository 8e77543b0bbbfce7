"""Going through directories in which a command may have done whatever it could."""

import errno
import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from workspace.files.opening import DIRECTORY, FILE

_ALL = 0o700
_READING = 0o500


@contextmanager
def opened(path: Path) -> Iterator[int]:
    """A directory whose path is ours alone, though a command may have closed it."""
    if path.stat().st_mode & _ALL != _ALL:
        path.chmod(_ALL)
    descriptor = os.open(path, DIRECTORY)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


@contextmanager
def entered(at: int, name: str, *, needed: int = _READING) -> Iterator[int]:
    """A directory's descriptor, though its mode keeps its owner from what is needed: that is mended."""
    descriptor = _opened(at, name, DIRECTORY)
    try:
        if os.fstat(descriptor).st_mode & needed != needed:
            os.fchmod(descriptor, _ALL)
        yield descriptor
    finally:
        os.close(descriptor)


def _opened(at: int, name: str, flags: int) -> int:
    try:
        return os.open(name, flags, dir_fd=at)
    except PermissionError:
        give_rights(at, name)
        return os.open(name, flags, dir_fd=at)


def give_rights(at: int, name: str) -> None:
    """Give its owner all rights to a directory or file, never to what a symbolic link leads to."""
    if os.chmod in os.supports_follow_symlinks:
        os.chmod(name, _ALL, dir_fd=at, follow_symlinks=False)
        return
    # Linux changes no mode through a descriptor that was opened without rights, but by its name.
    descriptor = os.open(name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=at)
    try:
        if not stat.S_ISLNK(os.fstat(descriptor).st_mode):
            os.chmod(f"/proc/self/fd/{descriptor}", _ALL)
    finally:
        os.close(descriptor)


@contextmanager
def read(at: int, name: str) -> Iterator[int]:
    """The descriptor of a file, whatever it is called and its mode says; what is no regular file is an OSError."""
    descriptor = _opened(at, name, FILE)
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))
        yield descriptor
    finally:
        os.close(descriptor)


def entries(descriptor: int) -> list[os.DirEntry[str]]:
    """What is in a directory, in the order of its names."""
    with os.scandir(descriptor) as found:
        return sorted(found, key=lambda entry: entry.name)


def is_directory(entry: os.DirEntry[str]) -> bool:
    return entry.is_dir(follow_symlinks=False)


def remove(at: int, name: str) -> None:
    """Remove a directory with all that is in it, however deep that is and whatever modes it has.

    What is nested is moved up first, so that depth costs neither memory nor descriptors.
    """
    waiting = [name]
    while waiting:
        current = waiting.pop()
        with entered(at, current, needed=_ALL) as descriptor, os.scandir(descriptor) as found:
            for entry in found:
                if is_directory(entry):
                    waiting.append(_moved_up(descriptor, entry.name, at))
                else:
                    os.unlink(entry.name, dir_fd=descriptor)
        with suppress(FileNotFoundError):
            os.rmdir(current, dir_fd=at)


def _moved_up(descriptor: int, name: str, at: int) -> str:
    fresh = secrets.token_hex(16)
    give_rights(descriptor, name)  # moving a directory needs the right to write in it
    os.rename(name, fresh, src_dir_fd=descriptor, dst_dir_fd=at)
    return fresh
