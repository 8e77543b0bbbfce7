import contextlib
import os
import signal
import time
from typing import Self

GRACE_SECONDS = 5


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
    """The groups that still have a member."""
    alive: set[int] = set()
    for group in groups:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(group, number)
            alive.add(group)
    return alive
