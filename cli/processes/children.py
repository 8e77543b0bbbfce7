import contextlib
import ctypes
import os
import shutil
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Self

PR_SET_PDEATHSIG = 1
GRACE_SECONDS = 5
MAX_LOG_BYTES = 10 * 1024 * 1024  # of one file; as many are kept of what was before


def die_with_parent(number: signal.Signals) -> Callable[[], None] | None:
    """A Popen `preexec_fn`: on Linux the kernel sends `number` when the thread that starts the child ends."""
    if sys.platform != "linux":
        return None
    prctl = ctypes.CDLL(None).prctl
    parent = os.getpid()

    def ask_kernel() -> None:
        prctl(PR_SET_PDEATHSIG, int(number))
        if os.getppid() != parent:  # it died before it was asked
            os._exit(1)

    return ask_kernel


def create_log(path: Path) -> Path:
    """Creates an empty log; the one of the run before gets the suffix `.old`."""
    with contextlib.suppress(FileNotFoundError):
        path.replace(path.with_name(path.name + ".old"))
    path.touch()
    return path


def rotate_large_logs(directory: Path) -> None:
    """Moves what a log has beyond `MAX_LOG_BYTES` into the file with the suffix `.old`, at most as many bytes.

    The content is copied and the file emptied: its writers, of which there may be several, and which include
    PostgreSQL, append to it and need to know nothing. A line that is written just then may be lost.
    """
    for path in directory.glob("*.log"):
        with contextlib.suppress(OSError):  # the disk may be full: the next look tries again
            if path.stat().st_size > MAX_LOG_BYTES:
                _rotate(path)


def _rotate(path: Path) -> None:
    old, fresh = path.with_name(f"{path.name}.old"), path.with_name(f"{path.name}.new")
    try:
        with path.open("r+b") as log, fresh.open("wb") as copy:
            fresh.chmod(path.stat().st_mode & 0o777)
            log.seek(-MAX_LOG_BYTES, os.SEEK_END)
            shutil.copyfileobj(log, copy)
            log.truncate(0)
        fresh.replace(old)
    finally:
        fresh.unlink(missing_ok=True)


def read_last_lines(path: Path, count: int = 12) -> str:
    try:
        with path.open("rb") as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - 16_384))
            text = file.read().decode(errors="replace")
    except FileNotFoundError:
        return ""
    return "\n".join(text.splitlines()[-count:])


class Reaper:
    """A second process that ends process groups after this one was killed and could not do it itself.

    The kernel tells direct children that their parent died, but not the children of those.
    """

    def __enter__(self) -> Self:
        reader, self._writer = os.pipe()
        self._pid = os.fork()
        if self._pid == 0:
            os.close(self._writer)
            try:
                _reap(reader)
            finally:
                os._exit(0)
        os.close(reader)
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._writer)
        os.waitpid(self._pid, 0)

    def watch(self, group: int) -> None:
        self._tell(f"+{group}\n")

    def release(self, group: int) -> None:
        self._tell(f"-{group}\n")

    def _tell(self, line: str) -> None:
        with contextlib.suppress(BrokenPipeError):  # the reaper was killed
            os.write(self._writer, line.encode())


def _reap(reader: int) -> None:
    os.setsid()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    groups: set[int] = set()
    with os.fdopen(reader) as lines:
        for line in lines:
            change = groups.add if line[0] == "+" else groups.discard
            change(int(line[1:]))
    deadline = time.monotonic() + GRACE_SECONDS
    groups = _signal(groups, signal.SIGTERM)
    while groups and time.monotonic() < deadline:
        time.sleep(0.05)
        groups = _signal(groups, 0)
    _signal(groups, signal.SIGKILL)


def _signal(groups: set[int], number: int) -> set[int]:
    alive: set[int] = set()
    for group in groups:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(group, number)
            alive.add(group)
    return alive
