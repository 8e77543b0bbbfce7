"""The sandbox of macOS. Commands see other processes of the account but cannot reach them."""

import os
import shutil
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from workspace.confinement import base
from workspace.confinement.base import Confinement, Directory, Launch

_EMPTY = "/var/empty"
_PROFILE = """(version 1)
(deny default)
(allow process-exec process-fork)
(allow signal (target same-sandbox))
(allow sysctl-read)
(allow file-read-metadata)
(allow file-read* (literal "/") (subpath "/usr") (subpath "/bin") (subpath "/sbin") (subpath "/System")
    (subpath "/Library/Apple") (subpath "/Library/Developer") (subpath "/opt/homebrew") (subpath "/private/var/db/dyld")
    (subpath "/private/var/select") (subpath (param "PYTHON")))
(allow file-read* file-write-data (literal "/dev/null") (literal "/dev/zero"))
(allow file-read* (literal "/dev/random") (literal "/dev/urandom"))
(allow file-read* file-write* (subpath (param "FOLDER")))
"""


def find_sandbox_exec(_: Sequence[str] = ()) -> Confinement | str:
    program = shutil.which("sandbox-exec")
    if program is None or sys.platform != "darwin":
        return "it exists only on macOS"
    return Confinement("sandbox-exec", partial(_launch, program))


@contextmanager
def _launch(program: str, folder: Path, argv: Sequence[str], _: Directory | None) -> Iterator[Launch]:
    real = os.path.realpath(folder)  # profiles name real paths, and /tmp is a link on macOS
    python = base.find_private_python() or "/usr"
    variables = base.create_environment(_EMPTY, TMPDIR=real, GIT_CEILING_DIRECTORIES=os.path.dirname(real))
    profile = ["-D", f"FOLDER={real}", "-D", f"PYTHON={python}", "-p", _PROFILE]
    yield Launch([program, *profile, *argv], variables, real)
