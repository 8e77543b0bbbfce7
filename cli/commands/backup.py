"""Everything that is stored, in one ZIP file: a description, a dump of the database and the files of all users.

A ZIP has a checksum of each member, and its table of contents at the end: what is damaged or cut off is noticed.
"""

import argparse
import contextlib
import json
import os
import subprocess
import sys
import tempfile
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Any

from cli import data_dir, terminal
from cli.arguments import Commands, add_command
from cli.commands.user_data import check_new, new_file
from cli.data_dir import CHECKOUT
from cli.database import postgres, postgres_binaries
from cli.errors import CliError, explain_os_error
from cli.services import running, running_settings
from cli.services.settings_check import SettingsCheck
from common import postgres_programs
from common.revision import FIRST, REVISION, VERSION_0_2_0

FORMAT = 1
DESCRIPTION, DATABASE, FILES = "backup.json", "database.dump", "files.tar"
MEMBERS = [DATABASE, FILES, DESCRIPTION]
_NOTHING_CHANGED = "Nothing was changed."
_DAMAGED = f"{{}} is no backup, or it is damaged or cut off. {_NOTHING_CHANGED}"
_STATE = r"""
SET lock_timeout = '10s';
SELECT current_setting('server_version_num')::int / 10000;
SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'todo';
SELECT to_regclass('public.alembic_version') IS NOT NULL AS migrated \gset
\if :migrated
SELECT version_num FROM public.alembic_version;
SELECT EXISTS (SELECT FROM public.tasks) OR EXISTS (SELECT FROM public.conversations);
\endif
"""
# Version 0.2 left the schema v01 behind in databases of version 0.1.
_REPLACE = """\
BEGIN;
SET LOCAL lock_timeout = '10s';
SET LOCAL client_min_messages = warning;
DROP SCHEMA IF EXISTS public, v01 CASCADE;
CREATE SCHEMA public;
GRANT USAGE ON SCHEMA public TO PUBLIC;
"""


@dataclass(frozen=True)
class Installation:
    """What reads and writes everything that is stored: on this machine, or in the containers of compose."""

    postgres: tuple[str, ...]
    """Comes before the name of one of PostgreSQL's programs; empty for those of `binaries`."""
    address: str
    workspace: tuple[str, ...]
    variables: Mapping[str, str]
    binaries: Path | None = None

    def program(self, name: str, *options: str) -> list[str]:
        return [*self.postgres, str(self.binaries / name) if self.binaries else name, *options]

    def connected(self, name: str, *options: str) -> list[str]:
        return self.program(name, *options, f"--dbname={self.address}")

    def psql(self) -> list[str]:
        return self.connected("psql", "--no-psqlrc", "--quiet", "--tuples-only", "--no-align", "--set=ON_ERROR_STOP=1")


@dataclass(frozen=True)
class State:
    postgres: int
    connections: int
    revision: str | None = None
    has_data: bool = False


def add(commands: Commands) -> None:
    backup = add_command(
        commands,
        "backup",
        run_backup,
        "write the database and all files into one file",
        "Writes the database and the files of all users into one file, also while everything runs.",
    )
    restore = add_command(
        commands,
        "restore",
        run_restore,
        "replace the database and all files by a backup",
        "Replaces the database and the files of all users by those of a backup. The services must be stopped.",
    )
    restore.add_argument("--replace", action="store_true", help="replace what is stored, without asking")
    for parser in (backup, restore):
        parser.add_argument("file", type=Path, metavar="FILE")
        parser.add_argument("--compose", action="store_true", help="of docker compose instead of ./todo up")


