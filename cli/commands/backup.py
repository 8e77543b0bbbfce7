"""Everything that is stored, in one ZIP file: a description, a dump of the database and the files of all users.

A ZIP has a checksum of each member, and its table of contents at the end: what is damaged or cut off is noticed.
"""

import argparse
import json
import os
import shutil
import subprocess
import zipfile
import zlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Self

from cli import terminal
from cli.arguments import Commands, add_command
from cli.commands import dump
from cli.commands.stored_data import (
    NOTHING_CHANGED,
    Installation,
    State,
    check_reachable,
    copy,
    read_state,
    run_program,
)
from cli.commands.user_data import check_new, new_file
from cli.data_dir import get_option
from cli.errors import CliError, explain_os_error
from cli.services import running
from common.revision import FIRST, REVISION, VERSION_0_2_0

FORMAT = 1
DESCRIPTION, FILES = "backup.json", "files.tar"
MEMBERS = [dump.MEMBER, FILES, DESCRIPTION]
_MAX_DESCRIPTION_BYTES = 1024**2
_DAMAGED = f"{{}} is no backup, or it is damaged or cut off. {NOTHING_CHANGED}"
_POWERFUL = (
    "The login may do more on the database's server than to use its own database, and so could a backup. Set "
    f"MIGRATION_DATABASE_URL to the address of the login todo_owner, which docs/data.md describes. {NOTHING_CHANGED}"
)


@dataclass(frozen=True)
class Description:
    """What a backup says of itself."""

    revision: str
    postgres: int
    created_at: str
    rows: Mapping[str, int]
    """The number of rows of each table; nothing in backups of older versions."""
    format: int = FORMAT

    @classmethod
    def parse(cls, text: bytes) -> Self:
        """Raises `ValueError` if anything is not of its kind: parts become statements, and are shown."""
        said = json.loads(text)
        if not isinstance(said, dict) or not isinstance(rows := said.setdefault("rows", {}), dict):
            raise ValueError
        for table, count in rows.items():
            if not dump.TABLE.fullmatch(table) or type(count) is not int:
                raise ValueError
        values: dict[str, Any] = {name: said.get(name) for name in cls.__annotations__}
        for name, kind in {"revision": str, "postgres": int, "created_at": str, "format": int}.items():
            if type(values[name]) is not kind:
                raise ValueError
        datetime.fromisoformat(said["created_at"])
        return cls(**values)


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
        check_reachable(directory, compose=compose) as installation,
        new_file(file) as out,
        terminal.Progress() as progress,
    ):
        state = read_state(installation)
        if state.revision is None:
            raise CliError("The database is empty, so there is nothing to back up.")
        with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
            with dump.hold_snapshot(installation) as snapshot:
                dump.write(archive, installation, snapshot.name, progress)
            _write_files(archive, installation, progress)
            rows = {table: count for table, count in snapshot.rows.items() if dump.TABLE.fullmatch(table)}
            now = datetime.now(UTC).isoformat(timespec="seconds")
            description = Description(state.revision, state.postgres, now, rows)
            archive.writestr(DESCRIPTION, json.dumps(asdict(description)))
        with zipfile.ZipFile(out) as archive:
            dump.check_rows(archive, installation, snapshot.rows, progress)
    terminal.notice(f"The database and all files are in {file}. Anyone who can read it can read everything.")
    return 0


def _write_files(archive: zipfile.ZipFile, installation: Installation, progress: terminal.Progress) -> None:
    with (
        run_program([*installation.workspace, "backup"], installation, stdout=subprocess.PIPE) as process,
        archive.open(FILES, "w", force_zip64=True) as member,
    ):
        copy(process.stdout, member, progress, FILES)


