"""Resource limits of a command's processes (ulimit)."""

import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

# Shells name the number of processes -u or -p.
_SCRIPT = """
ulimit -c 0
ulimit -f "$1"
ulimit -d "$2"
ulimit -t "$3"
ulimit -n "$4"
[ "$5" = - ] || ulimit -u "$5" || ulimit -p "$5"
shift 5
exec 2>&3 3>&-
exec "$@"
"""
_OTHER_COMMANDS = 4


@dataclass(frozen=True)
class Limits:
    file_bytes: int = 200 * 1024**2
    memory_bytes: int = 2 * 1024**3
    """Data of one process; not its addresses, of which Java and Node.js reserve far more than they use."""
    processes: int = 64
    open_files: int = 256

    def wrap_command(self, argv: Sequence[str], seconds: int, *, others: int | None) -> list[str]:
        """Wraps a command in a shell that sets the limits; `others` are the account's processes, if counted."""
        processes = "-" if others is None else self.processes * (_OTHER_COMMANDS if others else 1) + others
        processor_seconds = seconds * (os.cpu_count() or 1) + 5  # in case the time limit fails
        values = (self.file_bytes // 512, self.memory_bytes // 1024, processor_seconds, self.open_files, processes)
        return ["sh", "-c", f"exec 3>&2 2>/dev/null{_SCRIPT}", "sh", *map(str, values), *argv]


def count_account_threads() -> int | None:
    """Returns the number of the account's threads, which the kernel limits, or None if unknown."""
    if sys.platform != "linux":
        return None
    account, threads = os.getuid(), 0
    with os.scandir("/proc") as found:
        for entry in found:
            if entry.name.isdigit():
                with suppress(OSError):  # it has ended
                    if entry.stat().st_uid == account:
                        threads += len(os.listdir(f"/proc/{entry.name}/task"))
    return threads


LIMITS = Limits()
ONLY_REMOVE = Limits(file_bytes=0)
