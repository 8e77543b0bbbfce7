"""What is stored of one person. Each service knows its own part: these commands run the services' commands."""

import contextlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import BinaryIO

from cli import data_dir, terminal
from cli.data_dir import CHECKOUT
from cli.database import local_database
from cli.errors import CliError
from cli.services import environment
from common.commands import EXIT_NOTHING_STORED

EXPORT_VERSION = 2  # of the shape that docs/data.md describes
LOCAL = "local"  # who everybody is with AUTH_MODE=none
PARTS = {"todo": "mcp_server", "chat": "backend"}


def export(*, user: str, output: Path | None, files: Path | None, directory: Path) -> int:
    """Write one JSON document, and the files as an archive; each is put together on disk, and written whole or not."""
    if output and output == files:
        raise CliError("--output and --files must be two different files.")
    _check_new(output, files)
    with local_database.reached(environment.load(), directory) as variables, contextlib.ExitStack() as stack:
        parts = {name: stack.enter_context(tempfile.TemporaryFile()) for name in PARTS}
        services = [
            stack.enter_context(_start(PARTS[name], "export", user, variables, out=part))
            for name, part in parts.items()
        ]
        found = [_found(service) for service in services]
        archive = stack.enter_context(_beside(files)) if files else None
        has_files = archive is not None and _pack(archive, user, variables, directory)
        if not any(found) and not has_files:
            raise _nothing(user)
        document = stack.enter_context(tempfile.TemporaryFile())
        _join(document, user, parts)
        if output is None:
            terminal.copy(document)
        else:
            _save(document, output)
            terminal.notice(f"All stored data of {user} is in {output}.")
        if files and archive and has_files:
            archive.seek(0)
            _save(archive, files)
            terminal.notice(f"The files of {user} are in {files}.")
        elif files:
            terminal.notice(f"{user} has no files, so {files} was not written.")
    return 0


def log(*, user: str, thread: str | None, output: Path | None, directory: Path) -> int:
    """Write the conversations, or one, as lines of JSON, put together on disk as an export is."""
    _check_new(output)
    with local_database.reached(environment.load(), directory) as variables, tempfile.TemporaryFile() as lines:
        more = [] if thread is None else [f"--thread={thread}"]
        if not _found(_start("backend", "log", user, variables, *more, out=lines)):
            raise (
                CliError(f"{user} has no conversation {thread}. Check the user and the id.")
                if thread
                else _nothing(user)
            )
        lines.seek(0)
        if output is None:
            terminal.copy(lines)
        else:
            _save(lines, output)
            terminal.notice(f"The conversations of {user} are in {output}.")
    return 0


def forget(*, user: str, yes: bool, directory: Path) -> int:
    """Delete everything. The backend goes first: a turn that still ran would add tasks."""
    if not yes:
        _confirm(user)
    with local_database.reached(environment.load(), directory) as variables:
        given = _with_folders(variables, directory)
        modules = ["backend", "mcp_server", *(["workspace"] if _has_folders(given) else [])]
        found = [_found(_start(module, "forget", user, given)) for module in modules]
        if user == LOCAL:
            data_dir.chat_history(directory).unlink(missing_ok=True)
        if not any(found):
            raise _nothing(user)
    return 0


def _check_new(*places: Path | None) -> None:
    for place in places:
        if place and os.path.lexists(place):
            raise CliError(f"{place} already exists. Choose another file or remove this one first.")


def _pack(archive: BinaryIO, user: str, variables: Mapping[str, str], directory: Path) -> bool:
    """False when the person has no files."""
    given = _with_folders(variables, directory)
    return _has_folders(given) and _found(_start("workspace", "export", user, given, out=archive))


def _with_folders(variables: Mapping[str, str], directory: Path) -> Mapping[str, str]:
    kept = variables.get("WORKSPACE_DIR") or data_dir.workspaces_of(directory)
    return {**variables, "WORKSPACE_DIR": str(kept)}


def _has_folders(given: Mapping[str, str]) -> bool:
    return Path(given["WORKSPACE_DIR"]).is_dir()


def _start(
    module: str, command: str, user: str, variables: Mapping[str, str], *more: str, out: BinaryIO | None = None
) -> subprocess.Popen[str]:
    arguments = [sys.executable, "-m", module, command, f"--user={user}", *more]
    return subprocess.Popen(arguments, cwd=CHECKOUT, env=variables, stdout=out, stderr=subprocess.PIPE, text=True)


def _found(service: subprocess.Popen[str]) -> bool:
    """Wait for a service's command; False when it has nothing of the person."""
    _, errors = service.communicate()
    if service.returncode not in (0, EXIT_NOTHING_STORED):
        raise CliError(errors.strip() or f"A command of a service failed with exit code {service.returncode}.")
    return service.returncode == 0


def _join(document: BinaryIO, user: str, parts: Mapping[str, BinaryIO]) -> None:
    document.write(f'{{"version": {EXPORT_VERSION}, "user": {json.dumps(user, ensure_ascii=False)}\n'.encode())
    for name, part in parts.items():
        document.write(f', "{name}": '.encode())
        part.seek(0)
        shutil.copyfileobj(part, document)
    document.write(b"}\n")
    document.seek(0)


def _beside(place: Path) -> BinaryIO:
    """A file without a name on the disk that has room for what is kept."""
    try:
        return tempfile.TemporaryFile(dir=place.parent)
    except OSError as error:
        raise CliError(f"{place} cannot be written: {error.strerror}.") from error


def _save(document: BinaryIO, output: Path) -> None:
    """Into a file that only its owner can read, and that takes its name when it is complete."""
    try:
        with tempfile.NamedTemporaryFile(dir=output.parent, prefix=f".{output.name}.", delete=False) as fresh:
            try:
                shutil.copyfileobj(document, fresh)
                fresh.flush()
                Path(fresh.name).replace(output)
            except BaseException:
                Path(fresh.name).unlink()
                raise
    except OSError as error:
        raise CliError(f"{output} cannot be written: {error.strerror}.") from error


def _confirm(user: str) -> None:
    if not sys.stdin.isatty():
        raise CliError(
            f"There is no terminal to ask for confirmation. Add --yes to delete all data of {user} for good."
        )
    if terminal.ask(f"Delete all tasks, conversations and files of {user} for good? [y/N] ").lower() not in (
        "y",
        "yes",
    ):
        raise CliError("Nothing was deleted.")


def _nothing(user: str) -> CliError:
    return CliError(f"There is no data of {user}. Check the name.")
