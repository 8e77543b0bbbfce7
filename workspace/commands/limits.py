"""What a command may use at most, held by the kernel for each of its processes."""

import os
from collections.abc import Sequence
from dataclasses import dataclass

# -u and -p are two shells' names for the number of processes. What the system does not know is left as it is.
_SCRIPT = """
ulimit -c 0
ulimit -f "$1"
ulimit -v "$2"
ulimit -t "$3"
ulimit -n "$4"
ulimit -u "$5" || ulimit -p "$5"
shift 5
exec 2>&3 3>&-
exec "$@"
"""


@dataclass(frozen=True)
class Limits:
    file_bytes: int = 200 * 1024**2
    memory_bytes: int = 2 * 1024**3
    """Addresses of one process."""
    processes: int = 256
    """Of the command where it has a user namespace of its own (Linux 5.14 or newer), else of the whole account."""
    open_files: int = 1024

    def applied(self, argv: Sequence[str], seconds: int) -> list[str]:
        """The command that sets them, in the confinement, and then becomes `argv`."""
        processor_seconds = seconds * (os.cpu_count() or 1) + 5  # what is left of a time limit that failed
        values = (self.file_bytes // 512, self.memory_bytes // 1024, processor_seconds, self.open_files, self.processes)
        return ["sh", "-c", f"exec 3>&2 2>/dev/null{_SCRIPT}", "sh", *map(str, values), *argv]


LIMITS = Limits()
ONLY_LESS = Limits(file_bytes=1024**2)
"""In a folder that holds too much: enough to delete, not to go on."""
