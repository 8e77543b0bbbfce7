"""Confinement by Landlock and a filter of system calls, for where namespaces are forbidden, as in most containers.

The command stays among the processes of this account, at the folder's real path. What the kernel's version of Landlock
leaves open is closed by the filter.
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
    environment,
    launcher_command,
    launcher_script,
    own_python,
    system_python,
)
from workspace.confinement.call_filter import UNKNOWN_PROCESSOR

_CREATE_RULESET, _VERSION = 444, 1
# bash -l reads it, and complains where it is there and cannot.
_SETTINGS = (*base.SETTINGS, "/etc/profile")


@dataclass(frozen=True)
class Landlock:
    name: ClassVar[Name] = "landlock"
    counted_alone: ClassVar[bool] = False
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
        python = own_python()
        real = os.path.realpath(folder)
        temporary = os.path.join(real, ".todo-tmp")
        opened = f"/proc/self/fd/{directory.descriptor}" if directory else None
        with launcher_script(
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
            variables = environment(f"{temporary}/home", TMPDIR=temporary, GIT_CEILING_DIRECTORIES=above)
            argv = launcher_command(self.python, script, argv)
            descriptors = (script, *([directory.descriptor] if directory else []))
            yield Launch(argv, variables, opened or real, descriptors=descriptors, ends_all=True)


def landlock(abi: int | None = None) -> Landlock | str:
    """Or why there is none; with an older version than the kernel's, as on a kernel that has that one."""
    if sys.platform != "linux" or (found := _version()) < 1:
        return "the kernel has no Landlock"
    if problem := base.find_exposure():
        return problem
    # This one first; under another account than the one it was installed by, it may be out of reach.
    pythons = (sys.executable, system_python())
    python = next((python for python in pythons if python and os.access(python, os.X_OK)), None)
    if python is None:
        return "this account cannot run any python3"
    abi = min(abi or found, found)
    return Landlock(python, abi, calls) if (calls := call_filter.without_namespaces(abi)) else UNKNOWN_PROCESSOR


def _version() -> int:
    return ctypes.CDLL(None, use_errno=True).syscall(_CREATE_RULESET, None, 0, _VERSION)
