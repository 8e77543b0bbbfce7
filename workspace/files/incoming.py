"""Writes new files, and moves them atomically to their paths."""

import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from io import BufferedRandom

from workspace.errors import GitReadOnly, NotFile
from workspace.files import opening
from workspace.files.directories import is_git_path
from workspace.files.folder import Folder
from workspace.files.quota import Amount

_MODE = 0o644  # of new files


def write_bytes(folder: Folder, path: str, data: bytes) -> os.stat_result | None:
    """Returns the status of the replaced file, if there was one."""
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


def move_incoming(folder: Folder, path: str, file: BufferedRandom) -> os.stat_result | None:
    """Moves an incoming file to its path if the folder has space; returns the status of the replaced file."""
    *above, name = opening.split_file_path(path)
    file.flush()
    if not folder.is_outside:
        folder.quota.check(folder.path, more=Amount(os.fstat(file.fileno()).st_size, 1))
    elif is_git_path((*above, name)):
        raise GitReadOnly(path=path)
    with opening.open_directory(folder.descriptor, above, create=True) as at:
        with opening.translate_errors(at, name, path):
            replaced = _read_status(at, name, path)
            os.fchmod(file.fileno(), replaced.st_mode & 0o777 if replaced else _MODE)
            os.fsync(file)
            os.rename(file.name, name, src_dir_fd=folder.incoming, dst_dir_fd=at)
        os.fsync(at)
    return replaced


def _read_status(at: int, name: str, path: str) -> os.stat_result | None:
    """Returns None if there is no file; raises `NotFile` for anything else than a file."""
    try:
        found = os.stat(name, dir_fd=at, follow_symlinks=False)
    except FileNotFoundError:
        return None
    if not stat.S_ISREG(found.st_mode):
        raise NotFile(path=path, kind=opening.describe_kind(found.st_mode))
    return found
