"""Stores the folders of all users."""

import errno
import hashlib
import os
import re
import secrets
import stat
import threading
from collections.abc import Container, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from common.environment import SettingsInvalid
from workspace.errors import FolderInvalid
from workspace.files import walking
from workspace.files.directories import open_user_directory
from workspace.files.quota import Quota

_NAME = re.compile(r"[A-Za-z0-9._-]{1,100}")
_PRIVATE = 0o700
# Directories that commands cannot see; no user's hash has such a name.
_RESULTS, _INCOMING, _REMOVED, _UPLOADS = ".answers", ".incoming", ".removed", ".uploads"
_RESTORED = ".restored"
NOT_STORED = (_INCOMING, _REMOVED, _RESTORED)
"""Directories that a backup does not contain."""


@dataclass(frozen=True)
class Folder:
    """An open folder or, with `is_outside`, a directory of the user, which has no quota and keeps its modes."""

    path: Path
    descriptor: int
    incoming: int
    """The descriptor of a directory on the same file system, in which new files are written before they are moved."""
    results: Path
    uploads: Path
    """The directory with the records of uploads, if there are any."""
    quota: Quota
    is_outside: bool = False


class Store:
    def __init__(self, root: Path, quota: Quota, data_dir: Path | None = None) -> None:
        self.root = root
        self.quota = quota
        self._data_dir = data_dir
        self._lock = threading.Lock()  # an unused folder is not used between the check and its removal

    def prepare(self) -> None:
        """Checks the directory and removes what a killed process left; raises `SettingsInvalid`."""
        try:
            found = self.root.stat()
        except OSError as error:
            raise SettingsInvalid(f"WORKSPACE_DIR {self.root} cannot be used: {error.strerror}.") from None
        ours = stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid() and not stat.S_IMODE(found.st_mode) & 0o077
        if not ours:
            raise SettingsInvalid(
                f"WORKSPACE_DIR {self.root} must be a directory that the workspace's account owns and only it may "
                f"enter: chown {os.geteuid()} and chmod 700."
            )
        for name in (_RESULTS, _INCOMING, _REMOVED, _UPLOADS):
            (self.root / name).mkdir(mode=_PRIVATE, exist_ok=True)
        for half_written in (self.root / _INCOMING).iterdir():
            half_written.unlink()
        self.discard_restored()
        self._delete_removed()

    def get_directory(self, user: str) -> Path:
        """Ids of users identify people and may contain slashes, so names of directories are hashes."""
        return self.root / hashlib.sha256(user.encode()).hexdigest()[:32]

    def create_paths(self, user: str, name: str) -> tuple[Path, Path]:
        """Returns the paths of a folder and its results, creates both and marks them as used."""
        _check_name(name)
        path = self.get_directory(user) / name
        results = self.root / _RESULTS / path.parent.name / name
        with self._lock:
            for directory in (path.parent, path, results.parent, results):
                with suppress(FileExistsError):
                    directory.mkdir(mode=_PRIVATE)
            os.utime(results)
        return path, results

    @contextmanager
    def open_folder(self, user: str, name: str, directory: str | None = None) -> Iterator[Folder]:
        """Opens the folder, or the directory of the user that replaces it."""
        path, results = self.create_paths(user, name)
        uploads = self.root / _UPLOADS / path.parent.name / name
        if directory is not None:
            with self.open_directory(directory) as descriptor:
                yield Folder(Path(directory), descriptor, descriptor, results, uploads, self.quota, is_outside=True)
            return
        with walking.open_directory(path) as descriptor, walking.open_directory(self.root / _INCOMING) as incoming:
            yield Folder(path, descriptor, incoming, results, uploads, self.quota)

    def open_directory(self, path: str) -> AbstractContextManager[int]:
        return open_user_directory(path, self._data_dir)

    @contextmanager
    def open_existing(self, user: str, name: str, directory: str | None = None) -> Iterator[Folder | None]:
        """Yields None instead of creating a folder."""
        _check_name(name)
        if directory is not None or (self.get_directory(user) / name).is_dir():
            with self.open_folder(user, name, directory) as folder:
                yield folder
        else:
            yield None

    def list_names(self, user: str) -> list[str]:
        path = self.get_directory(user)
        return sorted(os.listdir(path)) if path.is_dir() else []

    def remove(self, user: str, name: str | None = None) -> bool:
        """Returns whether there was anything to remove; without a name, all folders of the user are removed."""
        if name is not None:
            _check_name(name)
        with self._lock:
            removed = self._move_away(self.get_directory(user).name, name or "")
        self._delete_removed()
        return removed

    def move_folders(self, old: str, new: str, conversations: Container[str]) -> tuple[int, int]:
        """Gives the folders of these conversations to another user; can be repeated if it is interrupted.

        Returns how many it has moved, and how many not, as the new user has files in the same folder.
        """
        source, target = self.get_directory(old).name, self.get_directory(new).name
        moved, left = set[str](), set[str]()
        for above in (self.root, self.root / _RESULTS, self.root / _UPLOADS):
            for path in sorted((above / source).glob("*")):
                if path.name.partition(".")[0] in conversations:  # an agent's has its name after a dot
                    (moved if self._move_folder(path, above / target) else left).add(path.name)
            with suppress(OSError):  # not empty
                (above / source).rmdir()
        return len(moved - left), len(left)

    def _move_folder(self, path: Path, target: Path) -> bool:
        with self._lock:
            target.mkdir(mode=_PRIVATE, exist_ok=True)
            path.chmod(_PRIVATE)  # moving a directory needs the right to write in it
            try:
                path.rename(target / path.name)  # replaces an empty directory
            except OSError as error:
                if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                    raise
                return False
        return True

    def remove_unused(self, before: float) -> int:
        """Removes the folders that were last used before a Unix time; returns their number."""
        removed = 0
        for results in (self.root / _RESULTS).glob("*/*"):
            with suppress(FileNotFoundError), self._lock:  # removed by another thread
                if results.stat().st_mtime < before:
                    removed += self._move_away(results.parent.name, results.name)
        self._delete_removed()
        return removed

    def is_empty(self) -> bool:
        return not any(path.name[0] != "." for path in self.root.iterdir())

    def prepare_restored(self) -> Path:
        self.discard_restored()
        (path := self.root / _RESTORED).mkdir(mode=_PRIVATE)
        return path

    def replace_by_restored(self) -> None:
        """Can be completed by another restore if it is interrupted."""
        (self.root / _REMOVED).mkdir(mode=_PRIVATE, exist_ok=True)
        for path in self.root.iterdir():
            if path.name not in NOT_STORED:
                path.rename(self.root / _REMOVED / secrets.token_hex(16))
        for path in (self.root / _RESTORED).iterdir():
            path.rename(self.root / path.name)
        (self.root / _RESTORED).rmdir()
        self._delete_removed()

    def discard_restored(self) -> None:
        with walking.open_directory(self.root) as at, suppress(FileNotFoundError):
            walking.remove_tree(at, _RESTORED)

    def _move_away(self, owner: str, name: str) -> bool:
        """Makes folders inaccessible at once; returns whether there was any."""
        moved = False
        (self.root / _REMOVED).mkdir(mode=_PRIVATE, exist_ok=True)
        for above in (self.root, self.root / _RESULTS, self.root / _UPLOADS):
            path = above / owner / name
            with suppress(FileNotFoundError):
                path.chmod(_PRIVATE)  # moving a directory needs the right to write in it
                path.rename(self.root / _REMOVED / secrets.token_hex(16))
                moved = True
            with suppress(OSError):  # not empty
                (above / owner).rmdir()
        return moved

    def _delete_removed(self) -> None:
        with walking.open_directory(self.root / _REMOVED) as at:
            for name in os.listdir(at):
                with suppress(FileNotFoundError):  # removed by another thread
                    walking.remove_tree(at, name)


def is_restorable(names: Sequence[str], *, is_directory: bool, is_link: bool) -> bool:
    """Whether a backup may have an entry at this path. The store follows links above and in its own directories."""
    if names[0] in NOT_STORED or (names[0] in (_RESULTS, _UPLOADS) and len(names) == 1 and not is_directory):
        return False
    return not is_link or (names[0][0] != "." and len(names) > 2)


def _check_name(name: str) -> None:
    if not _NAME.fullmatch(name) or not name.strip("."):
        raise FolderInvalid
