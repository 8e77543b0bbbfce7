"""What of this machine a command may read: programs and what they need to start, nothing that is anybody's."""

import errno
import os
from pathlib import Path

PROGRAMS = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
# Where libraries are, which program is meant by a name such as awk, and what Node.js does not start without where it
# exists and cannot be read.
SETTINGS = ("/etc/ld.so.cache", "/etc/alternatives", "/etc/ssl/openssl.cnf")
DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom")


_CHECKOUT = Path(__file__).parents[2]


def problem(checkout: Path = _CHECKOUT) -> str | None:
    """Why programs must not be read here: what is configured, and what is stored, would be read with them."""
    exposed = _is_among_programs(checkout) and (checkout / "pyproject.toml").exists()
    return f"{checkout} is in a directory that commands may read: move it" if exposed else None


def check(folder: Path) -> None:
    """Raises for a folder that all commands could read."""
    if _is_among_programs(folder):
        raise PermissionError(errno.EACCES, "WORKSPACE_DIR is in a directory that commands may read")


def _is_among_programs(path: Path) -> bool:
    return any(Path(os.path.realpath(path)).is_relative_to(os.path.realpath(place)) for place in PROGRAMS)
