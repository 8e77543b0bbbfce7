"""A managed database, set up as docs/data.md says. Its administrator is no superuser, but may create roles."""

import re
import subprocess
from collections.abc import Iterator
from textwrap import dedent

import psycopg
import pytest

from cli.database import postgres_binaries
from cli.database.postgres import Cluster
from common.database import schema
from tests.chaos.system import reachable_directory
from tests.conftest import ROOT
from tests.migrations.process import run

pytestmark = pytest.mark.long

DOCUMENT = (ROOT / "docs/data.md").read_text()
ROLES = ("todo_app", "todo_owner", "todo_service")


@pytest.fixture(scope="module")
def superuser() -> Iterator[psycopg.Connection]:
    """Of a server that has none of the roles."""
    with (
        reachable_directory() as directory,
        Cluster.start(directory / "data", durable=False) as cluster,
        psycopg.connect(cluster.admin_url, autocommit=True) as connection,
    ):
        connection.execute("CREATE ROLE rds LOGIN CREATEROLE CREATEDB")
        for role in ROLES:
            connection.execute(f"ALTER ROLE {role} RENAME TO {role}_of_another_database".encode())
        yield connection


@pytest.fixture
def administrator(superuser: psycopg.Connection) -> Iterator[str]:
    """The address of one; its database and the roles that it makes are gone after the test."""
    superuser.execute("CREATE DATABASE managed OWNER rds")
    yield f"postgresql://rds@/managed?host={superuser.info.host}"
    superuser.execute("DROP DATABASE managed WITH (FORCE)")
    for role in ROLES:
        superuser.execute(f"DROP ROLE IF EXISTS {role}".encode())


async def look(url: str) -> schema.DatabaseCheck:
    return await schema.check_url(url)


def migrate(url: str) -> str:
    process = run(url)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 0, said
    return said


def read_block(beginning: str) -> str:
    """The lines of the document's block that begins so."""
    [block] = re.findall(rf"^    {beginning}.*\n(?:    .*\n)*", DOCUMENT, re.MULTILINE)
    return dedent(block)


def type_into_psql(url: str) -> None:
    """What the document says to type into psql, after the command that starts it."""
    command, _, lines = read_block("psql").partition("\n")
    program = postgres_binaries.find().directory / "psql"
    done = subprocess.run(
        ["sh", "-c", command.replace("psql", str(program), 1)],
        cwd=ROOT,
        env={"ADMIN_DATABASE_URL": url},
        input=lines.replace("…", "secret"),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


async def test_one_login(administrator: str) -> None:
    with psycopg.connect(administrator, autocommit=True) as connection:
        connection.execute(read_block("ALTER ROLE").encode())
    assert "the login of DATABASE_URL owns the tables" in migrate(administrator)
    finding = await look(administrator)
    assert finding.problem is None
    assert "as the owner of the tables" in (finding.warning or "")


@pytest.mark.parametrize("migrated", [False, True])
async def test_logins_of_the_script(administrator: str, migrated: bool) -> None:
    if migrated:
        migrate(administrator)
    for _ in range(2):
        type_into_psql(administrator)
    owner, service = (administrator.replace("//rds@", f"//{role}@") for role in ("todo_owner", "todo_service"))
    migrate(owner)
    assert await look(service) == schema.DatabaseCheck()
    with psycopg.connect(owner) as connection:
        connection.execute("SET todo.all_people = 'on'")
        connection.execute("INSERT INTO people (user_id, last_task_id) VALUES ('alice', 1)")
        assert connection.execute("SELECT user_id FROM people").fetchall() == [("alice",)]
        connection.execute("SET todo.all_people = 'off'")
        assert connection.execute("SELECT user_id FROM people").fetchall() == []
