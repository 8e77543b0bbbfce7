import fcntl
import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path

from cli.errors import CliError

LEFTOVER_SECONDS = 10


class InUseError(CliError):
    """Another process owns the data directory."""

    def __init__(self, data_dir: Path, owner: int) -> None:
        super().__init__(f"The data directory {data_dir} is in use by process {owner}.")


def take(data_dir: Path, *, leftover: Callable[[], int | None]) -> int:
    """The descriptor of the lock that makes this process the owner of `data_dir`.

    PostgreSQL inherits it: whoever gets the lock knows that neither an owner nor a server of the past is alive.
    `leftover` answers the process id of a server that may have outlived its owner.
    """
    lock = os.open(data_dir / "lock", os.O_RDWR | os.O_CREAT, 0o600)
    deadline = time.monotonic() + LEFTOVER_SECONDS
    while True:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            break
        except BlockingIOError:
            owner = int(os.pread(lock, 20, 0) or 0)
            if (owner and _alive(owner)) or time.monotonic() > deadline:
                os.close(lock)
                raise InUseError(data_dir, owner) from None
            # Its owner was killed and the server follows; outside Linux it has to be told.
            if sys.platform != "linux" and (server := leftover()):
                os.kill(server, signal.SIGINT)
            time.sleep(0.02)
    os.ftruncate(lock, 0)
    os.pwrite(lock, str(os.getpid()).encode(), 0)
    return lock


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return True
