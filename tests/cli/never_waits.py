"""A parent that never waits, as process 1 of some containers is one: what ends below it stays a zombie."""

import contextlib
import ctypes
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

PR_SET_CHILD_SUBREAPER = 36


class NeverWaits:
    """That parent as a process, and all that runs below it."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def start(self, *arguments: str, output: Path, **environment: str) -> int:
        """Run Python with these arguments below it; returns the process id."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        wanted = {"arguments": arguments, "output": str(output), "environment": environment}
        self._process.stdin.write(json.dumps(wanted) + "\n")
        self._process.stdin.flush()
        return int(self._process.stdout.readline())

    def living(self) -> set[int]:
        """What runs below it, orphans included."""
        return {pid for pid in _below(self._process.pid) if _state(pid) not in ("Z", "")}

    def zombies(self) -> set[int]:
        return {pid for pid in _below(self._process.pid) if _state(pid) == "Z"}

    def kill_everything(self) -> None:
        """As a container's out-of-memory killer would: nobody has time for last things."""
        deadline = time.monotonic() + 10
        looks = 0  # that found nothing: who has just lost its parent is for a moment below nobody
        while looks < 3:
            living = self.living()
            assert time.monotonic() < deadline, living
            looks = 0 if living else looks + 1
            for pid in living:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            time.sleep(0.02)


def _below(pid: int) -> Iterator[int]:
    try:
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except (FileNotFoundError, ProcessLookupError):
        return
    for child in map(int, children):
        yield child
        yield from _below(child)


def _state(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return ""


def main() -> None:
    if ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
        sys.exit("not a subreaper")
    for line in sys.stdin:
        wanted: dict[str, Any] = json.loads(line)
        output = os.open(wanted["output"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        pid = os.posix_spawn(
            sys.executable,
            [sys.executable, *wanted["arguments"]],
            os.environ | wanted["environment"],
            file_actions=[(os.POSIX_SPAWN_DUP2, output, 1), (os.POSIX_SPAWN_DUP2, output, 2)],
        )
        os.close(output)
        sys.stdout.write(f"{pid}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
