import subprocess
import sys
import tempfile
from pathlib import Path
from typing import BinaryIO

from cli import terminal
from cli.data_dir import CHECKOUT
from cli.database import local_database
from cli.errors import CliError
from cli.services import environment, zone
from common.commands import EXIT_INCOMPLETE

_GOES_ON = "…"  # ends a line that says how far the work is


def run(*, file: Path, user: str, format: str | None, directory: Path) -> int:
    """Prints what `python -m mcp_server import` did; 1 when it could not read or add everything."""
    command = [sys.executable, "-m", "mcp_server", "import", f"--user={user}", f"--name={file.name}"]
    if format is not None:
        command.append(f"--format={format}")
    with _opened(file) as document, local_database.reached(environment.load(), directory) as variables:
        variables.setdefault("TIME_ZONE", zone.time_zone(variables))
        with tempfile.TemporaryFile() as told:
            process = subprocess.Popen(
                command, cwd=CHECKOUT, env=variables, stdin=document, stdout=told, stderr=subprocess.PIPE, text=True
            )
            errors = _followed(process)
            if process.returncode not in (0, EXIT_INCOMPLETE):
                raise CliError(errors or f"The import failed with exit code {process.returncode}.")
            if errors:
                terminal.notice(errors)
            told.seek(0)
            terminal.copy(told)
    return 0 if process.returncode == 0 else 1


def _opened(file: Path) -> BinaryIO:
    try:
        return file.open("rb")
    except OSError as error:
        raise CliError(f"{file} cannot be read: {error.strerror}.") from error
    except ValueError as error:
        raise CliError("This is not a valid file name. Choose another.") from error


def _followed(process: subprocess.Popen[str]) -> str:
    """Show how far the work is until it ends; what else it says is returned."""
    said: list[str] = []
    with process, terminal.Progress() as progress:
        assert process.stderr
        for line in process.stderr:
            text = line.rstrip("\n")
            if text.endswith(_GOES_ON):
                progress.show(text)
            else:
                said.append(text)
    return "\n".join(said).strip()
