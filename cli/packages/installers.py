"""pip and uv as child processes: what they write goes to a log, and how far they are to the terminal."""

import os
import re
import select
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Protocol, TextIO

from cli import terminal

QUIET_PIP = {"PIP_DISABLE_PIP_VERSION_CHECK": "1", "PIP_ROOT_USER_ACTION": "ignore", "PIP_NO_INPUT": "1"}
LOOK_SECONDS = 0.5
LOOKED_AT = re.compile(r"(?:Collecting|Processing) .*\(line (\d+)\)")  # of the lock
NAMES = re.compile(r"^([A-Za-z0-9][\w.-]*)==", re.MULTILINE)


class Failed(Exception):
    """The command did not succeed; its log says why."""


class Progress(Protocol):
    def read(self, line: str) -> None:
        """A line that the command wrote."""
        ...

    def words(self, seconds: float) -> str:
        """How far it is after so long."""
        ...


class Quiet:
    """For a step of a few seconds."""

    def __init__(self, words: str) -> None:
        self._words = words

    def read(self, line: str) -> None:
        pass

    def words(self, seconds: float) -> str:
        return self._words


class PipProgress:
    """pip names each package when it downloads it, and none while it installs them: then their directories tell."""

    DOWNLOADS = 0.6  # of the whole time

    def __init__(self, lock: str, environment: Path) -> None:
        self.locked = set(map(_normal, NAMES.findall(lock)))
        self._environment = environment
        self._total = len(self.locked)
        self._seen = set[str]()
        self._there: int | None = None  # before the first was installed

    def read(self, line: str) -> None:
        if line.startswith("Ignoring ") or line.startswith("Requirement already satisfied"):  # of another platform
            self._total -= 1
        elif found := LOOKED_AT.match(line):
            self._seen.add(found[1])
        elif line.startswith("Installing collected packages"):
            self._total = len(self._seen)
            self._there = len(self.installed())

    def installed(self) -> set[str]:
        """The names of the packages that are there."""
        found = self._environment.glob("lib/python*/site-packages/*.dist-info")
        return {_normal(path.name.partition("-")[0]) for path in found}

    def words(self, seconds: float) -> str:
        if not self._seen:
            return "preparing"
        if self._there is None:
            done, step = len(self._seen) - 1, "downloading"
            share = self.DOWNLOADS * done / self._total
        else:
            done, step = min(len(self.installed()) - self._there, self._total), "installing"
            share = self.DOWNLOADS + (1 - self.DOWNLOADS) * done / self._total
        return f"{step} {self._total} packages, {done} done{_left(seconds, share)}"


class UvProgress:
    """Reads uv's lines: how many packages there are, and when all are downloaded."""

    def __init__(self) -> None:
        self._total = ""
        self._step = "looking up"

    def read(self, line: str) -> None:
        if found := re.match(r"(Resolved|Prepared) (\d+) package", line):
            step, count = found.groups()
            self._total = self._total or count
            self._step = {"Resolved": "downloading", "Prepared": "installing"}[step]

    def words(self, seconds: float) -> str:
        return f"{self._step} {self._total or 'the'} packages"


class Run:
    """Runs commands one after the other; they inherit the descriptor `guard`."""

    def __init__(self, log: TextIO, guard: int) -> None:
        self._log = log
        self._guard = guard

    def __call__(self, command: list[str], progress: Progress, stdin: str = "") -> None:
        """Raises `Failed` when the command did not succeed."""
        with tempfile.TemporaryFile("w+") as file, terminal.Progress() as shown:
            file.write(stdin)
            file.seek(0)
            began = time.monotonic()
            with subprocess.Popen(
                command,
                cwd="/",
                env=os.environ | QUIET_PIP,
                stdin=file,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                pass_fds=[self._guard],
            ) as process:
                try:
                    for line in _lines(process):
                        if line:
                            self._log.write(line + "\n")
                            progress.read(line)
                        shown.show(progress.words(time.monotonic() - began))
                finally:
                    process.terminate()
                    self._log.flush()
        if process.returncode:
            raise Failed


def _left(seconds: float, share: float) -> str:
    if share < 0.05 or seconds < 2:
        return ""
    left = seconds * (1 - share) / share
    return f", about {max(5, 5 * round(left / 5))} s left"


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def _lines(process: subprocess.Popen[bytes]) -> Iterator[str]:
    """What it writes, and an empty line for every half second without anything."""
    assert process.stdout
    output = process.stdout.fileno()
    rest = b""
    while True:
        readable, _, _ = select.select([output], [], [], LOOK_SECONDS)
        if not readable:
            yield ""
            continue
        if not (chunk := os.read(output, 65_536)):
            break
        *lines, rest = (rest + chunk).split(b"\n")
        yield from (line.decode(errors="replace").strip() for line in lines)
    process.wait()
