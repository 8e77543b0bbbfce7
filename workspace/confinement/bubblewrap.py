"""The sandbox of bubblewrap, with its own namespaces."""

import os
import platform
import re
import shutil
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path

from workspace.confinement import base, call_filter
from workspace.confinement.base import Confinement, Directory, Launch, find_private_python

_FOLDER, _HOME, _TEMPORARY = "/workspace", "/tmp/home", "/tmp"  # noqa: S108
_HOST = "workspace"
_HOSTS = f"127.0.0.1 localhost\n::1 localhost ip6-localhost ip6-loopback\n127.0.1.1 {_HOST}\n"
_MEMORY_BYTES = 64 * 1024**2  # of each directory in memory


def find_bubblewrap(readable: Sequence[str] = ()) -> Confinement | str:
    """Commands may read the directories `readable` in addition to programs."""
    if (program := shutil.which("bwrap")) is None:
        return "the program bwrap is missing: install bubblewrap"
    if problem := base.find_problem():
        return problem
    kernel = [int(part) for part in re.findall(r"[0-9]+", platform.release())[:2]]
    launch = partial(_launch, program, readable)
    return Confinement("bubblewrap", launch, has_separate_count=kernel >= [5, 14], directories="write")


@contextmanager
def _launch(
    program: str, readable: Sequence[str], folder: Path, argv: Sequence[str], directory: Directory | None
) -> Iterator[Launch]:
    base.check_folder(folder)
    python = f"{private}/bin/python3" if (private := find_private_python()) else "python3"
    calls = call_filter.create_namespace_filter(has_directory=directory is not None)
    with (
        base.open_launcher(python, argv, folder=_FOLDER, filter_program=calls) as (command, script),
        _open_mounts(folder, directory) as (mounts, descriptors),
        _open_files() as (files, contents),
    ):
        options = [*_list_arguments(readable), *files, *mounts, "--chdir", _FOLDER, "--remount-ro", "/"]
        variables = base.create_environment(_HOME, TMPDIR=_TEMPORARY)
        whole = base.prefer_kill([program, *options, "--", *command])
        yield Launch(whole, variables, descriptors=(script, *descriptors, *contents), ends_descendants=True)


@contextmanager
def _open_files() -> Iterator[tuple[list[str], list[int]]]:
    """Makes the files in which programs look up their user and localhost; the machine's name its users and hosts."""
    user, group = os.getuid(), os.getgid()
    files = {
        "passwd": f"{base.USER}:x:{user}:{group}::{_HOME}:/bin/sh\nnobody:x:65534:65534::/:/bin/false\n",
        "group": f"{base.USER}:x:{group}:\nnogroup:x:65534:\n",
        "hosts": _HOSTS,
    }
    with ExitStack() as stack:
        arguments: list[str] = []
        descriptors: list[int] = []
        for name, text in files.items():
            descriptors.append(content := os.memfd_create(name))
            stack.callback(os.close, content)
            os.pwrite(content, text.encode(), 0)  # bubblewrap reads it from its position, which stays at the beginning
            arguments += ["--perms", "0444", "--file", str(content), f"/etc/{name}"]
        yield arguments, descriptors


@contextmanager
def _open_mounts(folder: Path, directory: Directory | None) -> Iterator[tuple[list[str], list[int]]]:
    """Mounts open directories, because a path may change. A mount point cannot be moved or removed."""
    if directory is None:
        yield ["--bind", str(folder), _FOLDER], []
    elif not directory.is_writable:
        yield ["--ro-bind-fd", str(directory.descriptor), _FOLDER], [directory.descriptor]
    else:
        git = os.open(".git", os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=directory.descriptor)
        try:
            mounts = ["--bind-fd", str(directory.descriptor), _FOLDER, "--ro-bind-fd", str(git), f"{_FOLDER}/.git"]
            yield mounts, [directory.descriptor, git]
        finally:
            os.close(git)


def _list_arguments(readable: Sequence[str]) -> Iterator[str]:
    """The root is in memory and read-only; a second user namespace below it forbids more."""
    yield from ("--unshare-all", "--unshare-user", "--disable-userns", "--die-with-parent", "--new-session")
    yield from ("--cap-drop", "ALL", "--hostname", _HOST)
    for path in base.PROGRAMS:
        if os.path.islink(path):
            yield from ("--symlink", os.readlink(path), path)
        else:
            yield from ("--ro-bind-try", path, path)
    for path in base.SETTINGS:
        yield from ("--ro-bind-try", path, path)
    if python := find_private_python():
        yield from ("--ro-bind", python, python)
    # Root could write kernel settings, one of which names a program that the machine runs.
    yield from ("--proc", "/proc", "--remount-ro", "/proc")
    yield from ("--dev", "/dev", "--size", str(_MEMORY_BYTES), "--tmpfs", "/dev/shm", "--remount-ro", "/dev")  # noqa: S108
    yield from ("--size", str(_MEMORY_BYTES), "--tmpfs", _TEMPORARY, "--dir", _HOME)
    for path in readable:
        yield from ("--ro-bind-try", path, path)
