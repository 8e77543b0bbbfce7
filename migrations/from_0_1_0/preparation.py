"""Checks before the conversion of version 0.1.0 that no service is connected, and writes a dump."""

import os
import subprocess
import sys
from datetime import datetime
from pathlib import Path

import psycopg
from alembic.util.exc import CommandError

from common import postgres_programs

VERSION_0_1_0 = "0021"
_OLD_SERVICES = "todo-assistant"  # the application_name of services of version 0.1.0

_TOO_OLD = (
    f"This database is at revision {{}}, older than version 0.1.0 ({VERSION_0_1_0}). Update to version 0.1.0 first, "
    "run ./todo migrate there, and then update to this version."
)
_IN_USE = (
    "{} connections of services are open. Stop the services first (Ctrl-C in ./todo up; docker compose stop backend "
    "mcp; kubectl scale), then run the migration again. Nothing was changed."
)
_NO_DUMP = (
    "This update converts all conversations, and no dump can be written from here: {}. Make one as docs/data.md says, "
    "under “Upgrade from 0.1”, then run the migration again with DUMP_MADE=yes. Nothing was changed."
)
_CONNECTED = """
SELECT count(*) FROM pg_stat_activity
WHERE datname = current_database() AND application_name = %s AND pid <> pg_backend_pid()"""


def prepare(url: str, revision: str) -> None:
    """Checks a database at this revision and writes a dump of it, if it has conversations.

    Raises `CommandError` with a sentence that says what to do.
    """
    if revision < VERSION_0_1_0:
        raise CommandError(_TOO_OLD.format(revision))
    if revision > VERSION_0_1_0:
        return
    with psycopg.connect(url, connect_timeout=5) as connection:
        connection.execute("SET LOCAL todo.all_people = 'on'")
        try:
            if connection.execute("SELECT FROM public.conversations LIMIT 1").fetchone() is None:
                return
        except psycopg.errors.InsufficientPrivilege:  # the migration reports it
            return
        [count] = connection.execute(_CONNECTED, [_OLD_SERVICES]).fetchone() or (0,)
        if count:
            raise CommandError(_IN_USE.format(count))
    _write_dump(url)


def _write_dump(url: str) -> None:
    """Writes a dump to BACKUP_DIR with the pg_dump of PG_BIN or PATH, unless DUMP_MADE says that there is one."""
    if os.environ.get("DUMP_MADE") == "yes":
        return
    directory, program = os.environ.get("BACKUP_DIR"), postgres_programs.find_program("pg_dump", os.environ)
    if not directory or program is None:
        reason = "pg_dump is not installed" if directory else "BACKUP_DIR is not set"
        raise CommandError(_NO_DUMP.format(reason))
    path = Path(directory) / f"todo-0.1.0-{datetime.now():%Y%m%d-%H%M%S}.dump"
    address, variables = postgres_programs.get_owner_address(url)
    path.touch(mode=0o600)
    done = subprocess.run(
        [program, *postgres_programs.DUMP, f"--file={path}", f"--dbname={address}"],
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        path.unlink()
        raise CommandError(_NO_DUMP.format(f"pg_dump failed ({done.stderr.strip()})"))
    sys.stdout.write(f"The database as it was is in {path}.\n")
