"""Upgrades and the way back, over rows that were there before."""

import subprocess
import sys
from typing import Any

import psycopg
import pytest
from alembic import command
from alembic.script import ScriptDirectory
from psycopg.rows import dict_row

from database import schema
from migrations.schema import alembic_config
from tests.conftest import ROOT

REVISIONS = [
    script.revision for script in ScriptDirectory.from_config(alembic_config("")).walk_revisions("base", "heads")
][::-1]
ROWS = """
INSERT INTO conversations (id, user_id, title, status) VALUES ('thr_{0}', 'alice', 'Größe {0}', '{{"type": "active"}}');
INSERT INTO runs (id, conversation_id, user_id, status, outcome, usage)
    VALUES ('run_{0}', 'thr_{0}', 'alice', 'ended', 'completed', '{{"requests": 2, "input_tokens": 10}}'),
           ('run_{0}_now', 'thr_{0}', 'alice', 'running', NULL, NULL);
INSERT INTO messages (conversation_id, id, user_id, run_id, role, kind, item, superseded_by)
    VALUES ('thr_{0}', 'msg_{0}', 'alice', 'run_{0}', 'user', 'user_message', '{{"content": ["hi"]}}', NULL),
           ('thr_{0}', 'wid_{0}', 'alice', 'run_{0}', 'app', 'widget', '{{"widget": {{}}}}', 'run_{0}_now');
INSERT INTO tasks (user_id, title, description, status, completed_at)
    VALUES ('alice', 'milk {0}', 'two', 'pending', NULL), ('bob', 'bread {0}', '', 'completed', now());
INSERT INTO task_changes (user_id, task_id, operation, arguments, after, actor, idempotency_key)
    VALUES ('alice', 1, 'add', '{{"title": "milk"}}', '{{"id": 1}}', 'mcp', 'key {0}');
"""


def add_rows(url: str, name: str) -> None:
    """Some of every kind, as a service of any revision has written them."""
    with psycopg.connect(url) as connection:
        connection.execute(ROWS.format(name).encode())


def contents(url: str) -> dict[str, list[dict[str, Any]]]:
    with psycopg.Connection[dict[str, Any]].connect(url, row_factory=dict_row) as connection:
        tables = connection.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'public' ORDER BY 1").fetchall()
        names = [row["tablename"] for row in tables if row["tablename"] != "alembic_version"]
        return {name: connection.execute(f"SELECT * FROM {name} ORDER BY id".encode()).fetchall() for name in names}


def as_before(before: dict[str, list[dict[str, Any]]], after: dict[str, list[dict[str, Any]]]) -> bool:
    """Whether every row of the revision before still has all its values; columns and tables may have come."""
    return all(
        [{name: row[name] for name in old} for old, row in zip(rows, after[table], strict=True)] == rows
        for table, rows in before.items()
    )


@pytest.mark.parametrize("revision", REVISIONS[1:])
def test_a_step_keeps_the_rows_of_the_revision_before_it_forward_and_back(
    empty_database_url: str, revision: str
) -> None:
    config = alembic_config(empty_database_url)
    for step in REVISIONS[: REVISIONS.index(revision)]:
        command.upgrade(config, step)
        add_rows(empty_database_url, step)
    before = contents(empty_database_url)
    assert all(before.values())

    command.upgrade(config, revision)
    assert as_before(before, contents(empty_database_url))
    command.downgrade(config, "-1")
    assert contents(empty_database_url) == before

    command.upgrade(config, revision)
    add_rows(empty_database_url, revision)
    newer = contents(empty_database_url)
    assert all(len(newer[table]) > len(rows) for table, rows in before.items())
    command.downgrade(config, "-1")
    assert as_before(contents(empty_database_url), newer), "rows of the newer revision are kept on the way back too"


def test_on_the_way_back_what_was_used_by_deleted_conversations_is_lost_and_nothing_else(
    empty_database_url: str,
) -> None:
    config = alembic_config(empty_database_url)
    command.upgrade(config, "head")
    for name in ("deleted", "kept"):
        add_rows(empty_database_url, name)
    with psycopg.connect(empty_database_url) as connection:
        connection.execute("DELETE FROM conversations WHERE id = 'thr_deleted'")
    assert [row["conversation_id"] for row in contents(empty_database_url)["runs"]] == [
        None,
        None,
        "thr_kept",
        "thr_kept",
    ]
    command.downgrade(config, "0003")
    left = contents(empty_database_url)
    assert [row["id"] for row in left["runs"]] == ["run_kept", "run_kept_now"]
    assert len(left["messages"]) == 2
    assert len(left["tasks"]) == 4


def test_the_command_goes_back_to_a_revision_and_refuses_a_newer_one(fresh_database_url: str) -> None:
    def run(*arguments: str) -> tuple[int, str]:
        done = subprocess.run(
            [sys.executable, "-m", "migrations", *arguments],
            cwd=ROOT,
            env={"DATABASE_URL": fresh_database_url},
            capture_output=True,
            text=True,
            check=False,
        )
        return done.returncode, done.stderr

    def revision() -> str:
        with psycopg.connect(fresh_database_url) as connection:
            row = connection.execute("SELECT version_num FROM alembic_version").fetchone()
        assert row is not None
        return row[0]

    assert run("0001")[0] == 0
    assert revision() == "0001"
    assert run()[0] == 0
    assert revision() == schema.REVISION
    with psycopg.connect(fresh_database_url) as connection:
        connection.execute("UPDATE alembic_version SET version_num = '9999'")
    status, sentence = run()
    assert status == 1
    assert sentence == (
        f"The database is at revision 9999, newer than this program's {schema.REVISION}: update the program.\n"
    )
