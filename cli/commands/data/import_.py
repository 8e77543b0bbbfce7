import argparse
import os
import tempfile
from pathlib import Path
from typing import BinaryIO

from cli import terminal
from cli.arguments import Commands, UsageError, add_command, add_user
from cli.errors import CliError
from cli.services import environment, service_command
from common.commands import EXIT_INCOMPLETE

FORMATS = ("todoist", "todo.txt", "export")


def add(commands: Commands) -> None:
    parser = add_command(
        commands,
        "import",
        run,
        "add the tasks of a file: a Todoist CSV, a todo.txt, or an export",
        "Adds the tasks of a file to a user's list. Importing the same file again adds nothing twice. Lines that "
        "cannot be read are listed with the reason, and the exit status is then 1.",
    )
    add_user(parser)
    parser.add_argument(
        "file", nargs="?", type=Path, metavar="FILE", help="a Todoist CSV, a todo.txt, or a file from ./todo export"
    )
    parser.add_argument("--undo", action="store_true", help="instead, remove the tasks that the last import added")
    parser.add_argument(
        "--format", choices=FORMATS, help="the format of the file (default: recognised from its content)"
    )


def run(arguments: argparse.Namespace) -> int:
    if (arguments.file is None) is not arguments.undo:
        raise UsageError("import needs either a FILE or --undo")
    options = [f"--user={arguments.user}"]
    if arguments.undo:
        options.append("--undo")
    else:
        options += [f"--name={arguments.file.name}", *([f"--format={arguments.format}"] if arguments.format else [])]
    variables = environment.load()
    variables.setdefault("TIME_ZONE", environment.find_time_zone(variables) or "UTC")
    with _open(arguments.file or Path(os.devnull)) as document, tempfile.TemporaryFile() as output:
        status = service_command.run_with_database(
            arguments.data_dir,
            "mcp_server",
            "import",
            *options,
            variables=variables,
            accepted=[EXIT_INCOMPLETE],
            stdin=document,
            stdout=output,
        )
        output.seek(0)
        terminal.copy(output)
    return 0 if status == 0 else 1


def _open(file: Path) -> BinaryIO:
    try:
        return file.open("rb")
    except OSError as error:
        raise CliError(f"{file} cannot be read: {error.strerror}.") from error
