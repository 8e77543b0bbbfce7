"""The dump of the database in a backup: it is written, its rows are counted, and it replaces the database."""

import contextlib
import re
import secrets
import shutil
import subprocess
import zipfile
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import takewhile
from typing import IO

from cli import terminal
from cli.commands.stored_data import NOTHING_CHANGED, Installation, copy, run_program
from cli.errors import CliError
from common import postgres_programs

MEMBER = "database.dump"
TABLE = re.compile(r"[a-z_][a-z0-9_]*\.[a-z_][a-z0-9_]*")
_END = b"end of the counts\n"
_END_OF_ROWS = b"\\.\n"
# A setting in the address may not reach the server behind a pooler: what it is for is set, and looked at, here again.
# Tables of extensions are not in a dump.
_COUNT_ROWS = """\
BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY;
SET LOCAL todo.all_people = 'on';
SELECT pg_export_snapshot();
SELECT string_agg(oid::regclass::text, ', ') FROM pg_class
WHERE relkind = 'r' AND row_security_active(oid) AND NOT EXISTS (
    SELECT FROM pg_policy
    WHERE polrelid = pg_class.oid AND polname = 'all_people'
    AND (SELECT oid FROM pg_roles WHERE rolname = current_user) = ANY (polroles)
);
SELECT format('SELECT %L, count(*) FROM %1$s', format('%I.%I', nspname, relname))
FROM pg_class JOIN pg_namespace ON pg_namespace.oid = relnamespace
WHERE relkind = 'r' AND nspname <> 'information_schema' AND nspname NOT LIKE 'pg!_%' ESCAPE '!'
AND NOT EXISTS (
    SELECT FROM pg_depend WHERE classid = 'pg_class'::regclass AND objid = pg_class.oid AND deptype = 'e'
) \\gexec
\\echo end of the counts
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
_CHECK_ALL = """\
SET LOCAL search_path = pg_catalog;
SET LOCAL row_security = on;
SET LOCAL todo.all_people = 'on';
"""
_CHECK = """\
DO $$ BEGIN
    IF (SELECT count(*) FROM {table}) <> {count} THEN
        RAISE EXCEPTION 'the backup lacks some of its {count} rows of {table}';
    END IF;
END $$;
"""
_CHUNK_BYTES = 1024**2


@dataclass(frozen=True)
class Snapshot:
    """What a dump of it must contain."""

    name: str
    rows: Mapping[str, int]
    """The number of rows of each table."""


@contextlib.contextmanager
def hold_snapshot(installation: Installation) -> Iterator[Snapshot]:
    with run_program(installation.psql(), installation, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as psql:
        assert psql.stdin
        assert psql.stdout
        psql.stdin.write(_COUNT_ROWS.encode())
        psql.stdin.flush()
        lines: list[str] = []
        for line in psql.stdout:
            if line == _END:
                break
            lines.append(line.decode().rstrip("\n"))
        else:
            raise CliError(f"psql ended too early. {NOTHING_CHANGED}")
        name, hidden, *counts = lines
        if hidden:
            raise CliError(
                f"The login does not see the rows of all users in {hidden}, so they would be missing in a backup. Set "
                f"MIGRATION_DATABASE_URL to the address of the tables' owner. {NOTHING_CHANGED}"
            )
        yield Snapshot(name, {table: int(count) for table, _, count in (line.rpartition("|") for line in counts)})


def write(archive: zipfile.ZipFile, installation: Installation, snapshot: str, progress: terminal.Progress) -> None:
    command = installation.connected("pg_dump", *postgres_programs.DUMP, f"--snapshot={snapshot}")
    with (
        run_program(command, installation, stdout=subprocess.PIPE) as process,
        archive.open(MEMBER, "w", force_zip64=True) as member,
    ):
        copy(process.stdout, member, progress, MEMBER)


def check_rows(
    archive: zipfile.ZipFile, installation: Installation, expected: Mapping[str, int], progress: terminal.Progress
) -> None:
    """Reads the dump back, which is empty without an error where row-level security hides everything from pg_dump."""
    found = _count_rows(archive, installation, progress)
    for table, count in expected.items():
        if found.get(table, 0) != count:
            raise CliError(
                f"The dump has {found.get(table, 0)} of the {count} rows of {table}, so there is no backup. Set "
                "MIGRATION_DATABASE_URL to the address of PostgreSQL itself, not of a pooler, with the login of the "
                f"tables' owner. {NOTHING_CHANGED}"
            )


def replace_database(
    archive: zipfile.ZipFile, installation: Installation, rows: Mapping[str, int], progress: terminal.Progress
) -> None:
    """In one transaction, which ends only after the whole dump was read and the rows of each table were counted."""
    free = shutil.disk_usage(installation.database).free if installation.database else None
    with run_program(installation.psql(), installation, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL) as psql:
        assert psql.stdin
        psql.stdin.write(_REPLACE.encode())
        written = 0
        # psql takes no command of its own, such as \\!, from what stands between the lines with this key.
        options = ["--no-owner", f"--restrict-key={secrets.token_hex(16)}"]
        with _expand(archive, installation, progress, *options) as text:
            while chunk := text.read(_CHUNK_BYTES):
                written += len(chunk)
                if free is not None and written > free:
                    raise CliError(
                        f"The database of the backup needs more than the {free // 1024**2} MB that are free. "
                        f"{NOTHING_CHANGED}"
                    )
                psql.stdin.write(chunk)
        checks = "".join(_CHECK.format(table=table, count=count) for table, count in rows.items())
        psql.stdin.write(f"{_CHECK_ALL}{checks}COMMIT;\n".encode())


def _count_rows(archive: zipfile.ZipFile, installation: Installation, progress: terminal.Progress) -> dict[str, int]:
    rows: dict[str, int] = {}
    with _expand(archive, installation, progress, "--data-only") as text:
        for line in text:
            if line.startswith(b"COPY ") and line.endswith(b" FROM stdin;\n"):
                table = line.split(b" ", 2)[1].decode()
                rows[table] = sum(1 for _ in takewhile(_END_OF_ROWS.__ne__, text))
    return rows


@contextlib.contextmanager
def _expand(
    archive: zipfile.ZipFile, installation: Installation, progress: terminal.Progress, *options: str
) -> Iterator[IO[bytes]]:
    """Yields the dump as SQL, which pg_restore writes while another thread passes the dump to it."""
    command = installation.program("pg_restore", "--format=custom", "--file=-", *options)

    def feed(target: IO[bytes]) -> None:
        with archive.open(MEMBER) as member, target:
            copy(member, target, progress, MEMBER)

    with (
        ThreadPoolExecutor(1) as pool,
        run_program(command, installation, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process,
    ):
        assert process.stdin
        assert process.stdout
        feeding = pool.submit(feed, process.stdin)
        yield process.stdout
        feeding.result()
