"""The folders of all people: where they are, and one of them opened."""

import hashlib
import os
import re
import secrets
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from workspace.files import walking
from workspace.files.quota import Quota
from workspace.refusals import FolderInvalid

_NAME = re.compile(r"[A-Za-z0-9._-]{1,100}")
_PERSON = re.compile(r"[0-9a-f]{32}")
_ONLY_OURS = 0o700
# Beside the folders, where no command sees them: names that no person's hash can have.
_ANSWERS, _INCOMING, _REMOVED, _UPLOADS = ".answers", ".incoming", ".removed", ".uploads"


class Answer(NamedTuple):
    """What a tool answers."""

    text: str
    """For the model."""
    details: Mapping[str, Any]
    """For the person."""


@dataclass(frozen=True)
class Folder:
    """An open folder of a person's."""

    path: Path
    descriptor: int
    incoming: int
    """Where a file is written before it gets its name, on the same file system."""
    answers: Path
    uploads: Path
    """What is known of the files that its person put in; there is no such directory before the first."""
    quota: Quota


def hash_of(person: str) -> str:
    """Ids of providers contain slashes, and say who it is."""
    return hashlib.sha256(person.encode()).hexdigest()[:32]


class StoreUnusable(Exception):
    """With the sentence why."""


class Store:
    """All folders, in a directory that is its own."""

    def __init__(self, root: Path, quota: Quota) -> None:
        self.root = root
        self.quota = quota

    def prepare(self) -> None:
        """Check that the directory is ours, and clear away what a process that was killed left half done."""
        try:
            found = self.root.stat()
        except OSError as error:
            raise StoreUnusable(f"WORKSPACE_DIR {self.root} cannot be used: {error.strerror}.") from None
        ours = stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid() and not stat.S_IMODE(found.st_mode) & 0o077
        if not ours:
            raise StoreUnusable(
                f"WORKSPACE_DIR {self.root} must be a directory that the workspace's account owns and that nobody else "
                f"may enter: chown {os.geteuid()} and chmod 700."
            )
        for name in (_ANSWERS, _INCOMING, _REMOVED, _UPLOADS):
            (self.root / name).mkdir(mode=_ONLY_OURS, exist_ok=True)
        for half_written in (self.root / _INCOMING).iterdir():
            half_written.unlink()
        self._empty_removed()

    def paths(self, person: str, name: str) -> tuple[Path, Path]:
        """Where a folder is, which is made where it is missing and used from now on, and its answers."""
        _check(name)
        owner = hash_of(person)
        path, answers = self.root / owner / name, self.root / _ANSWERS / owner / name
        for directory in (path.parent, path, answers.parent, answers):
            with suppress(FileExistsError):
                directory.mkdir(mode=_ONLY_OURS)
        os.utime(answers)
        return path, answers

    @contextmanager
    def folder(self, person: str, name: str) -> Iterator[Folder]:
        """The same, opened."""
        path, answers = self.paths(person, name)
        uploads = self.root / _UPLOADS / path.parent.name / name
        with walking.opened(path) as descriptor, walking.opened(self.root / _INCOMING) as incoming:
            yield Folder(path, descriptor, incoming, answers, uploads, self.quota)

    @contextmanager
    def existing(self, person: str, name: str) -> Iterator[Folder | None]:
        """The same, or None where there is none; it is made by nobody who only looks."""
        _check(name)
        if (self.root / hash_of(person) / name).is_dir():
            with self.folder(person, name) as folder:
                yield folder
        else:
            yield None

    def names(self, person: str) -> list[str]:
        """Of a person's folders."""
        path = self.root / hash_of(person)
        return sorted(os.listdir(path)) if path.is_dir() else []

    def remove(self, person: str, name: str | None = None) -> bool:
        """Remove a folder, or all of a person's, and tell whether there was any."""
        if name is not None:
            _check(name)
        return self._remove(hash_of(person), name or "")

    def remove_unused(self, before: float) -> int:
        """Remove the folders that were used before that time last (Unix time), and tell how many."""
        removed = 0
        for answers in (self.root / _ANSWERS).glob("*/*"):
            with suppress(FileNotFoundError):  # removed meanwhile
                if answers.stat().st_mtime < before:
                    removed += self._remove(answers.parent.name, answers.name)
        return removed

    def _remove(self, owner: str, name: str) -> bool:
        found = False
        (self.root / _REMOVED).mkdir(mode=_ONLY_OURS, exist_ok=True)
        for above in (self.root, self.root / _ANSWERS, self.root / _UPLOADS):
            place = above / owner / name
            with suppress(FileNotFoundError):
                place.chmod(_ONLY_OURS)  # or it could not be moved
                place.rename(self.root / _REMOVED / secrets.token_hex(16))  # at once gone for everybody
                found = True
        self._empty_removed()
        return found

    def _empty_removed(self) -> None:
        with walking.opened(self.root / _REMOVED) as at:
            for name in os.listdir(at):
                with suppress(FileNotFoundError):  # another thread is at it
                    walking.remove(at, name)


def _check(name: str) -> None:
    if not _NAME.fullmatch(name) or not name.strip("."):
        raise FolderInvalid
