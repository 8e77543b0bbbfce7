"""How much a folder may hold."""

import os
from dataclasses import dataclass
from pathlib import Path

from workspace.files import walking
from workspace.refusals import FolderFull, TooDeep

DEEPEST = 64  # directories; each is a descriptor while it is counted


@dataclass(frozen=True)
class Quota:
    """Everything that is in a folder counts as a file: directories, links and FIFOs, too."""

    bytes: int
    files: int

    def check(self, folder: Path, *, more_bytes: int = 0, more_files: int = 0) -> None:
        """Raises a `Refusal` where the folder holds more than it may, or would with that much more."""
        with walking.opened(folder) as descriptor:
            _Count(self, more_bytes, more_files).add(descriptor, depth=1)


@dataclass
class _Count:
    """Ends as soon as it is too much: nobody waits until millions of files are counted."""

    most: Quota
    bytes: int
    files: int

    def __post_init__(self) -> None:
        self._check()

    def add(self, descriptor: int, *, depth: int) -> None:
        if depth > DEEPEST:
            raise TooDeep(most=DEEPEST)
        with os.scandir(descriptor) as found:
            for entry in found:
                try:
                    is_directory = walking.is_directory(entry)
                    self.bytes += entry.stat(follow_symlinks=False).st_size
                except FileNotFoundError:  # removed meanwhile
                    continue
                self.files += 1
                self._check()
                if is_directory:
                    self._add_below(descriptor, entry.name, depth)

    def _add_below(self, descriptor: int, name: str, depth: int) -> None:
        try:
            with walking.entered(descriptor, name) as below:
                self.add(below, depth=depth + 1)
        except (FileNotFoundError, NotADirectoryError):  # removed or replaced meanwhile
            return

    def _check(self) -> None:
        if self.bytes > self.most.bytes:
            raise FolderFull(most=self.most.bytes, what="bytes")
        if self.files > self.most.files:
            raise FolderFull(most=self.most.files, what="files")
