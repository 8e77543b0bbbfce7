"""What of this machine a command may read: programs and what they need to start, nothing that is anybody's."""

import os
import shutil
import sys
from pathlib import Path

from workspace.confinement.confinement import PATH

PROGRAMS = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
# Where libraries are, which program is meant by a name such as awk, and what Node.js does not start without where it
# exists and cannot be read.
SETTINGS = ("/etc/ld.so.cache", "/etc/alternatives", "/etc/ssl/openssl.cnf")
DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom")


def own_python() -> Path | None:
    """Where this Python is, if the programs have none."""
    return None if shutil.which("python3", path=PATH) else Path(os.path.realpath(sys.base_prefix))
