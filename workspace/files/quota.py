"""Limits of a folder and of all folders of a user."""

import os
import stat
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from glob import iglob
from pathlib import Path
from typing import NamedTuple

from workspace.errors import FolderFull, FolderUncountable, UserFull
from workspace.files import walking


class Amount(NamedTuple):
    """Bytes as the disk or the file counts them, whichever is more; each entry counts as a file."""

    bytes: int
    files: int

    def plus(self, other: "Amount") -> "Amount":
        return Amount(self.bytes + other.bytes, self.files + other.files)

    def minus(self, other: "Amount") -> "Amount":
        return Amount(self.bytes - other.bytes, self.files - other.files)

    def find_excess(self, most: "Amount") -> str | None:
        return "bytes" if self.bytes > most.bytes else "files" if self.files > most.files else None


NOTHING = Amount(0, 0)


@dataclass(frozen=True)
class Quota:
    """Limits of a folder; `of_user` limits all folders of a user. With `repair`, closed directories are opened."""

    bytes: int
    files: int
    of_user: Amount | None = None
    repair: bool = True
    _amounts: dict[Path, dict[str, Amount]] = field(default_factory=dict[Path, dict[str, Amount]], compare=False)
    """The last amounts, counted before each write, while a command runs and after it; keyed by user's directory."""

    @property
    def of_folder(self) -> Amount:
        return Amount(self.bytes, self.files)

    def extend(self, held: Amount) -> "Quota":
        """Returns the quota of a user's directory, which may grow by the limit of a folder."""
        return Quota(*self.of_folder.plus(held), repair=False)

    def check(self, folder: Path, *, more: Amount = NOTHING) -> Amount:
        """Returns the rest; raises a `CallError` if `more` exceeds it. Callers must serialize writes of a user."""
        used = measure(folder, self.of_folder, repair=self.repair).plus(more)
        if what := used.find_excess(self.of_folder):
            raise FolderFull(most=getattr(self, what), what=what)
        left = self.of_folder.minus(used)
        if self.of_user is None:
            return left
        total = self._measure_user(folder, used)
        if total.find_excess(self.of_user):  # other folders may have become smaller since they were counted
            total = self._measure_user(folder, used, anew=True)
        if what := total.find_excess(self.of_user):
            raise UserFull(most=getattr(self.of_user, what), what=what)
        return Amount(*map(min, left, self.of_user.minus(total)))

    def _measure_user(self, folder: Path, used: Amount, *, anew: bool = False) -> Amount:
        """Is safe in several threads, which write different keys."""
        amounts = self._amounts.setdefault(folder.parent, {})
        amounts[folder.name] = used
        names = os.listdir(folder.parent)
        for name in names:
            if name != folder.name and (anew or name not in amounts):
                try:
                    amounts[name] = measure(folder.parent / name, self.of_folder)
                except FolderUncountable:
                    amounts[name] = self.of_folder
                except FileNotFoundError:  # removed since
                    continue
        for removed in {*amounts} - {*names}:
            amounts.pop(removed, None)
        total = [amounts.get(name, NOTHING) for name in names]
        return Amount(sum(amount.bytes for amount in total), sum(amount.files for amount in total))


def measure(folder: Path, most: Amount | None = None, *, repair: bool = True) -> Amount:
    """Counts a folder, to the end or until it exceeds `most`."""
    total = NOTHING
    try:
        with walking.open_directory(folder, repair=repair) as directory:
            for entry in walking.walk_tree(directory, repair=repair):
                total = total.plus(Amount(_count_bytes(entry.status), 1))
                if most and total.find_excess(most):
                    break
    except walking.DirectoryMoved:
        raise FolderUncountable from None
    return total


def measure_unlinked(folder: Path, processes: Iterable[int]) -> int:
    """Returns the bytes of deleted files that these processes have open on the folder's file system."""
    device, found = folder.stat().st_dev, dict[int, int]()
    for process in processes:
        for descriptor in iglob(f"/proc/{process}/task/*/fd/*"):  # threads can have separate descriptors
            with suppress(OSError):
                status = os.stat(descriptor)
                if not status.st_nlink and status.st_dev == device and stat.S_ISREG(status.st_mode):
                    found[status.st_ino] = _count_bytes(status)
    return sum(found.values())


def _count_bytes(status: os.stat_result) -> int:
    return max(status.st_size, status.st_blocks * 512)
