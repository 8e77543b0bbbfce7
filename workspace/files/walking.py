"""Walks through directories that commands may change at the same time."""

import errno
import os
import secrets
import stat
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from workspace.files.opening import DIRECTORY, FILE

_ALL = 0o700
_READING = 0o500
_OPEN_DIRECTORIES = 64
Identity = tuple[int, int]
"""The device and the inode of a directory."""


@contextmanager
def open_directory(path: Path, *, repair: bool = True) -> Iterator[int]:
    """Opens a directory whose path no command can change; `repair` restores its mode."""
    if repair and path.stat().st_mode & _ALL != _ALL:
        path.chmod(_ALL)
    descriptor = os.open(path, DIRECTORY)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _open_child(at: int, name: str, *, repair: bool = True, needed: int = _READING) -> int:
    if not repair:
        return os.open(name, DIRECTORY, dir_fd=at)
    descriptor = _open_with_rights(at, name, DIRECTORY)
    if os.fstat(descriptor).st_mode & needed != needed:
        os.fchmod(descriptor, _ALL)
    return descriptor


def _open_with_rights(at: int, name: str, flags: int) -> int:
    try:
        return os.open(name, flags, dir_fd=at)
    except PermissionError:
        give_rights(at, name)
        return os.open(name, flags, dir_fd=at)


def give_rights(at: int, name: str) -> None:
    """Does not follow a symbolic link."""
    if os.chmod in os.supports_follow_symlinks:
        os.chmod(name, _ALL, dir_fd=at, follow_symlinks=False)
        return
    # Linux changes no mode through an O_PATH descriptor, but through its name in /proc.
    descriptor = os.open(name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=at)
    try:
        if not stat.S_ISLNK(os.fstat(descriptor).st_mode):
            os.chmod(f"/proc/self/fd/{descriptor}", _ALL)
    finally:
        os.close(descriptor)


@contextmanager
def open_file(at: int, name: str) -> Iterator[int]:
    """Opens a file of any mode; raises an OSError if it is not regular."""
    descriptor = _open_with_rights(at, name, FILE)
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))
        yield descriptor
    finally:
        os.close(descriptor)


class DirectoryMoved(OSError):
    """A directory was moved to another one while it was read."""


class DirectoryEntry(NamedTuple):
    parents: Sequence[str]
    """The names of its directories: one list for all entries, which changes during the walk."""
    name: str
    status: os.stat_result
    directory: int
    """The descriptor of its directory, valid until the next entry."""

    @property
    def path(self) -> str:
        return "/".join((*self.parents, self.name))


def walk_tree(
    directory: int, *, should_enter: Callable[[DirectoryEntry], bool] = lambda _: True, repair: bool = True
) -> Iterator[DirectoryEntry]:
    """Yields all entries below a directory in order; raises `DirectoryMoved` if a directory far below is moved."""
    ignored = (FileNotFoundError, NotADirectoryError)  # removed or replaced by a command
    if not repair:
        ignored = (*ignored, PermissionError)
    parents: list[str] = []
    above: list[int | Identity] = []  # descriptors; further below, identities
    at, waiting = os.dup(directory), [_list_names(directory)]
    try:
        while waiting:
            if not waiting[-1]:
                waiting.pop()
                if above:
                    parents.pop()
                    at = _go_up(at, above.pop())
                continue
            name = waiting[-1].pop()
            with suppress(*ignored):
                entry = DirectoryEntry(parents, name, os.stat(name, dir_fd=at, follow_symlinks=False), at)
                yield entry
                if stat.S_ISDIR(entry.status.st_mode) and should_enter(entry):
                    below = _open_child(at, name, repair=repair)
                    names = _list_names(below)
                    above.append(at if len(above) < _OPEN_DIRECTORIES else get_identity(os.fstat(at)))
                    if len(above) > _OPEN_DIRECTORIES:
                        os.close(at)
                    at = below
                    parents.append(name)
                    waiting.append(names)
    finally:
        for descriptor in (at, *above):
            if isinstance(descriptor, int):
                os.close(descriptor)


def _list_names(directory: int) -> list[str]:
    return sorted(os.listdir(directory), reverse=True)


def get_identity(status: os.stat_result) -> Identity:
    return status.st_dev, status.st_ino


def _go_up(at: int, above: int | Identity) -> int:
    if not isinstance(above, int):
        parent = os.open("..", DIRECTORY, dir_fd=at)
        if get_identity(os.fstat(parent)) != above:
            os.close(parent)
            raise DirectoryMoved(errno.ESTALE, "a directory was moved")
        above = parent
    os.close(at)
    return above


def remove_tree(at: int, name: str) -> None:
    """Removes a directory of any depth and mode; nested ones are moved up first to limit memory and descriptors."""
    waiting = [name]
    while waiting:
        current = waiting.pop()
        descriptor = _open_child(at, current, needed=_ALL)
        try:
            with os.scandir(descriptor) as found:
                for entry in found:
                    if entry.is_dir(follow_symlinks=False):
                        waiting.append(_move_up(descriptor, entry.name, at))
                    else:
                        os.unlink(entry.name, dir_fd=descriptor)
        finally:
            os.close(descriptor)
        with suppress(FileNotFoundError):
            os.rmdir(current, dir_fd=at)


def _move_up(descriptor: int, name: str, at: int) -> str:
    fresh = secrets.token_hex(16)
    give_rights(descriptor, name)  # moving a directory needs the right to write in it
    os.rename(name, fresh, src_dir_fd=descriptor, dst_dir_fd=at)
    return fresh
