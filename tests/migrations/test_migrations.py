import os
from contextlib import redirect_stdout
from io import StringIO
from urllib.parse import urlsplit

import psycopg
import pytest
from alembic import command
from psycopg.sql import SQL, Identifier

from common.database import schema
from migrations.database import create_alembic_config
from tests.logins import as_admin, as_owner, as_service
from tests.migrations.process import run
from tests.scale.pooler import run_pgbouncer

LEFT = """
    SELECT current_user, coalesce(current_setting('todo.all_people', true), ''),
        (SELECT count(*) FROM pg_locks JOIN pg_database ON pg_database.oid = database
            WHERE locktype = 'advisory' AND datname = current_database())
"""


def tables(url: str) -> set[str]:
    with psycopg.connect(as_admin(url)) as connection:
        found = connection.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'public'").fetchall()
    return {name for (name,) in found} - {"alembic_version"}


def test_models_equal_the_database(fresh_database_url: str) -> None:
    with redirect_stdout(StringIO()):
        command.check(create_alembic_config(as_owner(fresh_database_url)))


@pytest.mark.parametrize(
    ("revision", "sentence"), [("9999", "update the program"), ("0f1e2d3c4b5a", "of another program")]
)
async def test_unknown_revision_is_left_alone(fresh_database_url: str, revision: str, sentence: str) -> None:
    """A newer one, and one of another program that uses Alembic."""
    with psycopg.connect(as_admin(fresh_database_url)) as connection:
        connection.execute("UPDATE alembic_version SET version_num = %s", [revision])
    process = run(as_owner(fresh_database_url))
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 1
    [line] = errors.splitlines()
    assert revision in line
    assert sentence in line
    assert (await schema.check_url(as_service(fresh_database_url))).problem == line


@pytest.mark.long(seconds=11)
def test_several_at_once(empty_database_url: str) -> None:
    """Behind a pooler, too, in whose session nothing is left of them."""
    with run_pgbouncer(empty_database_url, default_pool_size=1, reserve_pool_size=0) as pooled_url:
        started = [run(url) for url in (empty_database_url, pooled_url, pooled_url)]
        results = [process.communicate(timeout=60) for process in started]
        assert [process.returncode for process in started] == [0, 0, 0], results
        assert tables(empty_database_url)
        with psycopg.connect(pooled_url, prepare_threshold=None) as connection:
            assert connection.execute(LEFT).fetchone() == ("todo_owner", "", 0)


@pytest.mark.long
@pytest.mark.parametrize(
    ("url", "status"), [(None, 78), ("postgresql://nobody:secret@127.0.0.1:9/none", 1), ("not a url", 78)]
)
def test_without_a_database(url: str | None, status: int) -> None:
    process = run(url)
    output, errors = process.communicate(timeout=60)
    assert process.returncode == status
    assert output == ""
    assert len(errors.strip().splitlines()) == 1
    assert "Traceback" not in errors
    assert "secret" not in errors


@pytest.mark.long(seconds=10)
def test_owner_who_may_not_create_roles(server_url: str, empty_database_url: str) -> None:
    """As on a managed database; the cluster is this test's own, because roles belong to all of it."""
    if "DATABASE_URL" in os.environ:
        pytest.skip("a server of somebody else's is not given new users")
    name = urlsplit(empty_database_url).path.removeprefix("/")
    with psycopg.connect(server_url, autocommit=True) as admin:
        admin.execute("ALTER ROLE todo_app RENAME TO todo_app_aside")
        admin.execute("CREATE ROLE plain_owner LOGIN NOSUPERUSER NOCREATEROLE")
        try:
            admin.execute(SQL("ALTER DATABASE {} OWNER TO plain_owner").format(Identifier(name)))
            url = empty_database_url.replace("//todo_owner@", "//plain_owner@")
            refused = run(url)
            _, errors = refused.communicate(timeout=60)
            assert refused.returncode == 1
            assert "CREATE ROLE todo_app NOLOGIN NOSUPERUSER NOBYPASSRLS;" in errors
            assert "Traceback" not in errors
            assert tables(url) == set()
            admin.execute("CREATE ROLE todo_app NOLOGIN NOSUPERUSER NOBYPASSRLS")
            admin.execute("GRANT todo_app TO plain_owner")
            allowed = run(url)
            _, errors = allowed.communicate(timeout=60)
            assert allowed.returncode == 0, errors
            assert tables(url)
        finally:
            with psycopg.connect(as_admin(empty_database_url), autocommit=True) as inside:
                inside.execute("DROP OWNED BY plain_owner, todo_app")
                inside.execute("ALTER SCHEMA public OWNER TO app")
            admin.execute(SQL("ALTER DATABASE {} OWNER TO app").format(Identifier(name)))
            admin.execute("DROP ROLE IF EXISTS todo_app")
            admin.execute("DROP ROLE plain_owner")
            admin.execute("ALTER ROLE todo_app_aside RENAME TO todo_app")
