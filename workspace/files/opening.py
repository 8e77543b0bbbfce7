"""Opens files of a folder that a command may change at the same time.

Each name of a path is opened from the descriptor of its directory without following links, so that no replacement can
lead out of the folder.
"""

import errno
import os
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import BinaryIO, NamedTuple

from common.text import is_storable
from common.tool_server.errors import to_printable
from workspace.errors import (
    DiskFull,
    NotDirectory,
    NotFile,
    PathHasLink,
    PathInvalid,
    PathNotFound,
    PermissionDenied,
    WrongOwner,
)

DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# A FIFO without a writer must not block, and a terminal must not become the controlling one.
FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_MAX_NAME_BYTES, _MAX_PATH_BYTES = 255, 1_000
_MODE = 0o755  # of directories; nobody else enters the folder above them
_KINDS = {
    stat.S_IFREG: "a file",
    stat.S_IFDIR: "a directory",
    stat.S_IFLNK: "a symbolic link",
    stat.S_IFIFO: "a FIFO",
    stat.S_IFSOCK: "a socket",
}


class OpenFile(NamedTuple):
    file: BinaryIO
    size: int


def split_path(path: str) -> tuple[str, ...]:
    """Returns the names of a path, none for the folder itself; raises `PathInvalid`."""
    found = tuple(name for name in path.split("/") if name not in ("", "."))
    short = len(path.encode()) <= _MAX_PATH_BYTES and all(len(name.encode()) <= _MAX_NAME_BYTES for name in found)
    if not short or path.startswith("/") or ".." in found or not is_storable(path):
        raise PathInvalid(path=to_printable(path))
    return found


def split_file_path(path: str) -> tuple[str, ...]:
    """Returns at least one name; raises `PathInvalid`, or `NotFile` for the folder itself."""
    if not (names := split_path(path)):
        raise NotFile(path=to_printable(path) or ".", kind="a directory")
    return names


def describe_kind(mode: int) -> str:
    return _KINDS.get(stat.S_IFMT(mode), "a device")


@contextmanager
def open_directory(folder: int, path: Sequence[str], *, create: bool = False) -> Iterator[int]:
    """Yields the descriptor of a directory in a folder; with `create`, missing ones are created."""
    at = os.dup(folder)
    try:
        for place, name in enumerate(path, 1):
            with translate_errors(at, name, "/".join(path[:place])):
                if create:
                    with suppress(FileExistsError):
                        os.mkdir(name, _MODE, dir_fd=at)
                below = os.open(name, DIRECTORY, dir_fd=at)
            os.close(at)
            at = below
        yield at
    finally:
        os.close(at)


@contextmanager
def open_file(folder: int, path: str) -> Iterator[OpenFile]:
    """Yields a regular file of the folder's owner; raises a `CallError` for everything else."""
    *above, name = split_file_path(path)
    with open_directory(folder, above) as at, translate_errors(at, name, path):
        file = open(name, "rb", opener=lambda name, _: os.open(name, FILE, dir_fd=at))  # noqa: SIM115 - closed below
    with file:
        found = os.fstat(file.fileno())
        if not stat.S_ISREG(found.st_mode):
            raise NotFile(path=path, kind=describe_kind(found.st_mode))
        # A hard link to another user's file, which only a command without a sandbox can create.
        if found.st_uid != os.fstat(folder).st_uid:
            raise WrongOwner(path=path)
        yield OpenFile(file, found.st_size)


@contextmanager
def translate_errors(at: int, name: str, path: str) -> Iterator[None]:
    """Raises a `CallError` for an expected `OSError` about a name in a directory."""
    try:
        yield
    except OSError as error:
        raise _translate_error(error, at, name, path) from None


def _translate_error(error: OSError, at: int, name: str, path: str) -> Exception:
    kind = None
    with suppress(OSError):
        kind = describe_kind(os.stat(name, dir_fd=at, follow_symlinks=False).st_mode)
    match error.errno:
        case errno.ENOENT:
            return PathNotFound(path=path)
        case errno.EACCES | errno.EPERM:
            return PermissionDenied(path=path)
        case errno.ENOSPC | errno.EDQUOT:
            return DiskFull()
        case errno.ENXIO | errno.EISDIR | errno.EOPNOTSUPP:
            return NotFile(path=path, kind=kind or "a directory")
        case errno.ENOTDIR if kind not in (None, "a directory", "a symbolic link"):
            return NotDirectory(path=path, kind=kind)
        case errno.ENOTDIR | errno.ELOOP | errno.EMLINK:  # a link, which may have been replaced since
            return PathHasLink(path=path)
        case _:
            return error
