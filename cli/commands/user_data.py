"""Exports, imports and deletes what is stored of one user, by the commands of the services, which know their parts."""

import argparse
import contextlib
import json
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, BinaryIO

from cli import data_dir, terminal
from cli.arguments import Commands, UsageError, add_command, add_user, user
from cli.database import postgres
from cli.errors import CliError, explain_os_error
from cli.services import environment, running_settings, service_command
from cli.services.service_command import NoStoredData
from common.commands import EXIT_INCOMPLETE

EXPORT_VERSION = 2  # of the shape that docs/data.md describes
PARTS = {"todo": "mcp_server", "chat": "backend"}
IMPORT_FORMATS = ("export", "todoist", "ticktick", "microsoft-todo", "icalendar", "todo.txt")
LOCAL = "local"  # the user of AUTH_MODE=none


def add(commands: Commands) -> None:
    _add_export(commands)
    import_ = add_command(
        commands,
        "import",
        run_import,
        "add the tasks of a file of another program, or of an export",
        "Adds the tasks of a file to a user's list: an export, a CSV of Todoist, TickTick or Outlook (for Microsoft To "
        "Do), an .ics of to-dos, or a todo.txt. Importing the same file again adds nothing twice. What cannot be "
        "imported is counted. Lines that cannot be read are listed with the reason, and the exit status is then 1.",
    )
    add_user(import_)
    import_.add_argument(
        "file", nargs="?", type=Path, metavar="FILE", help="the file of another program, or of ./todo export"
    )
    import_.add_argument("--undo", action="store_true", help="instead, remove the tasks that the last import added")
    import_.add_argument(
        "--format", choices=IMPORT_FORMATS, help="the format of the file (default: recognised from its content)"
    )
    forget = add_command(
        commands,
        "forget",
        run_forget,
        "delete all stored data of a user",
        "Stops a user's running answers, then deletes their tasks, changes, conversations, files and usage for good.",
    )
    add_user(forget)
    forget.add_argument("--yes", action="store_true", help="do not ask for confirmation")


def _add_export(commands: Commands) -> None:
    parser = add_command(
        commands,
        "export",
        run_export,
        "write all stored data of a user as JSON",
        "Writes a user's tasks, the changes of tasks and the conversations as one JSON document. With --files it also "
        "writes the files of the conversations as a tar archive.",
    )
    add_user(parser)
    parser.add_argument(
        "--format",
        choices=("json", "jsonl"),
        default="json",
        help="jsonl: only the conversations, one line for each event",
    )
    parser.add_argument("--thread", type=user, metavar="ID", help="with jsonl: only this conversation")
    parser.add_argument("--output", type=Path, metavar="FILE", help="write to this new file, which only you can read")
    parser.add_argument(
        "--files", type=Path, metavar="FILE.tar", help="also write the conversations' files to this new archive"
    )


def run_export(arguments: argparse.Namespace) -> int:
    if arguments.format == "json" and arguments.thread:
        raise UsageError("export --thread needs --format jsonl")
    if arguments.format == "jsonl" and arguments.files:
        raise UsageError("export --files needs --format json")
    output, files = (path and path.resolve() for path in (arguments.output, arguments.files))
    if output and output == files:
        raise CliError("--output and --files must be two different files.")
    for file in (output, files):
        check_new(file)
    settings = running_settings.load(arguments.data_dir).variables
    with postgres.owner_environment(settings, arguments.data_dir) as variables:
        if arguments.format == "jsonl":
            _export_log(arguments.user, arguments.thread, output, variables)
        else:
            _export(arguments.user, output, files, variables, arguments.data_dir)
    return 0


def run_import(arguments: argparse.Namespace) -> int:
    if (arguments.file is None) is not arguments.undo:
        raise UsageError("import needs either a FILE or --undo")
    options = [f"--user={arguments.user}"]
    if arguments.undo:
        options.append("--undo")
    else:
        options += [f"--name={arguments.file.name}", *([f"--format={arguments.format}"] if arguments.format else [])]
    variables = running_settings.load(arguments.data_dir).variables
    variables.setdefault("TIME_ZONE", environment.find_time_zone(variables) or "UTC")
    file = arguments.file or Path(os.devnull)
    with explain_os_error(f"{file} cannot be read"):
        document = file.open("rb")
    with document, tempfile.TemporaryFile() as output:
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
        _show(output)
    return 0 if status == 0 else 1


