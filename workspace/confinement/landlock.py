"""The sandbox of Landlock and a system call filter, for containers, most of which forbid namespaces.

The command runs among the processes of this account, at the folder's real path. The filter rejects what the kernel's
version of Landlock does not cover.
"""

import ctypes
import os
import sys
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
    find_system_python,
    open_launcher,
)
from workspace.confinement.call_filter import UNKNOWN_PROCESSOR

_CREATE_RULESET, _VERSION = 444, 1
# bash -l complains if it cannot read the file.
_SETTINGS = (*base.SETTINGS, "/etc/profile")


@dataclass(frozen=True)
class Landlock:
    name: ClassVar[Name] = "landlock"
    has_separate_count: ClassVar[bool] = False
    directories: ClassVar[DirectoryAccess] = "read"  # it cannot take a right away again for a part of a directory

    python: str
    abi: int
    """Landlock's version: 2 is Linux 5.19, 3 is 6.2, 4 is 6.7, 5 is 6.10, 6 is 6.12."""
    calls: bytes

    @contextmanager
    def launch(
        self, folder: Path, argv: Sequence[str], *, directory: Directory | None = None, readable: Sequence[str] = ()
    ) -> Iterator[Launch]:
        base.check_folder(folder)
        python = find_private_python()
        real = os.path.realpath(folder)
        temporary = os.path.join(real, ".todo-tmp")
        opened = f"/proc/self/fd/{directory.descriptor}" if directory else None
        with open_launcher(
            self.calls,
            folder=real,
            landlock_version=self.abi,
            readable=[
                *(*base.PROGRAMS, *_SETTINGS, *readable),
                *([str(python)] if python else []),
                *([opened] if opened else []),
            ],
            devices=base.DEVICES,
            temporary=temporary,
        ) as script:
            above = os.path.dirname(directory.path if directory else real)
            variables = create_environment(f"{temporary}/home", TMPDIR=temporary, GIT_CEILING_DIRECTORIES=above)
            argv = create_launcher_command(self.python, script, argv)
            descriptors = (script, *([directory.descriptor] if directory else []))
            yield Launch(argv, variables, opened or real, descriptors=descriptors, ends_descendants=True)


def find_landlock(abi: int | None = None) -> Landlock | str:
    """Returns why it cannot be used, or the sandbox; tests set `abi` to try older versions of Landlock."""
    if sys.platform != "linux" or (found := _read_version()) < 1:
        return "the kernel has no Landlock"
    if problem := base.find_exposure():
        return problem
    # Another account than the one that installed this Python may be unable to run it.
    pythons = (sys.executable, find_system_python())
    python = next((python for python in pythons if python and os.access(python, os.X_OK)), None)
    if python is None:
        return "this account cannot run any python3"
    abi = min(abi or found, found)
    return Landlock(python, abi, calls) if (calls := call_filter.create_landlock_filter(abi)) else UNKNOWN_PROCESSOR


def _read_version() -> int:
    return ctypes.CDLL(None, use_errno=True).syscall(_CREATE_RULESET, None, 0, _VERSION)
