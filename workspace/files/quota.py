"""How much a folder may hold, and all folders of a person together."""

import os
import sys
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from workspace.files import walking
from workspace.refusals import FolderFull, PersonFull, TooDeep

DEEPEST = 64  # directories; each is a descriptor while it is counted


class Amount(NamedTuple):
    """Everything that is in a folder counts as a file: directories, links and FIFOs, too."""

    bytes: int
    files: int


@dataclass(frozen=True)
class Quota:
    """`of_person`: what all folders of a person may hold; without it as much as they like."""

    bytes: int
    files: int
    of_person: Amount | None = None
    _known: dict[Path, dict[str, Amount]] = field(default_factory=dict[Path, dict[str, Amount]], compare=False)
    """What folders held when they were last looked at: before each write, while a command runs and after it."""

    def check(self, folder: Path, *, more_bytes: int = 0, more_files: int = 0) -> None:
        """Raises a `Refusal` where the folder, or its person, has more than it may, or would with that much more.

        Who writes then is the only one of their person's that does: else two could take the same room.
        """
        try:
            count = _Count(Amount(self.bytes, self.files), more_bytes, more_files)
            with walking.opened(folder) as descriptor:
                count.add(descriptor, depth=1)
        except _Over as over:
            raise FolderFull(most=getattr(self, over.what), what=over.what) from None
        if self.of_person is None:
            return
        try:
            try:
                self._check_person(folder, count, self.of_person)
            except _Over:  # by what was known of the others, which may be less by now
                self._check_person(folder, count, self.of_person, anew=True)
        except _Over as over:
            raise PersonFull(most=getattr(self.of_person, over.what), what=over.what) from None

    def _check_person(self, folder: Path, count: "_Count", most: Amount, *, anew: bool = False) -> None:
        """Several threads may be at it: each changes what is known in its place."""
        known = self._known.setdefault(folder.parent, {})
        known[folder.name] = Amount(count.bytes, count.files)
        total = _Count(most, count.bytes, count.files)
        names = os.listdir(folder.parent)
        for name in names:
            if name == folder.name:
                continue
            if anew or name not in known:
                known[name] = self._held(folder.parent / name, most)
            total.take(*known[name])
        for removed in {*known} - {*names}:
            known.pop(removed, None)

    def _held(self, folder: Path, most: Amount) -> Amount:
        """No further than matters; one that is nested too deeply to be counted counts as a full one."""
        count = _Count(most)
        try:
            with suppress(_Over, FileNotFoundError), walking.opened(folder) as descriptor:
                count.add(descriptor, depth=1)
        except TooDeep:
            return Amount(self.bytes, self.files)
        return Amount(count.bytes, count.files)


def held(folder: Path) -> Amount | None:
    """All of it, however much; None for one that is nested too deeply to be counted."""
    count = _Count(Amount(sys.maxsize, sys.maxsize))
    try:
        with walking.opened(folder) as descriptor:
            count.add(descriptor, depth=1)
    except TooDeep:
        return None
    return Amount(count.bytes, count.files)


class _Over(Exception):
    def __init__(self, what: str) -> None:
        super().__init__(what)
        self.what = what


@dataclass
class _Count:
    """Ends as soon as it is too much: nobody waits until millions of files are counted."""

    most: Amount
    bytes: int = 0
    files: int = 0

    def __post_init__(self) -> None:
        self.take(0, 0)

    def take(self, more_bytes: int, more_files: int) -> None:
        self.bytes += more_bytes
        self.files += more_files
        if self.bytes > self.most.bytes:
            raise _Over("bytes")
        if self.files > self.most.files:
            raise _Over("files")

    def add(self, descriptor: int, *, depth: int) -> None:
        if depth > DEEPEST:
            raise TooDeep(most=DEEPEST)
        with os.scandir(descriptor) as found:
            for entry in found:
                try:
                    is_directory = walking.is_directory(entry)
                    size = entry.stat(follow_symlinks=False).st_size
                except FileNotFoundError:  # removed meanwhile
                    continue
                self.take(size, 1)
                if is_directory:
                    self._add_below(descriptor, entry.name, depth)

    def _add_below(self, descriptor: int, name: str, depth: int) -> None:
        try:
            with walking.entered(descriptor, name) as below:
                self.add(below, depth=depth + 1)
        except (FileNotFoundError, NotADirectoryError):  # removed or replaced meanwhile
            return
