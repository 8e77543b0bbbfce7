"""Directories of the account's user in which a conversation may work: which ones, and how they are opened.

Each name of the path is opened from the descriptor of the directory above it, and never where it is a symbolic link.
What is checked is the open directory, by identities and not by names, so that nothing can be replaced in between.
"""

import os
import pwd
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from common.text import is_storable
from common.tool_server.errors import to_printable
from workspace.errors import DirectoriesOff, DirectoryInvalid, DirectoryNotUsable
from workspace.files import walking
from workspace.files.opening import DIRECTORY, FILE

GIT = ".git"
_CHECKOUT = Path(__file__).parents[2]
_OF_THE_SYSTEM = ("/proc", "/sys", "/dev", "/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/etc")
# Those above may be closed to reading.
_TO_PASS = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_LONGEST_PATH = 4_000  # bytes
_MOST_ENTRIES = 200_000  # looked at for repositories
Identity = tuple[int, int]


class Directories:
    """The directories that conversations may work in: none without the data directory of `./todo up`."""

    def __init__(self, data_dir: Path | None) -> None:
        self._data_dir = data_dir

    @contextmanager
    def open(self, path: str) -> Iterator[int]:
        """The descriptor of a directory; raises a `CallError` for one in which no conversation may work."""
        if self._data_dir is None:
            raise DirectoriesOff
        names = path.split("/")[1:]
        if not path.startswith("/") or len(path.encode()) > _LONGEST_PATH or not is_storable(path):
            raise DirectoryInvalid(path=to_printable(path))
        if any(name in ("", ".", "..") for name in names):  # also of /, whose only name is empty
            raise DirectoryInvalid(path=to_printable(path))
        descriptor, above = _open(path, names)
        try:
            self._check(path, names, descriptor, above)
            yield descriptor
        finally:
            os.close(descriptor)

    def _check(self, path: str, names: Sequence[str], descriptor: int, above: Sequence[Identity]) -> None:
        """Raises `DirectoryNotUsable`; `above` are the identities of the directories in which it is."""
        if why := self._find_reason(names, os.fstat(descriptor), above) or _find_git_elsewhere(path, descriptor):
            raise DirectoryNotUsable(path=to_printable(path), why=why)

    def _find_reason(self, names: Sequence[str], status: os.stat_result, above: Sequence[Identity]) -> str | None:
        """Why a directory cannot be used; None if it can."""
        assert self._data_dir is not None
        identity = _identity(status)
        inside = {identity, *above}
        if status.st_uid != os.geteuid():
            return "it does not belong to the user who runs ./todo up"
        if leads_to_git(names):
            return "it is part of what git keeps"
        if any(chain and chain[-1] in inside for chain in map(_chain, _OF_THE_SYSTEM)):
            return "it is a directory of the system"
        if any(identity in (_chain(home) or ()) for home in _homes()):
            return "it is your home directory, or contains it"
        for private in map(_chain, (_CHECKOUT, self._data_dir)):
            if private is None or identity in private or private[-1] in inside:
                return "it contains this program or its data, or is a part of them"
        return None


def find_obstacle(directory: int) -> str | None:
    """Why programs must not write in a directory: another repository in it, whose hooks they could change.

    Only the repository of the directory itself is protected while they run.
    """
    if not os.access(".", os.W_OK, dir_fd=directory):
        return "it is not writable"
    entries = walking.tree(directory, entered_if=lambda entry: entry.name != GIT, repair=False)
    for number, entry in enumerate(entries):
        if entry.name == "HEAD" and all(_is_there(name, entry.directory) for name in ("objects", "refs")):
            return f"it contains a git directory, {to_printable('/'.join(entry.parents) or '.', max_length=200)}"
        if entry.name.casefold() == GIT and entry.parents:
            return f"it contains another git repository, {to_printable('/'.join(entry.parents), max_length=200)}"
        if number > _MOST_ENTRIES:
            return f"it contains more than {_MOST_ENTRIES:,} files"
    return None


def _find_git_elsewhere(path: str, directory: int) -> str | None:
    """Why what git keeps of a directory could be changed there under another name than `.git`; None if it could not."""
    try:
        status = os.stat(GIT, dir_fd=directory, follow_symlinks=False)
        if stat.S_ISDIR(status.st_mode):
            return None
        if not stat.S_ISREG(status.st_mode):
            return f"its {GIT} is neither a directory nor a file"
        descriptor = os.open(GIT, FILE, dir_fd=directory)
    except FileNotFoundError:
        return None
    with os.fdopen(descriptor, "rb") as file:
        target = os.fsdecode(file.read(_LONGEST_PATH).partition(b"gitdir:")[2].strip())
    real = os.path.realpath(os.path.join(path, target))
    return f"its {GIT} leads to a directory inside it" if f"{real}/".startswith(f"{path}/") else None


def _is_there(name: str, directory: int) -> bool:
    with suppress(OSError):
        os.stat(name, dir_fd=directory, follow_symlinks=False)
        return True
    return False


@contextmanager
def with_git(directory: int) -> Iterator[None]:
    """Keeps an empty `.git` in a directory that has none while a command runs, so that the command cannot make one."""
    is_new = False
    with suppress(FileExistsError):
        os.mkdir(GIT, dir_fd=directory)
        is_new = True
    try:
        yield
    finally:
        if is_new:
            with suppress(OSError):  # the user has made a repository
                os.rmdir(GIT, dir_fd=directory)


def _open(path: str, names: Sequence[str]) -> tuple[int, list[Identity]]:
    """A descriptor, and the identities of the directories above it, from the root on."""
    at, above = os.open("/", _TO_PASS), list[Identity]()
    try:
        for place, name in enumerate(names, 1):
            above.append(_identity(os.fstat(at)))
            below = os.open(name, DIRECTORY if place == len(names) else _TO_PASS, dir_fd=at)
            os.close(at)
            at = below
    except OSError as error:
        os.close(at)
        why = f"it cannot be opened without following links ({error.strerror})"
        raise DirectoryNotUsable(path=to_printable(path), why=why) from None
    return at, above


def _chain(path: str | Path) -> list[Identity] | None:
    """The identities of a real directory and those above it, from the root on; None where there is none."""
    real = Path(os.path.realpath(path))
    try:
        return [_identity(directory.stat()) for directory in (*reversed(real.parents), real)]
    except OSError:
        return None


def _identity(status: os.stat_result) -> Identity:
    return status.st_dev, status.st_ino


def _homes() -> set[str]:
    """The account's home directory, by its entry and by the environment."""
    homes = {os.environ.get("HOME") or ""}
    with suppress(KeyError):
        homes.add(pwd.getpwuid(os.geteuid()).pw_dir)
    return homes - {""}


def leads_to_git(names: Sequence[str]) -> bool:
    """Whether a path is of what git keeps, in any repository."""
    return any(name.casefold() == GIT for name in names)