def run_restore(arguments: argparse.Namespace) -> int:
    """Replaces the database in one transaction, and then the files, which were unpacked before."""
    file, compose, directory = arguments.file.resolve(), arguments.compose, arguments.data_dir
    with terminal.Progress() as progress, _open(file) as archive:
        description = _check(archive, file, progress)
        with check_reachable(directory, compose=compose, create=True) as installation:
            state = read_state(installation)
            _check_possible(state, description, directory, compose=compose)
            if state.has_data and not arguments.replace:
                terminal.confirm(
                    f"Replace all tasks, conversations and files by the backup of {description.created_at}?",
                    without_terminal="There are tasks or conversations already. Add --replace to replace them. "
                    f"{NOTHING_CHANGED}",
                    rejected=NOTHING_CHANGED,
                )
            unpack_files(archive, installation, progress, replace=arguments.replace or state.has_data)
            replace_all(archive, installation, description.rows, progress)
    terminal.notice(f"The backup of {description.created_at} is restored. Start the services now.")
    return 0


def replace_all(
    archive: zipfile.ZipFile, installation: Installation, rows: Mapping[str, int], progress: terminal.Progress
) -> None:
    """Replaces the database, and the files by those that were unpacked before."""
    try:
        dump.replace_database(archive, installation, rows, progress)
        with run_program([*installation.workspace, "restore", "--finish"], installation, "Run it again."):
            pass
    except KeyboardInterrupt:
        raise CliError(
            "The restore was interrupted: the files may not be those of the tasks and conversations. Run it again."
        ) from None


def _open(file: Path) -> zipfile.ZipFile:
    try:
        with explain_os_error(f"{file} cannot be read", NOTHING_CHANGED):
            return zipfile.ZipFile(file)
    except zipfile.BadZipFile as error:
        raise CliError(_DAMAGED.format(file)) from error


def _check(archive: zipfile.ZipFile, file: Path, progress: terminal.Progress) -> Description:
    try:
        if archive.namelist() != MEMBERS or not all(map(_is_readable, archive.infolist())):
            raise zipfile.BadZipFile
        if archive.getinfo(DESCRIPTION).file_size > _MAX_DESCRIPTION_BYTES:
            raise zipfile.BadZipFile
        description = Description.parse(archive.read(DESCRIPTION))
        with open(os.devnull, "wb") as nowhere:
            for name in MEMBERS:
                with archive.open(name) as member:
                    copy(member, nowhere, progress, f"checking {name}")
    except (zipfile.BadZipFile, zlib.error, EOFError, ValueError) as error:
        raise CliError(_DAMAGED.format(file)) from error
    if description.format > FORMAT or description.revision > REVISION:
        raise CliError(f"{file} was written by a newer version. Update this one first. {NOTHING_CHANGED}")
    if description.revision < FIRST:
        raise CliError(
            f"{file} is of version 0.1.0 or older, which this version cannot convert. Restore it with {VERSION_0_2_0}, "
            f"run ./todo migrate there, and back up again. {NOTHING_CHANGED}"
        )
    return description


def _is_readable(member: zipfile.ZipInfo) -> bool:
    """Whether it is compressed as ours are, and not encrypted."""
    return member.compress_type in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED) and not member.flag_bits & 1


def _check_possible(state: State, description: Description, directory: Path, *, compose: bool) -> None:
    if state.connections or (not compose and running.read_state(directory) is not None):
        stop = "docker compose stop backend mcp" if compose else f"./todo down{get_option(directory)}"
        raise CliError(f"Services use the database. Stop them first: {stop}. {NOTHING_CHANGED}")
    if state.is_powerful:
        raise CliError(_POWERFUL)
    if description.postgres > state.postgres:
        raise CliError(
            f"The backup is of PostgreSQL {description.postgres}, and this server is PostgreSQL {state.postgres}. "
            f"Use a server that is not older. {NOTHING_CHANGED}"
        )


def unpack_files(
    archive: zipfile.ZipFile, installation: Installation, progress: terminal.Progress, *, replace: bool
) -> None:
    needed = archive.getinfo(FILES).file_size
    if installation.files and (free := shutil.disk_usage(installation.files).free) < needed:
        raise CliError(
            f"The files of the backup need {needed // 1024**2} MB, and {free // 1024**2} MB are free. {NOTHING_CHANGED}"
        )
    command = [*installation.workspace, "restore", *(["--replace"] if replace else [])]
    with (
        run_program(command, installation, stdin=subprocess.PIPE) as process,
        archive.open(FILES) as member,
    ):
        copy(member, process.stdin, progress, FILES)
