"""A service's own command as a process: what it says of an error is told as the command line tells errors."""

import subprocess
import sys
from collections.abc import Mapping

from cli import terminal
from cli.data_dir import CHECKOUT
from cli.errors import CliError


def run(module: str, *arguments: str, variables: Mapping[str, str]) -> int:
    """Its output goes where ours goes; raises `CliError` with its sentence when it fails."""
    command = [sys.executable, "-m", module, *arguments]
    done = subprocess.run(command, cwd=CHECKOUT, env=variables, stderr=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        raise CliError(done.stderr.strip() or f"{module} ended with exit code {done.returncode}.")
    if done.stderr:
        terminal.notice(done.stderr.rstrip())
    return 0
