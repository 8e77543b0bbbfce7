"""The sandbox of bubblewrap, with its own namespaces."""

import os
import platform
import re
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from workspace.confinement import base, call_filter
from workspace.confinement.base import (
    Directory,
    DirectoryAccess,
    Launch,
    Name,
    create_environment,
    create_launcher_command,
    find_private_python,
    open_launcher,
    prefer_kill,
)
from workspace.confinement.call_filter import UNKNOWN_PROCESSOR

FOLDER, _HOME, _TEMPORARY = "/workspace", "/tmp/home", "/tmp"  # noqa: S108
_MEMORY_BYTES = 64 * 1024**2  # of each directory in memory


def _read_kernel_version() -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"[0-9]+", platform.release())[:2])


@dataclass(frozen=True)
class Bubblewrap:
    name: ClassVar[Name] = "bubblewrap"
    has_separate_count: ClassVar[bool] = _read_kernel_version() >= (5, 14)

    directories: ClassVar[DirectoryAccess] = "write"

    program: str
    calls: bytes
    calls_in_directory: bytes

    @contextmanager
    def launch(
        self, folder: Path, argv: Sequence[str], *, directory: Directory | None = None, readable: Sequence[str] = ()
    ) -> Iterator[Launch]:
        base.check_folder(folder)
        python = str(own / "bin/python3") if (own := find_private_python()) else "python3"
        calls = self.calls if directory is None else self.calls_in_directory
        with open_launcher(calls, folder=FOLDER) as script, _open_git(directory) as git:
            mounts = ["--bind", str(folder), FOLDER] if directory is None else _list_mounts(directory, git)
            options = [*_list_arguments(readable), *mounts, "--chdir", FOLDER, "--remount-ro", "/"]
            whole = [self.program, *options, "--", *create_launcher_command(python, script, argv)]
            variables = create_environment(_HOME, TMPDIR=_TEMPORARY)
            descriptors = (script, *([directory.descriptor] if directory else []), *([git] if git else []))
            yield Launch(prefer_kill(whole), variables, descriptors=descriptors, ends_descendants=True)


def find_bubblewrap() -> Bubblewrap | str:
    if (program := shutil.which("bwrap")) is None:
        return "the program bwrap is missing: install bubblewrap"
    if problem := base.find_exposure():
        return problem
    calls, in_directory = call_filter.create_namespace_filter(), call_filter.create_namespace_filter(has_directory=True)
    return Bubblewrap(program, calls, in_directory) if calls and in_directory else UNKNOWN_PROCESSOR


@contextmanager
def _open_git(directory: Directory | None) -> Iterator[int | None]:
    if directory is None or not directory.is_writable:
        yield None
        return
    descriptor = os.open(".git", os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=directory.descriptor)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _list_mounts(directory: Directory, git: int | None) -> list[str]:
    """Mounts descriptors, because a path may change. A mount point cannot be moved or removed."""
    if git is None:
        return ["--ro-bind-fd", str(directory.descriptor), FOLDER]
    return ["--bind-fd", str(directory.descriptor), FOLDER, "--ro-bind-fd", str(git), f"{FOLDER}/.git"]


def _list_arguments(readable: Sequence[str]) -> Iterator[str]:
    """The root is in memory and read-only; a second user namespace below it forbids more."""
    yield from ("--unshare-all", "--unshare-user", "--disable-userns", "--die-with-parent", "--new-session")
    yield from ("--cap-drop", "ALL", "--hostname", "workspace")
    for path in base.PROGRAMS:
        if os.path.islink(path):
            yield from ("--symlink", os.readlink(path), path)
        else:
            yield from ("--ro-bind-try", path, path)
    for path in base.SETTINGS:
        yield from ("--ro-bind-try", path, path)
    if python := find_private_python():
        yield from ("--ro-bind", str(python), str(python))
    # Root could write kernel settings, one of which names a program that the machine runs.
    yield from ("--proc", "/proc", "--remount-ro", "/proc")
    yield from ("--dev", "/dev", "--size", str(_MEMORY_BYTES), "--tmpfs", "/dev/shm", "--remount-ro", "/dev")  # noqa: S108
    yield from ("--size", str(_MEMORY_BYTES), "--tmpfs", _TEMPORARY, "--dir", _HOME)
    for path in readable:
        yield from ("--ro-bind-try", path, path)
