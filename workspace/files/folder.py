"""The folders of all users: where they are, and one of them opened."""

import hashlib
import os
import re
import secrets
import stat
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from workspace.errors import FolderInvalid
from workspace.files import walking
from workspace.files.directories import Directories
from workspace.files.quota import Quota

_NAME = re.compile(r"[A-Za-z0-9._-]{1,100}")
_ONLY_OURS = 0o700
# Beside the folders, where no command sees them: names that no user's hash can have.
_RESULTS, _INCOMING, _REMOVED, _UPLOADS = ".answers", ".incoming", ".removed", ".uploads"
_RESTORED = ".restored"
NOT_STORED = (_INCOMING, _REMOVED, _RESTORED)
"""What is no part of a backup."""


@dataclass(frozen=True)
class Folder:
    """An open folder of a user's, or with `is_outside` a directory of theirs that stands for it.

    That one has no quota, and modes and what git keeps in it stay as they are.
    """

    path: Path
    descriptor: int
    incoming: int
    """Where a file is written before it gets its name, on the same file system."""
    results: Path
    uploads: Path
    """What is known of the files that its user put in; there is no such directory before the first."""
    quota: Quota
    is_outside: bool = False


def hash_of(user: str) -> str:
    """Ids of providers contain slashes, and say who it is."""
    return hashlib.sha256(user.encode()).hexdigest()[:32]


class StoreUnusable(Exception):
    """With the sentence why."""


class Store:
    """All folders, in a directory that is its own."""

    def __init__(self, root: Path, quota: Quota, directories: Directories | None = None) -> None:
        self.root = root
        self.quota = quota
        self.directories = directories or Directories(None)
        self._lock = threading.Lock()  # nobody begins to use a folder while it is looked at and moved away

    def prepare(self) -> None:
        """Check that the directory is ours, and clear away what a process that was killed left half done."""
        try:
            found = self.root.stat()
        except OSError as error:
            raise StoreUnusable(f"WORKSPACE_DIR {self.root} cannot be used: {error.strerror}.") from None
        ours = stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid() and not stat.S_IMODE(found.st_mode) & 0o077
        if not ours:
            raise StoreUnusable(
                f"WORKSPACE_DIR {self.root} must be a directory that the workspace's account owns and only it may "
                f"enter: chown {os.geteuid()} and chmod 700."
            )
        for name in (_RESULTS, _INCOMING, _REMOVED, _UPLOADS):
            (self.root / name).mkdir(mode=_ONLY_OURS, exist_ok=True)
        for half_written in (self.root / _INCOMING).iterdir():
            half_written.unlink()
        self._remove_restored()
        self._empty_removed()

    def paths(self, user: str, name: str) -> tuple[Path, Path]:
        """Where a folder and its results are; they are created where they are missing, and used from now on."""
        _check(name)
        owner = hash_of(user)
        path, results = self.root / owner / name, self.root / _RESULTS / owner / name
        with self._lock:
            for directory in (path.parent, path, results.parent, results):
                with suppress(FileExistsError):
                    directory.mkdir(mode=_ONLY_OURS)
            os.utime(results)
        return path, results

    @contextmanager
    def folder(self, user: str, name: str, directory: str | None = None) -> Iterator[Folder]:
        """The same, opened; or the `directory` of the user's that stands for it."""
        path, results = self.paths(user, name)
        uploads = self.root / _UPLOADS / path.parent.name / name
        if directory is not None:
            with self.directories.open(directory) as descriptor:
                yield Folder(Path(directory), descriptor, descriptor, results, uploads, self.quota, is_outside=True)
            return
        with walking.opened(path) as descriptor, walking.opened(self.root / _INCOMING) as incoming:
            yield Folder(path, descriptor, incoming, results, uploads, self.quota)

    @contextmanager
    def existing(self, user: str, name: str, directory: str | None = None) -> Iterator[Folder | None]:
        """The same, or None where there is none; it is made by nobody who only looks."""
        _check(name)
        if directory is not None or (self.root / hash_of(user) / name).is_dir():
            with self.folder(user, name, directory) as folder:
                yield folder
        else:
            yield None

    def names(self, user: str) -> list[str]:
        """Of a user's folders."""
        path = self.root / hash_of(user)
        return sorted(os.listdir(path)) if path.is_dir() else []

    def remove(self, user: str, name: str | None = None) -> bool:
        """Remove a folder, or all of a user's; returns whether there was any."""
        if name is not None:
            _check(name)
        return self._remove(hash_of(user), name or "")

    def remove_unused(self, before: float) -> int:
        """Remove the folders that were used before that time last (Unix time), and tell how many."""
        removed = 0
        for results in (self.root / _RESULTS).glob("*/*"):
            with suppress(FileNotFoundError), self._lock:  # removed by another thread
                if results.stat().st_mtime < before:
                    removed += self._move_away(results.parent.name, results.name)
        self._empty_removed()
        return removed

    def is_empty(self) -> bool:
        return not any(path.name[0] != "." for path in self.root.iterdir())

    def prepare_restored(self) -> Path:
        """An empty directory for everything that is to replace what is stored."""
        self._remove_restored()
        (path := self.root / _RESTORED).mkdir(mode=_ONLY_OURS)
        return path

    def replace_by_restored(self) -> None:
        """If this is interrupted, restoring from the beginning completes it."""
        (self.root / _REMOVED).mkdir(mode=_ONLY_OURS, exist_ok=True)
        for path in self.root.iterdir():
            if path.name not in NOT_STORED:
                path.rename(self.root / _REMOVED / secrets.token_hex(16))
        for path in (self.root / _RESTORED).iterdir():
            path.rename(self.root / path.name)
        (self.root / _RESTORED).rmdir()
        self._empty_removed()

    def _remove(self, owner: str, name: str) -> bool:
        with self._lock:
            removed = self._move_away(owner, name)
        self._empty_removed()
        return removed

    def _move_away(self, owner: str, name: str) -> bool:
        """At once gone for everybody; whether there was anything."""
        moved = False
        (self.root / _REMOVED).mkdir(mode=_ONLY_OURS, exist_ok=True)
        for above in (self.root, self.root / _RESULTS, self.root / _UPLOADS):
            path = above / owner / name
            with suppress(FileNotFoundError):
                path.chmod(_ONLY_OURS)  # or it could not be moved
                path.rename(self.root / _REMOVED / secrets.token_hex(16))
                moved = True
            with suppress(OSError):  # there are others in it
                (above / owner).rmdir()
        return moved

    def _remove_restored(self) -> None:
        with walking.opened(self.root) as at, suppress(FileNotFoundError):
            walking.remove(at, _RESTORED)

    def _empty_removed(self) -> None:
        with walking.opened(self.root / _REMOVED) as at:
            for name in os.listdir(at):
                with suppress(FileNotFoundError):  # another thread is at it
                    walking.remove(at, name)


def _check(name: str) -> None:
    if not _NAME.fullmatch(name) or not name.strip("."):
        raise FolderInvalid
