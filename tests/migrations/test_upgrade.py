"""Upgrades of databases that older versions made."""

import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from alembic import command
from alembic.script import ScriptDirectory
from psycopg.rows import dict_row

from cli.database import postgres_binaries
from common.database import schema
from common.revision import REVISION
from migrations.database import create_alembic_config
from tests.conftest import new_database, prepare_roles
from tests.logins import as_admin, as_owner, as_service
from tests.migrations.older import VERSION_0_1_0, create_tables, read_version_0_2_0
from tests.migrations.process import run

Json = dict[str, Any]
# Texts of version 0.2.0: "Fri 2026-11-27 15:00", and "Wed 2026-11-25 09:00" on the clock of Berlin.
FRIDAY = {"date": "2026-11-27", "time": "15:00"}
THURSDAY, SATURDAY = {"date": "2026-11-26", "time": None}, {"date": "2026-11-28", "time": None}


@pytest.fixture(scope="module")
def upgraded_url(server_url: str) -> Iterator[str]:
    """An upgraded database of version 0.2.0, which the tests only read."""
    with new_database(server_url) as (_, url):
        prepare_roles(url)
        create_tables(as_owner(url), read_version_0_2_0())
        command.upgrade(create_alembic_config(as_owner(url)), "head")
        yield url


def rows(url: str, statement: str, *values: Any) -> list[Json]:
    with psycopg.Connection[Json].connect(as_admin(url), row_factory=dict_row) as connection:
        return connection.execute(statement.encode(), values).fetchall()


def test_each_migration_has_the_number_of_its_file() -> None:
    """Or the services would need a revision that no migration has."""
    migrations = ScriptDirectory.from_config(create_alembic_config(""))
    assert migrations.get_heads() == [REVISION]
    for migration in migrations.walk_revisions():
        assert Path(migration.path).name.startswith(f"{migration.revision}_")


def test_an_upgraded_database_is_like_a_new_one(upgraded_url: str, fresh_database_url: str) -> None:
    """Tables, keys, policies, grants and functions; the order of columns may differ."""
    upgraded, new = read_schema(upgraded_url), read_schema(fresh_database_url)
    assert [line for line in new if line not in upgraded] == [], "a migration in migrations/versions/ is missing"
    assert upgraded == new


def read_schema(url: str) -> list[str]:
    program = postgres_binaries.find().directory / "pg_dump"
    dump = [program, "--schema-only", as_admin(url)]
    lines = subprocess.run(dump, capture_output=True, text=True, check=True).stdout.splitlines()
    return sorted(line.strip().rstrip(",") for line in lines if line and not line.startswith(("--", "\\")))


def test_dates_of_stored_results_have_types(upgraded_url: str) -> None:
    details = [
        row["details"]
        for row in rows(upgraded_url, "SELECT details FROM tool_calls WHERE details IS NOT NULL ORDER BY seq")
    ]
    dues = [due for value in details for due in find_values(value, "due")]
    assert {type(due) for due in dues} == {dict, type(None)}
    assert FRIDAY in dues
    added, completed = (
        next(value for value in details if value.get("title") == title and value["status"] == status)
        for title, status in (("buy milk", "pending"), ("water the plants", "completed"))
    )
    assert (added["due"], [task["due"] for task in added["also"]]) == (FRIDAY, [FRIDAY])
    following = completed["next"]
    assert (completed["due"], following["due"], following["task"]["due"]) == (THURSDAY, SATURDAY, SATURDAY)
    pages = [value for value in details if "tasks" in value]
    assert {page["now"] for page in pages} == {"2026-11-25T09:00:00+01:00"}
    assert {page["time_zone"] for page in pages} == {"Europe/Berlin"}
    deleted = next(value for value in details if "task" in value)
    assert set(deleted["task"]["due"]) == {"date", "time"}


def find_values(value: Any, name: str) -> Iterator[Any]:
    if isinstance(value, dict):
        if name in value:
            yield value[name]
        for each in value.values():
            yield from find_values(each, name)
    elif isinstance(value, list):
        for each in value:
            yield from find_values(each, name)


def test_what_the_conversion_of_0_1_0_left_is_dropped(empty_database_url: str) -> None:
    create_tables(empty_database_url, read_version_0_2_0())
    create_tables(empty_database_url, "CREATE SCHEMA v01; CREATE TABLE v01.messages (user_id text)")
    command.upgrade(create_alembic_config(as_owner(empty_database_url)), "head")
    assert rows(empty_database_url, "SELECT FROM pg_namespace WHERE nspname = 'v01'") == []


@pytest.mark.long(seconds=12)
def test_a_locked_table(empty_database_url: str) -> None:
    """Nothing has changed after a migration that could not finish."""
    create_tables(empty_database_url, read_version_0_2_0())
    with psycopg.connect(as_admin(empty_database_url)) as other:
        other.execute("LOCK alembic_version IN SHARE MODE")
        process = run(empty_database_url)
        _, errors = process.communicate(timeout=120)
    assert process.returncode == 1
    assert "Another program uses the tables: stop the services" in errors
    assert rows(empty_database_url, "SELECT * FROM alembic_version") == [{"version_num": "0022"}]
    assert rows(empty_database_url, "SELECT id FROM tool_calls WHERE details->>'due' LIKE 'Fri %%'")


async def test_version_0_1_0_is_rejected(empty_database_url: str) -> None:
    """By the migration, and by the services."""
    create_tables(empty_database_url, VERSION_0_1_0)
    process = run(empty_database_url)
    output, errors = process.communicate(timeout=60)
    assert (process.returncode, output) == (1, "")
    [sentence] = errors.splitlines()
    assert "install version 0.2.0 (commit 226d620b), run ./todo migrate there" in sentence
    assert (await schema.check_url(as_service(empty_database_url))).problem == sentence
    assert await schema.find_owner_problem(empty_database_url) == sentence
    assert rows(empty_database_url, "SELECT * FROM alembic_version") == [{"version_num": "0021"}]