def run_backup(arguments: argparse.Namespace) -> int:
    """Writes the database first: the files are then at least as new as what it says of them."""
    file, compose, directory = arguments.file.resolve(), arguments.compose, arguments.data_dir
    check_new(file)
    with (
        _check_reachable(directory, compose=compose) as installation,
        new_file(file) as out,
        terminal.Progress() as progress,
    ):
        state = _read_state(installation)
        if state.revision is None:
            raise CliError("The database is empty, so there is nothing to back up.")
        with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
            for name, command in (
                (DATABASE, installation.connected("pg_dump", *postgres_programs.DUMP)),
                (FILES, [*installation.workspace, "backup"]),
            ):
                with (
                    _running(command, installation, stdout=subprocess.PIPE) as process,
                    archive.open(name, "w", force_zip64=True) as member,
                ):
                    _copy(process.stdout, member, progress, name)
            description = {"format": FORMAT, "revision": state.revision, "postgres": state.postgres}
            description["created_at"] = datetime.now(UTC).isoformat(timespec="seconds")
            archive.writestr(DESCRIPTION, json.dumps(description))
    terminal.notice(f"The database and all files are in {file}. Anyone who can read it can read everything.")
    return 0


def run_restore(arguments: argparse.Namespace) -> int:
    """Replaces the database in one transaction, and then the files, which were unpacked before."""
    file, compose, directory = arguments.file.resolve(), arguments.compose, arguments.data_dir
    with terminal.Progress() as progress, _open(file) as archive:
        description = _check(archive, file, progress)
        with _check_reachable(directory, compose=compose, create=True) as installation:
            state = _read_state(installation)
            _check_possible(state, description, directory, compose=compose)
            if state.has_data and not arguments.replace:
                terminal.confirm(
                    f"Replace all tasks, conversations and files by the backup of {description['created_at']}?",
                    without_terminal="There are tasks or conversations already. Add --replace to replace them. "
                    f"{_NOTHING_CHANGED}",
                    rejected=_NOTHING_CHANGED,
                )
            _unpack_files(archive, installation, progress, replace=arguments.replace or state.has_data)
            _replace_database(archive, installation, progress)
            with _running([*installation.workspace, "restore", "--finish"], installation, "Run it again."):
                pass
    terminal.notice(f"The backup of {description['created_at']} is restored. Start the services now.")
    return 0


@contextlib.contextmanager
def _check_reachable(directory: Path, *, compose: bool, create: bool = False) -> Iterator[Installation]:
    if compose:
        within = ("docker", "compose", "exec", "--no-TTY")
        address = "dbname=todo user=todo options='-c role=todo_owner -c todo.all_people=on'"
        workspace = (*within, "workspace", "python", "-m", "workspace")
        yield Installation((*within, "postgres"), address, workspace, os.environ)
        return
    settings = running_settings.load(directory).variables
    if settings.keys() & {"DATABASE_URL", "MIGRATION_DATABASE_URL"}:
        with SettingsCheck(["migrations"], settings) as check:
            check.finish()
    with postgres.owner_environment(settings, directory, create=create) as variables:
        url = variables.get("MIGRATION_DATABASE_URL") or variables["DATABASE_URL"]
        address, secret = postgres_programs.get_owner_address(url)
        folders = Path(variables.get("WORKSPACE_DIR") or data_dir.get_workspaces_path(directory))
        if create and "WORKSPACE_DIR" not in variables:
            data_dir.prepare(directory)
            data_dir.workspaces(directory)
        yield Installation(
            (),
            address,
            (sys.executable, "-m", "workspace"),
            {**variables, **secret, "WORKSPACE_DIR": str(folders)},
            Path(variables.get("PG_BIN") or postgres_binaries.find().directory),
        )


@contextlib.contextmanager
def _running(
    command: list[str], installation: Installation, advice: str = _NOTHING_CHANGED, **streams: Any
) -> Iterator[subprocess.Popen[bytes]]:
    """Raises `CliError` with what it says of an error; what it says else is shown."""
    with tempfile.TemporaryFile() as messages:
        with explain_os_error(f"{command[0]} cannot be run"):
            process = subprocess.Popen[bytes](
                command,
                cwd=CHECKOUT,
                env=installation.variables,
                stderr=messages,
                **{"stdin": subprocess.DEVNULL, **streams},
            )
        failure = None
        with process:
            try:
                yield process
                if process.stdin:
                    process.stdin.close()
            except (BrokenPipeError, CliError) as error:  # if the process has ended, it says why
                failure = error
                process.kill()
            except BaseException:
                process.kill()
                raise
        messages.seek(0)
        text = messages.read().decode(errors="replace").strip()
        if "due to lock timeout" in text:
            text = "Another program uses the tables. Stop it first."
        if isinstance(failure, CliError) and not text:
            raise failure
        if process.returncode:
            raise CliError(f"{text or f'{command[0]} ended with exit code {process.returncode}.'} {advice}")
        if text:
            terminal.notice(text)


