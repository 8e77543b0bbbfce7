"""What reads and writes everything that is stored: PostgreSQL's programs and those of the workspace."""

import contextlib
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from cli import data_dir, terminal
from cli.data_dir import CHECKOUT
from cli.database import postgres, postgres_binaries
from cli.errors import CliError, explain_os_error
from cli.services import running_settings
from cli.services.settings_check import SettingsCheck
from common import postgres_programs

NOTHING_CHANGED = "Nothing was changed."
_UNREADABLE = "pg_restore: error: "
_OLD_PROGRAMS = (
    "PostgreSQL's programs are too old to restore a backup safely. Update them, or set PG_BIN to the folder of newer "
    "ones (since August 2025)."
)
# What follows the first line, such as the statement, is not for the operator.
_SERVER_ERROR = re.compile(r"^(?:psql:.*? )?(?:ERROR|error): +(.*)$", re.MULTILINE)
# Roles that a login may become count as its own.
_STATE = r"""
BEGIN;
SET LOCAL lock_timeout = '10s';
SET LOCAL todo.all_people = 'on';
SELECT current_setting('server_version_num')::int / 10000;
SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'todo';
SELECT EXISTS (
    SELECT FROM pg_roles
    WHERE pg_has_role(session_user, oid, 'MEMBER') AND (
        rolsuper OR rolname IN ('pg_execute_server_program', 'pg_read_server_files', 'pg_write_server_files')
    )
);
SELECT to_regclass('public.alembic_version') IS NOT NULL AS migrated \gset
\if :migrated
SELECT version_num FROM public.alembic_version;
SELECT EXISTS (SELECT FROM public.tasks) OR EXISTS (SELECT FROM public.conversations);
\endif
COMMIT;
"""


@dataclass(frozen=True)
class Installation:
    """On this machine, or in the containers of compose."""

    postgres: tuple[str, ...]
    """Comes before the name of one of PostgreSQL's programs; empty for those of `binaries`."""
    address: str
    workspace: tuple[str, ...]
    variables: Mapping[str, str]
    binaries: Path | None = None
    database: Path | None = None
    files: Path | None = None
    """Where they are, if that is on this machine."""

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
    is_powerful: bool
    """Whether the login can do more than work in its database."""
    revision: str | None = None
    has_data: bool = False


@contextlib.contextmanager
def check_reachable(directory: Path, *, compose: bool, create: bool = False) -> Iterator[Installation]:
    if compose:
        within = ("docker", "compose", "exec", "--no-TTY")
        address = "dbname=todo user=todo_owner options='-c todo.all_people=on'"
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
        is_embedded = not settings.keys() & {"DATABASE_URL", "MIGRATION_DATABASE_URL"}
        yield Installation(
            (),
            address,
            (sys.executable, "-m", "workspace"),
            {**variables, **secret, "WORKSPACE_DIR": str(folders)},
            Path(variables.get("PG_BIN") or postgres_binaries.find().directory),
            directory if is_embedded else None,
            folders,
        )


@contextlib.contextmanager
def run_program(
    command: list[str], installation: Installation, advice: str = NOTHING_CHANGED, **streams: Any
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
                _kill(process)
            except BaseException:
                _kill(process)
                raise
        messages.seek(0)
        text = _explain(messages.read().decode(errors="replace").strip())
        if isinstance(failure, CliError) and not text:
            raise failure
        if process.returncode:
            raise CliError(f"{text or f'{command[0]} ended with exit code {process.returncode}.'} {advice}")
        if text:
            terminal.notice(text)


def _kill(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    if process.stdin:
        with contextlib.suppress(BrokenPipeError):  # what was not sent yet
            process.stdin.close()


def _explain(text: str) -> str:
    """Returns one sentence for what a program says of an error, where that would not be understood."""
    if "due to lock timeout" in text:
        return "Another program uses the tables. Stop it first."
    if "--restrict-key" in text:
        return _OLD_PROGRAMS
    if "backslash commands are restricted" in text or text.startswith("\\unrestrict"):
        return "The backup contains commands of psql, which no backup of this program has."
    if found := _SERVER_ERROR.search(text):
        return f"PostgreSQL says: {found[1]}."
    if text.startswith(_UNREADABLE):
        return f"The dump of the backup cannot be read: {text.removeprefix(_UNREADABLE)}."
    return text


def copy(source: IO[bytes] | None, target: IO[bytes] | None, progress: terminal.Progress, name: str) -> None:
    assert source
    assert target
    copied = 0
    while chunk := source.read(1024**2):
        target.write(chunk)
        copied += len(chunk)
        progress.show(f"{name}: {copied / 1024**2:.0f} MB …")


def read_state(installation: Installation) -> State:
    with run_program(installation.psql(), installation, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as psql:
        said, _ = psql.communicate(_STATE.encode())
    version, connections, is_powerful, *migrated = said.decode().split()
    revision, has_data = migrated or (None, "f")
    return State(int(version), int(connections), is_powerful == "t", revision, has_data == "t")
