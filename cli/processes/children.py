import contextlib
import ctypes
import os
import sys
from collections.abc import Callable
from pathlib import Path
from signal import Signals

PR_SET_PDEATHSIG = 1


def die_with_parent(signal: Signals) -> Callable[[], None] | None:
    """A Popen `preexec_fn`: the kernel sends `signal` when the thread that starts the child ends (Linux only)."""
    if sys.platform != "linux":
        return None
    prctl = ctypes.CDLL(None).prctl
    parent = os.getpid()

    def ask_kernel() -> None:
        prctl(PR_SET_PDEATHSIG, int(signal))
        if os.getppid() != parent:  # it died before it was asked
            os._exit(1)

    return ask_kernel


def fresh_log(path: Path) -> Path:
    """Creates an empty log; the one of the run before gets the suffix `.old`."""
    with contextlib.suppress(FileNotFoundError):
        path.replace(path.with_name(path.name + ".old"))
    path.touch()
    return path


def last_lines(path: Path, count: int = 12) -> str:
    """Returns the end of a log, for an error message; empty if there is no log."""
    try:
        with path.open("rb") as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - 16_384))
            text = file.read().decode(errors="replace")
    except FileNotFoundError:
        return ""
    return "\n".join(text.splitlines()[-count:])