def _copy(source: IO[bytes] | None, target: IO[bytes] | None, progress: terminal.Progress, name: str) -> None:
    assert source
    assert target
    copied = 0
    while chunk := source.read(1024**2):
        target.write(chunk)
        copied += len(chunk)
        progress.show(f"{name}: {copied / 1024**2:.0f} MB …")


def _read_state(installation: Installation) -> State:
    with _running(installation.psql(), installation, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as psql:
        said, _ = psql.communicate(_STATE.encode())
    version, connections, *migrated = said.decode().split()
    revision, has_data = migrated or (None, "f")
    return State(int(version), int(connections), revision, has_data == "t")


def _open(file: Path) -> zipfile.ZipFile:
    try:
        with explain_os_error(f"{file} cannot be read", _NOTHING_CHANGED):
            return zipfile.ZipFile(file)
    except zipfile.BadZipFile as error:
        raise CliError(_DAMAGED.format(file)) from error


def _check(archive: zipfile.ZipFile, file: Path, progress: terminal.Progress) -> dict[str, Any]:
    try:
        if archive.namelist() != MEMBERS:
            raise zipfile.BadZipFile
        description = json.loads(archive.read(DESCRIPTION))
        with open(os.devnull, "wb") as nowhere:
            for name in MEMBERS:
                with archive.open(name) as member:
                    _copy(member, nowhere, progress, f"checking {name}")
    except (zipfile.BadZipFile, zlib.error, EOFError, ValueError) as error:
        raise CliError(_DAMAGED.format(file)) from error
    if description["format"] > FORMAT or description["revision"] > REVISION:
        raise CliError(f"{file} was written by a newer version. Update this one first. {_NOTHING_CHANGED}")
    if description["revision"] < FIRST:
        raise CliError(
            f"{file} is of version 0.1.0 or older, which this version cannot convert. Restore it with {VERSION_0_2_0}, "
            f"run ./todo migrate there, and back up again. {_NOTHING_CHANGED}"
        )
    return description


def _check_possible(state: State, description: Mapping[str, Any], directory: Path, *, compose: bool) -> None:
    if state.connections or (not compose and running.read_state(directory) is not None):
        stop = "docker compose stop backend mcp" if compose else "./todo down"
        raise CliError(f"Services use the database. Stop them first: {stop}. {_NOTHING_CHANGED}")
    if description["postgres"] > state.postgres:
        raise CliError(
            f"The backup is of PostgreSQL {description['postgres']}, and this server is PostgreSQL {state.postgres}. "
            f"Use a server that is not older. {_NOTHING_CHANGED}"
        )


def _unpack_files(
    archive: zipfile.ZipFile, installation: Installation, progress: terminal.Progress, *, replace: bool
) -> None:
    command = [*installation.workspace, "restore", *(["--replace"] if replace else [])]
    with (
        _running(command, installation, stdin=subprocess.PIPE) as process,
        archive.open(FILES) as member,
    ):
        _copy(member, process.stdin, progress, FILES)


def _replace_database(archive: zipfile.ZipFile, installation: Installation, progress: terminal.Progress) -> None:
    """In one transaction, which ends only after the whole dump was read."""
    with _running(installation.psql(), installation, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL) as psql:
        assert psql.stdin
        psql.stdin.write(_REPLACE.encode())
        psql.stdin.flush()
        command = installation.program("pg_restore", "--no-owner", "--file=-")
        with (
            _running(command, installation, stdin=subprocess.PIPE, stdout=psql.stdin) as pg_restore,
            archive.open(DATABASE) as member,
        ):
            _copy(member, pg_restore.stdin, progress, DATABASE)
        psql.stdin.write(b"COMMIT;\n")
