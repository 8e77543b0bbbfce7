"""`python -m migrations [REVISION]`: bring the database at DATABASE_URL to the newest revision, or to the one named."""

import logging
import os
import sys
from pathlib import Path

import psycopg

VERSIONS = Path(__file__).parent / "versions"

FOR_AN_ADMINISTRATOR = """\
The user of DATABASE_URL may not do what the migration needs ({}). An administrator of the database has to run, once:
    CREATE ROLE todo_app NOLOGIN NOSUPERUSER NOBYPASSRLS;
    GRANT todo_app TO the user of DATABASE_URL;
Then run ./todo migrate again."""


def main() -> None:
    logging.basicConfig(level=logging.WARNING, format="%(message)s", stream=sys.stderr)
    url = os.environ.get("DATABASE_URL")
    if not url:
        sys.exit("DATABASE_URL is not set: give the address of the database to migrate.")
    if not url.startswith(("postgres://", "postgresql://")):
        sys.exit("DATABASE_URL is not an address of a PostgreSQL database: postgresql://user@host/name.")
    try:
        found, newest = _revision(url), _newest()
        if found is not None and found > newest:
            sys.exit(f"The database is at revision {found}, newer than this program's {newest}: update the program.")
        if len(sys.argv) == 1 and found == newest:
            sys.stderr.write(f"The database is at the newest revision, {newest}.\n")
        else:
            _migrate(url, sys.argv[1] if len(sys.argv) > 1 else "head", found=found or "")
    except psycopg.OperationalError as error:
        sys.exit(f"The database cannot be reached: {_first_line(error)}")


def _newest() -> str:
    """The newest revision, as the names of the files tell it."""
    return max(path.name.partition("_")[0] for path in VERSIONS.glob("[0-9]*_*.py"))


def _revision(url: str) -> str | None:
    """Where the database is; asked before Alembic and the models are loaded, which takes a second."""
    with psycopg.connect(url, connect_timeout=5) as connection:
        if connection.execute("SELECT to_regclass('alembic_version')").fetchone() == (None,):
            return None
        row = connection.execute("SELECT version_num FROM alembic_version").fetchone()
        return row[0] if row else None


def _migrate(url: str, revision: str, *, found: str) -> None:
    from alembic import command
    from alembic.util.exc import CommandError
    from sqlalchemy.exc import ArgumentError, OperationalError, ProgrammingError

    from migrations.schema import alembic_config

    progress = logging.getLogger("alembic.runtime.migration")
    progress.addFilter(lambda record: record.msg.startswith("Running"))
    progress.setLevel(logging.INFO)
    back = revision == "base" or revision.startswith("-") or (revision.isdecimal() and revision < found)
    try:
        (command.downgrade if back else command.upgrade)(alembic_config(url), revision)
    except OperationalError as error:
        sys.exit(f"The database cannot be reached: {_first_line(error.orig)}")
    except ProgrammingError as error:
        if not isinstance(error.orig, psycopg.errors.InsufficientPrivilege):
            raise
        sys.exit(FOR_AN_ADMINISTRATOR.format(_first_line(error.orig)))
    except ArgumentError:
        sys.exit("DATABASE_URL is not an address of a PostgreSQL database: postgresql://user@host/name.")
    except CommandError as error:
        sys.exit(f"The migration cannot run: {error}")


def _first_line(error: object) -> str:
    return str(error).splitlines()[0]


if __name__ == "__main__":
    main()
