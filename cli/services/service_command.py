"""A service's own command as a process; the command line repeats what it says of an error."""

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Any

from cli import data_dir, terminal
from cli.data_dir import CHECKOUT
from cli.database import postgres
from cli.errors import CliError
from cli.services import env_file, running_settings
from common.commands import EXIT_NOTHING_STORED, EXIT_READER_GONE

_PROGRESS_END = "…"  # ends a line that says how far the work is


class NoStoredData(CliError):
    def __init__(self, user: str) -> None:
        super().__init__(f"There is no data of {user}. Check the name.")


def run(
    module: str, *arguments: str, variables: Mapping[str, str], accepted: Sequence[int] = (), **streams: Any
) -> int:
    """Returns the exit status, which is 0 or one of `accepted`. Raises `CliError` with what it says of an error."""
    command = [sys.executable, "-m", module, *arguments]
    lines: list[str] = []
    with (
        subprocess.Popen[str](
            command, cwd=CHECKOUT, env=variables, stderr=subprocess.PIPE, text=True, **streams
        ) as process,
        terminal.Progress() as progress,
    ):
        assert process.stderr
        for line in process.stderr:
            if line.rstrip().endswith(_PROGRESS_END):
                progress.show(line.rstrip())
            else:
                lines.append(line)
    text = "".join(lines).strip()
    if process.returncode == EXIT_READER_GONE:
        raise terminal.OutputLost
    if process.returncode == os.EX_CONFIG:
        raise env_file.create_error(env_file.add_origins(text.splitlines()))
    if process.returncode not in (0, *accepted):
        raise CliError(text or f"{module} ended with exit code {process.returncode}.")
    if text and process.returncode != EXIT_NOTHING_STORED:
        terminal.notice(text)
    return process.returncode


def run_with_database(
    directory: Path,
    module: str,
    *arguments: str,
    variables: Mapping[str, str] | None = None,
    create: bool = False,
    **options: Any,
) -> int:
    """Runs a command as the owner of the database."""
    variables = variables or running_settings.load(directory).variables
    with postgres.owner_environment(variables, directory, create=create) as with_owner:
        return run(module, *arguments, variables=with_owner, **options)


def run_for_user(
    module: str,
    command: str,
    user: str,
    *options: str,
    variables: Mapping[str, str],
    output: IO[bytes] | None = None,
) -> bool:
    """Returns False if the service stores nothing of the user."""
    arguments = [command, f"--user={user}", *options]
    return run(module, *arguments, variables=variables, accepted=[EXIT_NOTHING_STORED], stdout=output) == 0


def with_workspace(variables: Mapping[str, str], directory: Path) -> dict[str, str] | None:
    files = Path(variables.get("WORKSPACE_DIR") or data_dir.get_workspaces_path(directory))
    return {**variables, "WORKSPACE_DIR": str(files)} if files.is_dir() else None
