"""A service's own command as a process; the command line repeats what it says of an error."""

import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import BinaryIO

from cli import data_dir, terminal
from cli.data_dir import CHECKOUT
from cli.errors import CliError
from common.commands import EXIT_NOTHING_STORED


def run(module: str, *arguments: str, variables: Mapping[str, str]) -> int:
    """Its output goes where ours goes; raises `CliError` with its sentence when it fails."""
    command = [sys.executable, "-m", module, *arguments]
    done = subprocess.run(command, cwd=CHECKOUT, env=variables, stderr=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        raise CliError(done.stderr.strip() or f"{module} ended with exit code {done.returncode}.")
    if done.stderr:
        terminal.notice(done.stderr.rstrip())
    return 0


def start(
    module: str, command: str, user: str, variables: Mapping[str, str], *options: str, output: BinaryIO | None = None
) -> subprocess.Popen[str]:
    arguments = [sys.executable, "-m", module, command, f"--user={user}", *options]
    return subprocess.Popen(arguments, cwd=CHECKOUT, env=variables, stdout=output, stderr=subprocess.PIPE, text=True)


def finish(process: subprocess.Popen[str]) -> bool:
    """Waits for a command; returns False if its service stores nothing of the user."""
    _, errors = process.communicate()
    if process.returncode not in (0, EXIT_NOTHING_STORED):
        raise CliError(errors.strip() or f"A command of a service failed with exit code {process.returncode}.")
    return process.returncode == 0


def with_workspace(variables: Mapping[str, str], directory: Path) -> dict[str, str] | None:
    """Returns the environment with the directory of users' files; None if there is none."""
    files = Path(variables.get("WORKSPACE_DIR") or data_dir.workspaces_of(directory))
    return {**variables, "WORKSPACE_DIR": str(files)} if files.is_dir() else None


def nothing_stored(user: str) -> CliError:
    return CliError(f"There is no data of {user}. Check the name.")
