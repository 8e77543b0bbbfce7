"""The revision of the database's tables. Not in `common.database`, so that `./todo up` reads it without a pool."""

from pathlib import Path

_VERSIONS = Path(__file__).parents[1] / "migrations" / "versions"
_NUMBERS = [path.name.partition("_")[0] for path in _VERSIONS.glob("[0-9]*_*.py")]
FIRST, REVISION = min(_NUMBERS), max(_NUMBERS)
"""The oldest that is migrated, and the newest: by the files' names, because the services do not import `migrations`."""
VERSION_0_2_0 = "version 0.2.0 (commit 226d620b)"
_TOO_OLD = (
    f"The database is of version 0.1.0 or older, which this version cannot convert: install {VERSION_0_2_0}, run "
    "./todo migrate there, then install this version again."
)


def read_revision(url: str) -> str | None:
    """Reads the revision of a database, None if it has none, without Alembic, whose import takes a second."""
    import psycopg  # `./todo` may run without packages

    with psycopg.connect(url, connect_timeout=5) as connection:
        if connection.execute("SELECT to_regclass('alembic_version')").fetchone() == (None,):
            return None
        try:
            row = connection.execute("SELECT version_num FROM alembic_version").fetchone()
        except psycopg.errors.InsufficientPrivilege:  # the services' login may read it as todo_app
            connection.rollback()
            connection.execute("SET LOCAL ROLE todo_app")
            row = connection.execute("SELECT version_num FROM alembic_version").fetchone()
        return row[0] if row else None


def describe_revision(revision: str | None) -> str | None:
    """Returns why a service cannot work on a database at this revision, as a sentence."""
    if revision is None:
        return "The database is not migrated yet: run ./todo migrate."
    if revision == REVISION:
        return None
    if not revision.isdecimal():
        return f"The database is of another program, at its revision {revision}: use a database that is empty."
    if revision > REVISION:
        return f"The database is at revision {revision}, newer than this program's {REVISION}: update the program."
    if revision < FIRST:
        return _TOO_OLD
    return f"The database is at revision {revision}, this program needs {REVISION}: run ./todo migrate."
