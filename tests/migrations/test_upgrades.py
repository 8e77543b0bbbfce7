"""Upgrades of a database with rows in it: none is lost."""

import subprocess
import sys
from typing import Any

import psycopg
import pytest
from alembic import command
from alembic.script import ScriptDirectory

from migrations.schema import alembic_config
from tests.conftest import ROOT
from tests.logins import as_admin, as_owner
from tests.migrations.older_rows import add_rows, contents

REVISIONS = [
    script.revision for script in ScriptDirectory.from_config(alembic_config("")).walk_revisions("base", "heads")
][::-1]


def lost(before: dict[str, list[dict[str, Any]]], after: dict[str, list[dict[str, Any]]]) -> list[str]:
    """Tables in which a row is gone or has another value; columns and tables may have come."""
    return [
        table
        for table, rows in before.items()
        if [{name: row[name] for name in old} for old, row in zip(rows, after[table], strict=True)] != rows
    ]


@pytest.mark.long
def test_every_revision_keeps_the_rows_of_the_one_before(empty_database_url: str) -> None:
    config = alembic_config(empty_database_url)
    for number, revision in enumerate(REVISIONS):
        before = contents(empty_database_url) if number else {}
        command.upgrade(config, revision)
        assert lost(before, contents(empty_database_url)) == [], revision
        add_rows(empty_database_url, revision)
    assert all(contents(empty_database_url).values()), "there are rows in every table"


def test_newer_revision_is_left_alone(fresh_database_url: str) -> None:
    with psycopg.connect(as_admin(fresh_database_url)) as connection:
        connection.execute("UPDATE alembic_version SET version_num = '9999'")
    done = subprocess.run(
        [sys.executable, "-m", "migrations"],
        cwd=ROOT,
        env={"DATABASE_URL": as_owner(fresh_database_url)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert "9999" in done.stderr
    assert len(done.stderr.splitlines()) == 1


OF_OTHERS = """
INSERT INTO conversations (id, user_id, status) VALUES ('thr_a', 'alice', '{"type": "active"}');
INSERT INTO messages (conversation_id, id, user_id, role, kind, item)
    VALUES ('thr_a', 'msg_a', 'alice', 'user', 'user_message', '{}'),
           ('thr_a', 'msg_b', 'bob', 'user', 'user_message', '{}');
INSERT INTO runs (id, conversation_id, user_id, status, outcome, state)
    VALUES ('run_b', 'thr_a', 'bob', 'running', NULL, '{}'), ('run_b2', 'thr_a', 'bob', 'ended', 'failed', NULL);
INSERT INTO tasks (user_id, title) VALUES ('alice', 'a1'), ('bob', 'b2'), ('alice', 'a3');
INSERT INTO task_changes (user_id, task_id, operation, arguments, before, after, actor)
    VALUES ('bob', 7, 'delete', '{"task_id": 7}', '{"id": 7}', NULL, 'mcp');
"""


def test_keys_of_users_in_revision_5(empty_database_url: str) -> None:
    """Rows in conversations of others do not hold up the keys; each user counts on from the last number."""
    config = alembic_config(empty_database_url)
    command.upgrade(config, "0004")
    with psycopg.connect(as_admin(empty_database_url)) as connection:
        connection.execute(OF_OTHERS.encode())
    command.upgrade(config, "0005")
    after = contents(empty_database_url)
    assert [row["id"] for row in after["messages"]] == ["msg_a"]
    runs = [(row["conversation_id"], row["status"], row["outcome"], row["state"]) for row in after["runs"]]
    assert runs == [(None, "ended", "interrupted", None), (None, "ended", "failed", None)]
    people = {row["user_id"]: row["last_task_id"] for row in after["people"]}
    assert people == {"alice": 3, "bob": 7}, "of a task that was deleted, too"


BEFORE_BRANCHES = """
INSERT INTO conversations (id, user_id, status)
    VALUES ('thr_a', 'alice', '{"type": "active"}'), ('thr_a', 'bob', '{"type": "active"}');
INSERT INTO runs (id, conversation_id, user_id, status, outcome, started_at) VALUES
    ('run_3', 'thr_a', 'alice', 'ended', 'completed', '2026-01-01 10:00Z'),
    ('run_1', 'thr_a', 'alice', 'ended', 'completed', '2026-01-01 11:00Z'),
    ('run_2', 'thr_a', 'alice', 'running', NULL, '2026-01-01 12:00Z'),
    ('run_5', NULL, 'alice', 'ended', 'completed', '2026-01-01 10:40Z'),
    ('run_3', 'thr_a', 'bob', 'ended', 'completed', '2026-01-01 10:00Z');
INSERT INTO messages (conversation_id, id, user_id, run_id, role, kind, item, superseded_by) VALUES
    ('thr_a', 'msg_1', 'alice', 'run_3', 'user', 'user_message', '{}', NULL),
    ('thr_a', 'msg_2', 'alice', 'run_3', 'assistant', 'assistant_message', '{}', 'run_1'),
    ('thr_a', 'msg_3', 'alice', 'run_1', 'assistant', 'assistant_message', '{}', NULL),
    ('thr_a', 'msg_4', 'alice', 'run_2', 'user', 'user_message', '{}', NULL);
"""


def test_branches_in_revision_14(empty_database_url: str) -> None:
    """The runs of each conversation become one path, in the order in which they began."""
    config = alembic_config(empty_database_url)
    command.upgrade(config, "0013")
    with psycopg.connect(as_admin(empty_database_url)) as connection:
        connection.execute(BEFORE_BRANCHES.encode())
    command.upgrade(config, "0014")
    after = contents(empty_database_url)
    runs = {(row["user_id"], row["id"]): (row["parent_run_id"], row["message_id"]) for row in after["runs"]}
    assert runs == {
        ("alice", "run_3"): (None, "msg_1"),
        ("alice", "run_1"): ("run_3", None),  # the same message, answered again
        ("alice", "run_2"): ("run_1", "msg_4"),
        ("alice", "run_5"): (None, None),
        ("bob", "run_3"): (None, None),
    }
    heads = {(row["user_id"], row["id"]): row["leaf_run_id"] for row in after["conversations"]}
    assert heads == {("alice", "thr_a"): "run_2", ("bob", "thr_a"): "run_3"}
