"""The sandbox of macOS. Commands see other processes of the account but cannot reach them."""

import os
import shutil
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from workspace.confinement.base import Directory, DirectoryAccess, Launch, Name, create_environment, find_private_python

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


@dataclass(frozen=True)
class SandboxExec:
    name: ClassVar[Name] = "sandbox-exec"
    has_separate_count: ClassVar[bool] = False
    directories: ClassVar[DirectoryAccess] = None

    program: str

    @contextmanager
    def launch(
        self, folder: Path, argv: Sequence[str], *, directory: Directory | None = None, readable: Sequence[str] = ()
    ) -> Iterator[Launch]:
        real = os.path.realpath(folder)  # profiles name real paths, and /tmp is a link on macOS
        python = find_private_python() or "/usr"
        variables = create_environment(_EMPTY, TMPDIR=real, GIT_CEILING_DIRECTORIES=os.path.dirname(real))
        profile = ["-D", f"FOLDER={real}", "-D", f"PYTHON={python}", "-p", _PROFILE]
        yield Launch([self.program, *profile, *argv], variables, real)


def find_sandbox_exec() -> SandboxExec | str:
    program = shutil.which("sandbox-exec")
    return SandboxExec(program) if program and sys.platform == "darwin" else "it exists only on macOS"
