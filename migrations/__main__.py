"""`python -m migrations` updates the database to the newest revision; with `check` it only checks the settings.

It logs in as the tables' owner: MIGRATION_DATABASE_URL, else DATABASE_URL.
"""

import logging
import os
import sys

import psycopg

from common.environment import find_secrets_folder, read_or_stop, read_settings
from common.revision import FIRST, REVISION, describe_revision, read_revision
from common.settings import OwnerSettings

NOT_ALLOWED = """\
This login may not do what the migration needs ({}). If it is the services' login, set MIGRATION_DATABASE_URL to the
address of the tables' owner. If there are no logins yet, let an administrator of the database run
common/database/roles.sql in it, or, if you can have one login only:
    CREATE ROLE todo_app NOLOGIN NOSUPERUSER NOBYPASSRLS;
    GRANT todo_app TO the user of DATABASE_URL;
Then run ./todo migrate again."""
IN_USE = (
    "Another program uses the tables: stop the services and what else is connected to the database, then run the "
    "migration again. Nothing was changed."
)
OWNER_WARNING = """\
One step is left: the login of DATABASE_URL owns the tables, and the services should not log in as their owner. Let an
administrator of the database run common/database/roles.sql in it, as docs/data.md says. Then set DATABASE_URL to the
login todo_service, and MIGRATION_DATABASE_URL to todo_owner. Until then the services work with a warning; if the login
is a superuser or bypasses row-level security, they do not start.
"""
IS_OWNER = "SELECT pg_has_role(relowner, 'MEMBER') FROM pg_class WHERE oid = to_regclass('alembic_version')"


def main() -> None:
    url = read_or_stop(read_settings, OwnerSettings).migration_database_url.get_secret_value()
    if sys.argv[1:] == ["check"]:
        return
    logging.basicConfig(level=logging.WARNING, format="%(message)s", stream=sys.stderr)
    try:
        current = read_revision(url)
        if current is not None and not (current.isdecimal() and FIRST <= current <= REVISION):
            sys.exit(describe_revision(current))
        if current == REVISION:
            sys.stderr.write(f"The database is at the newest revision, {REVISION}.\n")
        else:
            _migrate(url)
        if not _has_owner_login() and _is_owner(url):
            sys.stderr.write(OWNER_WARNING)
    except psycopg.errors.LockNotAvailable:
        sys.exit(IN_USE)
    except psycopg.errors.InsufficientPrivilege as error:
        sys.exit(NOT_ALLOWED.format(_first_line(error)))
    except psycopg.OperationalError as error:
        sys.exit(f"The database cannot be reached: {_first_line(error)}")


def _has_owner_login() -> bool:
    """Whether there is a login apart from the services'."""
    name, secrets = "MIGRATION_DATABASE_URL", find_secrets_folder()
    return bool(os.environ.get(name)) or (secrets is not None and (secrets / name).exists())


def _is_owner(url: str) -> bool:
    with psycopg.connect(url, connect_timeout=5) as connection:
        return connection.execute(IS_OWNER).fetchone() == (True,)


def _migrate(url: str) -> None:
    from alembic import command
    from alembic.util.exc import CommandError
    from sqlalchemy.exc import ArgumentError, DBAPIError

    from migrations.database import create_alembic_config

    progress = logging.getLogger("alembic.runtime.migration")
    progress.addFilter(lambda record: record.msg.startswith("Running"))
    progress.setLevel(logging.INFO)
    try:
        command.upgrade(create_alembic_config(url), "head")
    except DBAPIError as error:
        raise error.orig or error from error
    except ArgumentError:
        sys.exit("This is not an address of a PostgreSQL database: postgresql://user@host/name.")
    except CommandError as error:
        sys.exit(f"The migration cannot run: {error}")


def _first_line(error: object) -> str:
    return str(error).splitlines()[0]


if __name__ == "__main__":
    main()
