"""`python -m migrations [REVISION]`: bring the database at DATABASE_URL to the newest revision, or to the one named."""

import logging
import os
import sys

from alembic import command
from alembic.util.exc import CommandError
from sqlalchemy.exc import ArgumentError, OperationalError

from migrations.schema import alembic_config


def main() -> None:
    logging.basicConfig(level=logging.WARNING, format="%(message)s", stream=sys.stderr)
    logging.getLogger("alembic.runtime.migration").addFilter(lambda record: record.msg.startswith("Running"))
    logging.getLogger("alembic.runtime.migration").setLevel(logging.INFO)
    url = os.environ.get("DATABASE_URL")
    if not url:
        sys.exit("DATABASE_URL is not set: give the address of the database to migrate.")
    revision = sys.argv[1] if len(sys.argv) > 1 else "head"
    config = alembic_config(url)
    try:
        if revision == "base" or revision.startswith("-"):
            command.downgrade(config, revision)
        else:
            command.upgrade(config, revision)
    except OperationalError as error:
        sys.exit(f"The database cannot be reached: {str(error.orig).splitlines()[0]}")
    except ArgumentError:
        sys.exit("DATABASE_URL is not an address of a PostgreSQL database: postgresql://user@host/name.")
    except CommandError as error:
        sys.exit(f"The migration cannot run: {error}")


if __name__ == "__main__":
    main()
