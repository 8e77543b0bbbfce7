"""Rows of a person are found by the person: so they could be spread over machines, each person's on one."""

import importlib
import pkgutil
from collections.abc import Iterator
from itertools import chain
from typing import Any

import psycopg
import pytest
from sqlalchemy import TextClause

import backend
import mcp_server
from service.database import Statement
from tests import people
from tests.logins import as_admin

# What works across people or finds one, each a function of the tables' owner that returns ids only.
SYSTEM = {
    "renew_leases",
    "stale_runs",
    "runs_of_worker",
    "publish_events",
    "person_of_calendar",
    "sweep_run_events",
    "sweep_kept_requests",
    "sweep_task_calls",
}
FINDS_A_PERSON = "profiles_by_calendar"  # the index of person_of_calendar: by a secret that is nobody else's
KEYS = """
    SELECT relname || ': ' || pg_get_constraintdef(pg_constraint.oid)
    FROM pg_constraint JOIN pg_class ON pg_class.oid = conrelid
    WHERE relname = ANY (%(tables)s) AND contype IN ('p', 'u', 'f') AND NOT (
        (conrelid, conkey[1]) IN (SELECT attrelid, attnum FROM pg_attribute WHERE attname = 'user_id')
        AND (confrelid = 0
            OR (confrelid, confkey[1]) IN (SELECT attrelid, attnum FROM pg_attribute WHERE attname = 'user_id'))
    )
    UNION ALL
    SELECT indexrelid::regclass::text FROM pg_index JOIN pg_class ON pg_class.oid = indrelid
    WHERE relname = ANY (%(tables)s) AND indisunique
    AND (indrelid, indkey[0]) NOT IN (SELECT attrelid, attnum FROM pg_attribute WHERE attname = 'user_id')
    UNION ALL
    SELECT relname || ' has no primary key' FROM pg_class WHERE relname = ANY (%(tables)s)
    AND NOT EXISTS (SELECT FROM pg_index WHERE indrelid = pg_class.oid AND indisprimary)
"""
FUNCTIONS = "SELECT proname FROM pg_proc WHERE pronamespace = 'public'::regnamespace AND prosecdef"


@pytest.fixture
def admin(database_url: str) -> Iterator[psycopg.Connection[Any]]:
    with psycopg.connect(as_admin(database_url), autocommit=True) as connection:
        yield connection


def statements() -> set[str]:
    """All that stand in the services' modules, as they are sent."""
    found = set[str]()
    for room in (backend, mcp_server):
        for module in pkgutil.walk_packages(room.__path__, f"{room.__name__}."):
            if not module.name.endswith("__main__"):
                for value in vars(importlib.import_module(module.name)).values():
                    found |= {people.numbered(one.text) for one in _flat(value)}
    return found


def _flat(value: object) -> Iterator[Statement]:
    """Those in a module's value, which may be several, or written in SQL as a whole."""
    match value:
        case Statement():
            yield value
        case TextClause() if value.text.lstrip().startswith(("SELECT", "WITH")):
            yield Statement(value)
        case dict():
            yield from chain.from_iterable(map(_flat, value.values()))
        case list() | tuple():
            yield from chain.from_iterable(map(_flat, value))
        case _:
            pass


def test_every_key_begins_with_the_person(admin: psycopg.Connection[Any]) -> None:
    tables = [*people.tables_of(admin)]
    assert len(tables) > 10
    others = {name for (name,) in admin.execute(KEYS, {"tables": tables}).fetchall()}
    assert others == {FINDS_A_PERSON}


def test_what_works_across_people_is_a_function_that_is_known(admin: psycopg.Connection[Any]) -> None:
    assert {name for (name,) in admin.execute(FUNCTIONS).fetchall()} == SYSTEM


def test_every_statement_names_the_person_by_equality(admin: psycopg.Connection[Any]) -> None:
    """Of those that are made when they are sent, tests/test_plans.py reads what is sent in a day."""
    tables, found = people.tables_of(admin), statements()
    assert len(found) > 100
    assert list(people.problems(admin, found, tables)) == []


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT * FROM tasks WHERE id = $1",
        "SELECT * FROM tasks WHERE user_id = ANY ($1)",
        "SELECT * FROM tasks WHERE user_id = $1 OR id = $2",
        "SELECT * FROM tasks WHERE user_id > $1",
        "SELECT * FROM runs, tasks WHERE tasks.user_id = $1",
        "UPDATE tasks SET title = '' WHERE id = $1",
        "DELETE FROM tasks WHERE id IN (SELECT task_id FROM task_changes WHERE user_id = $1)",
        "WITH gone AS (DELETE FROM runs WHERE id = $1 RETURNING user_id) SELECT * FROM tasks JOIN gone USING (user_id)",
    ],
)
@pytest.mark.parametrize("reads_whole_tables", ["on", "off"])
def test_a_statement_that_does_not_is_found(
    admin: psycopg.Connection[Any], statement: str, reads_whole_tables: str
) -> None:
    """However it is planned, which depends on how many rows PostgreSQL takes a table to have."""
    admin.execute(f"SET enable_seqscan = {reads_whole_tables}".encode())
    assert len(list(people.problems(admin, [statement], people.tables_of(admin)))) == 1
