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

from workspace.confinement import call_filter, places
from workspace.confinement.call_filter import UNKNOWN_PROCESSOR
from workspace.confinement.confinement import Launch, Name, environment

HOME = "/workspace"
_MEMORY_BYTES = 64 * 1024**2  # of each place that lies in memory


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
        places.check(folder)
        with call_filter.piped(self.calls) as calls:
            arguments = [*_arguments(folder), "--seccomp", str(calls), "--", *argv]
            told = environment(HOME, TMPDIR="/tmp")  # noqa: S108
            yield Launch([self.program, *arguments], told, descriptors=(calls,), ends_all=True)


def bubblewrap() -> Bubblewrap | str:
    """Or why there is none."""
    if (program := shutil.which("bwrap")) is None:
        return "the program bwrap is missing: install bubblewrap"
    if problem := places.problem():
        return problem
    return Bubblewrap(program, calls) if (calls := call_filter.with_namespaces()) else UNKNOWN_PROCESSOR


def _arguments(folder: Path) -> Iterator[str]:
    """Its root is memory that nobody can write to; a second user namespace below it forbids further ones."""
    yield from ("--unshare-all", "--unshare-user", "--disable-userns", "--die-with-parent", "--new-session")
    yield from ("--cap-drop", "ALL", "--hostname", "workspace")
    for place in places.PROGRAMS:
        if os.path.islink(place):
            yield from ("--symlink", os.readlink(place), place)
        else:
            yield from ("--ro-bind-try", place, place)
    for place in places.SETTINGS:
        yield from ("--ro-bind-try", place, place)
    if python := places.own_python():
        yield from ("--ro-bind", str(python), str(python))
    # For root its settings could be written to, the one that names a program for the machine to run among them.
    yield from ("--proc", "/proc", "--remount-ro", "/proc")
    yield from ("--dev", "/dev", "--size", str(_MEMORY_BYTES), "--tmpfs", "/dev/shm", "--remount-ro", "/dev")  # noqa: S108
    yield from ("--size", str(_MEMORY_BYTES), "--tmpfs", "/tmp")  # noqa: S108
    yield from ("--bind", str(folder), HOME, "--chdir", HOME, "--remount-ro", "/")
