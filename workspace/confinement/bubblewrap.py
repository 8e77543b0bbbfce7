"""Confinement by bubblewrap: namespaces of its own for files, processes, network, users and what else there is."""

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
    Launch,
    Name,
    ended_first,
    environment,
    launcher_command,
    launcher_script,
    own_python,
)
from workspace.confinement.call_filter import UNKNOWN_PROCESSOR

FOLDER, _HOME, _TEMPORARY = "/workspace", "/tmp/home", "/tmp"  # noqa: S108
_MEMORY_BYTES = 64 * 1024**2  # of each directory that is in memory


def _kernel() -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"[0-9]+", platform.release())[:2])


@dataclass(frozen=True)
class Bubblewrap:
    name: ClassVar[Name] = "bubblewrap"
    counted_alone: ClassVar[bool] = _kernel() >= (5, 14)

    program: str
    calls: bytes

    @contextmanager
    def launch(self, folder: Path, argv: Sequence[str]) -> Iterator[Launch]:
        base.check_folder(folder)
        python = str(own / "bin/python3") if (own := own_python()) else "python3"
        with launcher_script(self.calls, folder=FOLDER) as script:
            whole = [self.program, *_arguments(folder), "--", *launcher_command(python, script, argv)]
            variables = environment(_HOME, TMPDIR=_TEMPORARY)
            yield Launch(ended_first(whole), variables, descriptors=(script,), ends_all=True)


def bubblewrap() -> Bubblewrap | str:
    """Or why there is none."""
    if (program := shutil.which("bwrap")) is None:
        return "the program bwrap is missing: install bubblewrap"
    if problem := base.find_exposure():
        return problem
    return Bubblewrap(program, calls) if (calls := call_filter.with_namespaces()) else UNKNOWN_PROCESSOR


def _arguments(folder: Path) -> Iterator[str]:
    """The root is in memory and read-only; a second user namespace below it forbids further ones."""
    yield from ("--unshare-all", "--unshare-user", "--disable-userns", "--die-with-parent", "--new-session")
    yield from ("--cap-drop", "ALL", "--hostname", "workspace")
    for path in base.PROGRAMS:
        if os.path.islink(path):
            yield from ("--symlink", os.readlink(path), path)
        else:
            yield from ("--ro-bind-try", path, path)
    for path in base.SETTINGS:
        yield from ("--ro-bind-try", path, path)
    if python := own_python():
        yield from ("--ro-bind", str(python), str(python))
    # For root its settings could be written to, the one that names a program for the machine to run among them.
    yield from ("--proc", "/proc", "--remount-ro", "/proc")
    yield from ("--dev", "/dev", "--size", str(_MEMORY_BYTES), "--tmpfs", "/dev/shm", "--remount-ro", "/dev")  # noqa: S108
    yield from ("--size", str(_MEMORY_BYTES), "--tmpfs", _TEMPORARY, "--dir", _HOME)
    yield from ("--bind", str(folder), FOLDER, "--chdir", FOLDER, "--remount-ro", "/")
