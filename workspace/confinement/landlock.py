"""The sandbox of Landlock and a system call filter, for containers, most of which forbid namespaces.

The command runs among the processes of this account, at the folder's real path. The filter rejects what the kernel's
version of Landlock does not cover.
"""

import ctypes
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from workspace.confinement import base, call_filter
from workspace.confinement.base import Confinement, Directory, Launch

_CREATE_RULESET, _VERSION = 444, 1
_READABLE = (*base.PROGRAMS, *base.SETTINGS, "/etc/profile")  # bash -l complains if it cannot read the last


def find_landlock(readable: Sequence[str] = (), *, version: int | None = None) -> Confinement | str:
    """Commands may read the directories `readable` in addition to programs. Tests set an older `version`."""
    if sys.platform != "linux" or (found := _read_version()) < 1:
        return "the kernel has no Landlock"
    if problem := base.find_problem():
        return problem
    # Another account than the one that installed this Python may be unable to run it.
    pythons = (sys.executable, base.find_system_python())
    python = next((python for python in pythons if python and os.access(python, os.X_OK)), None)
    if python is None:
        return "this account cannot run any python3"
    launch = partial(_launch, python, min(version or found, found), readable)
    return Confinement("landlock", launch, directories="read")  # it cannot take a right away again for a subdirectory


@contextmanager
def _launch(
    python: str,
    version: int,
    readable: Sequence[str],
    folder: Path,
    argv: Sequence[str],
    directory: Directory | None,
) -> Iterator[Launch]:
    """`version` is Landlock's: 2 is Linux 5.19, 3 is 6.2, 4 is 6.7, 5 is 6.10, 6 is 6.12."""
    base.check_folder(folder)
    real = os.path.realpath(folder)
    temporary = os.path.join(real, ".todo-tmp")
    opened = f"/proc/self/fd/{directory.descriptor}" if directory else None
    with base.open_launcher(
        python,
        argv,
        folder=real,
        filter_program=call_filter.create_landlock_filter(version),
        landlock_version=version,
        readable=tuple(path for path in (*_READABLE, *readable, base.find_private_python(), opened) if path),
        temporary=temporary,
    ) as (command, script):
        above = os.path.dirname(directory.path if directory else real)
        variables = base.create_environment(
            f"{temporary}/home",
            PATH=f"{temporary}/bin:{base.PATH}",
            TMPDIR=temporary,
            GIT_CEILING_DIRECTORIES=above,
        )
        descriptors = [script, directory.descriptor] if directory else [script]
        yield Launch(command, variables, opened or real, descriptors, ends_descendants=True)


def _read_version() -> int:
    return ctypes.CDLL(None, use_errno=True).syscall(_CREATE_RULESET, None, 0, _VERSION)