def run_forget(arguments: argparse.Namespace) -> int:
    """Deletes everything. The backend goes first: a run that continued would add tasks."""
    user, directory = arguments.user, arguments.data_dir
    if not arguments.yes:
        terminal.confirm(
            f"Delete all tasks, conversations and files of {user} for good?",
            without_terminal="There is no terminal to ask for confirmation. Add --yes to delete all data of "
            f"{user} for good.",
            rejected="Nothing was deleted.",
        )
    variables = running_settings.load(directory).variables
    with postgres.owner_environment(variables, directory) as variables, tempfile.TemporaryFile() as output:
        found = forget_in(["backend", "mcp_server", "workspace"], user, variables, directory, output)
        if user == LOCAL:
            data_dir.chat_history(directory).unlink(missing_ok=True)
        if not found:
            raise NoStoredData(user)
        _show(output)  # when all is deleted, as it cannot always be written
    return 0


def forget_in(
    modules: Sequence[str], user: str, variables: Mapping[str, str], directory: Path, output: IO[bytes]
) -> bool:
    """Deletes what these services store of a user; returns whether there was anything."""
    with_files = service_command.with_workspace(variables, directory)
    found = [
        service_command.run_for_user(module, "forget", user, variables=with_files or variables, output=output)
        for module in modules
        if module != "workspace" or with_files
    ]
    return any(found)


def _export(user: str, output: Path | None, files: Path | None, variables: Mapping[str, str], directory: Path) -> None:
    with tempfile.TemporaryFile() as document:
        document.write(f'{{"version": {EXPORT_VERSION}, "user": {json.dumps(user, ensure_ascii=False)}\n'.encode())
        has_data = False
        for name, module in PARTS.items():
            document.write(f', "{name}": '.encode())
            document.flush()
            has_data |= service_command.run_for_user(module, "export", user, variables=variables, output=document)
            document.seek(0, os.SEEK_END)
        document.write(b"}\n")
        has_files = files is not None and _write_files(files, user, variables, directory)
        if not has_data and not has_files:
            raise NoStoredData(user)
        _write(document, output, f"All stored data of {user} is in")
        if has_files:
            terminal.notice(f"The files of {user} are in {files}.")
        elif files:
            terminal.notice(f"{user} has no files, so {files} was not written.")


def _export_log(user: str, thread: str | None, output: Path | None, variables: Mapping[str, str]) -> None:
    with tempfile.TemporaryFile() as lines:
        options = [] if thread is None else [f"--thread={thread}"]
        if not service_command.run_for_user("backend", "log", user, *options, variables=variables, output=lines):
            if thread:
                raise CliError(f"{user} has no conversation {thread}. Check the user and the id.")
            raise NoStoredData(user)
        _write(lines, output, f"The conversations of {user} are in")


def _write_files(archive: Path, user: str, variables: Mapping[str, str], directory: Path) -> bool:
    """Returns False, and writes nothing, if the user has no files."""
    with_files = service_command.with_workspace(variables, directory)
    if with_files is None:
        return False
    with contextlib.suppress(NoStoredData), new_file(archive) as output:
        if service_command.run_for_user("workspace", "export", user, variables=with_files, output=output):
            return True
        raise NoStoredData(user)
    return False


def _write(document: BinaryIO, output: Path | None, sentence: str) -> None:
    document.seek(0)
    if output is None:
        terminal.copy(document)
        return
    with new_file(output) as file:
        shutil.copyfileobj(document, file)
    terminal.notice(f"{sentence} {output}.")


def _show(output: BinaryIO) -> None:
    output.seek(0)
    terminal.write(output.read().decode(errors="replace"))


def check_new(file: Path | None) -> None:
    if file and os.path.lexists(file):
        raise CliError(f"{file} already exists. Choose another file or remove this one first.")


@contextlib.contextmanager
def new_file(output: Path) -> Iterator[IO[bytes]]:
    """A file that only its owner can read and that gets its name when it is complete."""
    with (
        explain_os_error(f"{output} cannot be written"),
        tempfile.NamedTemporaryFile(dir=output.parent, prefix=f".{output.name}.", delete=False) as fresh,
    ):
        try:
            yield fresh
            fresh.flush()
            Path(fresh.name).replace(output)
        except BaseException:
            Path(fresh.name).unlink()
            raise
