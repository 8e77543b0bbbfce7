"""Confinement by Landlock and a filter of system calls, for where namespaces are forbidden, as in most containers.

The command stays among the processes of this account, at the folder's real path. What the kernel's version of Landlock
leaves open is closed by the filter.
"""

import ctypes
import os
import shutil
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from workspace.confinement import call_filter, places
from workspace.confinement.call_filter import UNKNOWN_PROCESSOR
from workspace.confinement.confinement import PATH, Launch, Name, environment

_CREATE_RULESET, _VERSION = 444, 1
_ROOT = Path(__file__).parents[2]
# Nothing else is on its path, so that a module in the folder is never taken for one of ours.
_LAUNCH = (
    f"import os, sys; sys.path[:0] = [{str(_ROOT)!r}]\n"
    "from workspace.confinement import launcher; os._exit(launcher.main())"
)
# A login shell reads it, and says so where it is there and cannot.
_SETTINGS = (*places.SETTINGS, "/etc/profile")


@dataclass(frozen=True)
class Landlock:
    name: ClassVar[Name] = "landlock"
    counted_alone: ClassVar[bool] = False

    python: str
    abi: int
    """Landlock's version: 2 is Linux 5.19, 3 is 6.2, 4 is 6.7, 5 is 6.10, 6 is 6.12."""
    calls: bytes

    @contextmanager
    def launch(self, folder: Path, argv: Sequence[str]) -> Iterator[Launch]:
        places.check(folder)
        with call_filter.piped(self.calls) as calls:
            python = places.own_python()
            readable = [*places.PROGRAMS, *_SETTINGS, *([str(python)] if python else [])]
            real = os.path.realpath(folder)
            rules = [str(self.abi), str(calls), real, ":".join(readable), ":".join(places.DEVICES)]
            above, temporary = os.path.dirname(real), os.path.join(real, ".todo-tmp")
            told = environment(real, TMPDIR=temporary, GIT_CEILING_DIRECTORIES=above)
            whole = [self.python, "-I", "-S", "-c", _LAUNCH, *rules, *argv]
            yield Launch(whole, told, real, descriptors=(calls,), ends_all=True)


def landlock(abi: int | None = None) -> Landlock | str:
    """Or why there is none; with an older version than the kernel's, as on a kernel that has that one."""
    if sys.platform != "linux" or (found := _version()) < 1:
        return "the kernel has no Landlock"
    if problem := places.problem():
        return problem
    # This one first; under another account than the one it was installed by, it may be out of reach.
    pythons = (sys.executable, shutil.which("python3", path=PATH))
    python = next((python for python in pythons if python and os.access(python, os.X_OK)), None)
    if python is None:
        return "this account cannot run any python3"
    if not os.access(Path(__file__).with_name("launcher.py"), os.R_OK):
        return "this account cannot read the service's code"
    abi = min(abi or found, found)
    return Landlock(python, abi, calls) if (calls := call_filter.without_namespaces(abi)) else UNKNOWN_PROCESSOR


def _version() -> int:
    return ctypes.CDLL(None, use_errno=True).syscall(_CREATE_RULESET, None, 0, _VERSION)
