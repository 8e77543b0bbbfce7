"""Decides in which directories of the user a conversation may work, and opens them.

Paths are opened name by name without following links, and open directories are compared by identity, so that nothing
can be replaced between the check and the use.
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
from workspace.files.walking import Identity, get_identity

GIT = ".git"
_CHECKOUT = Path(__file__).parents[2]
_SYSTEM_DIRECTORIES = ("/proc", "/sys", "/dev", "/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/etc")
# Parents may be unreadable.
_PARENT = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_MAX_PATH_BYTES = 4_000
_MAX_ENTRIES = 200_000  # that are searched for repositories


@contextmanager
def open_user_directory(path: str, data_dir: Path | None) -> Iterator[int]:
    """Yields a descriptor; raises a `CallError` if no conversation may work in the directory."""
    if data_dir is None:
        raise DirectoriesOff
    names = path.split("/")[1:]
    is_short = len(path.encode()) <= _MAX_PATH_BYTES
    # The only name of / is empty.
    if not path.startswith("/") or not is_short or not is_storable(path) or {"", ".", ".."} & {*names}:
        raise DirectoryInvalid(path=to_printable(path))
    descriptor, above = _open_path(path, names)
    try:
        why = _find_reason(names, os.fstat(descriptor), above, data_dir) or _find_git_elsewhere(path, descriptor)
        if why:
            raise DirectoryNotUsable(path=to_printable(path), why=why)
        yield descriptor
    finally:
        os.close(descriptor)


def _find_reason(names: Sequence[str], status: os.stat_result, above: Sequence[Identity], data_dir: Path) -> str | None:
    """Returns why a directory cannot be used; `above` are the identities of its parents."""
    identity = get_identity(status)
    inside = {identity, *above}
    if status.st_uid != os.geteuid():
        return "it does not belong to the user who runs ./todo up"
    if is_git_path(names):
        return "it is part of what git keeps"
    if any(chain and chain[-1] in inside for chain in map(_list_identities, _SYSTEM_DIRECTORIES)):
        return "it is a directory of the system"
    if any(identity in (_list_identities(home) or ()) for home in _list_homes()):
        return "it is your home directory, or contains it"
    for private in map(_list_identities, (_CHECKOUT, data_dir)):
        if private is None or identity in private or private[-1] in inside:
            return "it contains this program or its data, or is a part of them"
    return None


def find_obstacle(directory: int) -> str | None:
    """Returns why commands must not write: only the `.git` at the top is protected from them."""
    if not os.access(".", os.W_OK, dir_fd=directory):
        return "it is not writable"
    entries = walking.walk_tree(directory, should_enter=lambda entry: entry.name != GIT, repair=False)
    for number, entry in enumerate(entries):
        if entry.name == "HEAD" and {"objects", "refs"} <= {*os.listdir(entry.directory)}:
            return f"it contains a git directory, {to_printable('/'.join(entry.parents) or '.', max_length=200)}"
        if entry.name.casefold() == GIT and entry.parents:
            return f"it contains another git repository, {to_printable('/'.join(entry.parents), max_length=200)}"
        if number > _MAX_ENTRIES:
            return f"it contains more than {_MAX_ENTRIES:,} files"
    return None


def _find_git_elsewhere(path: str, directory: int) -> str | None:
    """Returns why git's data would be writable under another name than `.git`."""
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
        target = os.fsdecode(file.read(_MAX_PATH_BYTES).partition(b"gitdir:")[2].strip())
    real = os.path.realpath(os.path.join(path, target))
    return f"its {GIT} leads to a directory inside it" if f"{real}/".startswith(f"{path}/") else None


@contextmanager
def keep_git_directory(directory: int) -> Iterator[None]:
    """Keeps an empty `.git` in a directory without one, so that a command cannot create a repository."""
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


def _open_path(path: str, names: Sequence[str]) -> tuple[int, list[Identity]]:
    """Returns a descriptor and the identities of the directories above it, from the root on."""
    at, above = os.open("/", _PARENT), list[Identity]()
    try:
        for place, name in enumerate(names, 1):
            above.append(get_identity(os.fstat(at)))
            below = os.open(name, DIRECTORY if place == len(names) else _PARENT, dir_fd=at)
            os.close(at)
            at = below
    except OSError as error:
        os.close(at)
        why = f"it cannot be opened without following links ({error.strerror})"
        raise DirectoryNotUsable(path=to_printable(path), why=why) from None
    return at, above


def _list_identities(path: str | Path) -> list[Identity] | None:
    """Returns the identities of a real directory and those above it, from the root on."""
    real = Path(os.path.realpath(path))
    try:
        return [get_identity(directory.stat()) for directory in (*reversed(real.parents), real)]
    except OSError:
        return None


def _list_homes() -> set[str]:
    homes = {os.environ.get("HOME") or ""}
    with suppress(KeyError):
        homes.add(pwd.getpwuid(os.geteuid()).pw_dir)
    return homes - {""}


def is_git_path(names: Sequence[str]) -> bool:
    return any(name.casefold() == GIT for name in names)
