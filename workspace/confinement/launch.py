"""How a command is started by the launcher."""

import os
import shutil
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from workspace.confinement.confinement import PATH

# Read once, because the account that the service becomes need not be able to read it.
_SOURCE = Path(__file__).with_name("launcher.py").read_text()
MAX_USER_WATCHES = Path("/proc/sys/fs/epoll/max_user_watches")
SHARE = 32  # of an account's watches: sixteen commands may run at once, and half is for everything else
_SIGNALS = 1_000  # that wait to be delivered, of all processes of the account


@contextmanager
def launcher_script(
    filter_program: bytes,
    *,
    folder: str,
    landlock_version: int = 0,
    readable: Sequence[str] = (),
    devices: Sequence[str] = (),
    temporary: str = "",
) -> Iterator[int]:
    """A descriptor to read the launcher's source from, for a Python that is started within the block."""
    arguments = {
        "folder": folder,
        "filter_program": filter_program,
        "landlock_version": landlock_version,
        "readable": [*readable],
        "devices": [*devices],
        "temporary": temporary,
        "epoll_watches": _epoll_watches(),
        "signals": _SIGNALS,
    }
    # Not a pipe, which takes 8 KB only while a command of the same account has used up the account's pipe buffers.
    script = os.memfd_create("launcher")
    try:
        with os.fdopen(os.dup(script), "w") as file:
            file.write(f"{_SOURCE}\nos._exit(main(sys.argv[1:], **{arguments!r}))\n")
        yield script
    finally:
        os.close(script)


def launcher_command(python: str, script: int, argv: Sequence[str]) -> list[str]:
    return [python, "-I", "-S", f"/dev/fd/{script}", *argv]


def system_python() -> str | None:
    return shutil.which("python3", path=PATH)


def own_python() -> Path | None:
    """The directory of this Python, if the system has none."""
    return None if system_python() else Path(os.path.realpath(sys.base_prefix))


def _epoll_watches() -> int:
    try:
        return int(MAX_USER_WATCHES.read_text()) // SHARE
    except (OSError, ValueError):
        return 1_000
