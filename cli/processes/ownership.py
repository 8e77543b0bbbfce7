"""The process that owns a data directory. Process ids prove nothing: they may be a zombie's or another process's."""

import fcntl
import os
import signal
import struct
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from cli import terminal
from cli.errors import CliError

LEFTOVER_SECONDS = 45  # services end their work in order even when `up` was killed
TELL_AFTER_SECONDS = 1
# The kernel's `struct flock`: a lock of a whole file, by the type, and the process that holds it.
_FLOCK = "qqihh" if sys.platform == "darwin" else "hhqqi"
_WHOLE_FILE = (0, 0, 0, fcntl.F_WRLCK, 0) if sys.platform == "darwin" else (fcntl.F_WRLCK, 0, 0, 0, 0)
_TYPE = 3 if sys.platform == "darwin" else 0


class InUseError(CliError):
    def __init__(self, data_dir: Path, owner: int) -> None:
        super().__init__(f"The data directory {data_dir} is in use by process {owner}.")
        self.owner = owner


@dataclass(frozen=True)
class Ownership:
    """The kernel drops `owner` when this process ends, reaped or not; processes that inherited `lock` hold it, too."""

    owner: int
    lock: int

    def release(self) -> None:
        os.close(self.lock)
        os.close(self.owner)


def take(data_dir: Path, *, prefix: str = "", leftover: Callable[[], int | None] = lambda: None) -> Ownership:
    """Makes this process the owner of `data_dir`, or of what `prefix` names in it.

    A server inherits `lock` from the process that starts it. With both locks no earlier owner or server is alive. A
    server that outlived its owner is waited for; `leftover` returns its process id.
    """
    owner = _take_owner(data_dir, data_dir / f"{prefix}owner")
    lock = os.open(data_dir / f"{prefix}lock", os.O_RDWR | os.O_CREAT, 0o600)
    began = time.monotonic()
    has_reported = False
    while True:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return Ownership(owner, lock)
        except BlockingIOError:
            waited = time.monotonic() - began
            if waited > LEFTOVER_SECONDS:
                Ownership(owner, lock).release()
                raise CliError(
                    f"Processes of an earlier run still use the data directory {data_dir} and did not end within "
                    f"{LEFTOVER_SECONDS} seconds: stop them and try again."
                ) from None
            if waited > TELL_AFTER_SECONDS and not has_reported:
                terminal.notice("An earlier ./todo up was killed. Waiting for its services to stop …")
                has_reported = True
            # After its owner was killed, a server ends by itself on Linux; elsewhere it is stopped here.
            if sys.platform != "linux" and (server := leftover()):
                os.kill(server, signal.SIGINT)
            time.sleep(0.02)


def find_owner(data_dir: Path, *, prefix: str = "") -> int | None:
    """Returns the process that owns it. That process itself must not call this: closing the file drops its lock."""
    try:
        descriptor = os.open(data_dir / f"{prefix}owner", os.O_RDWR)
    except OSError:
        return None
    try:
        # To try the lock would be to have it for a moment, in which the owner could not take it.
        found = fcntl.fcntl(descriptor, fcntl.F_GETLK, struct.pack(_FLOCK, *_WHOLE_FILE))
        is_free = struct.unpack(_FLOCK, found)[_TYPE] == fcntl.F_UNLCK
        return None if is_free else int(os.pread(descriptor, 20, 0) or 0)
    finally:
        os.close(descriptor)


def _take_owner(data_dir: Path, path: Path) -> int:
    """A lock of the process itself: no child inherits it, and a zombie has none."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        holder = int(os.pread(descriptor, 20, 0) or 0)
        os.close(descriptor)
        raise InUseError(data_dir, holder) from None
    os.pwrite(descriptor, f"{os.getpid():<20}".encode(), 0)
    return descriptor
