"""Upgrades and the way back, over rows that were there before."""

import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from alembic import command
from alembic.script import ScriptDirectory

from migrations.schema import alembic_config
from service.database import schema
from tests.conftest import ROOT, new_database
from tests.logins import as_admin, as_owner
from tests.migrations.rows import add_rows, contents, functions

REVISIONS = [
    script.revision for script in ScriptDirectory.from_config(alembic_config("")).walk_revisions("base", "heads")
][::-1]


def as_before(before: dict[str, list[dict[str, Any]]], after: dict[str, list[dict[str, Any]]]) -> bool:
    """Whether every row of the revision before still has all its values; columns and tables may have come."""
    return all(
        [{name: row[name] for name in old} for old, row in zip(rows, after[table], strict=True)] == rows
        for table, rows in before.items()
    )


@pytest.fixture(scope="module")
def growing(server_url: str) -> Iterator[tuple[str, str, list[str]]]:
    """A database that each step's test brings to the revision before its own: name, URL, and the revisions it had."""
    with new_database(server_url) as (name, url):
        yield name, as_owner(url), []


@pytest.fixture
def url_before(server_url: str, growing: tuple[str, str, list[str]], revision: str) -> Iterator[str]:
    """A copy of it: migrated step by step up to the revision before this one, with rows written at each."""
    name, url, had = growing
    wanted = REVISIONS[: REVISIONS.index(revision)]
    assert had == wanted[: len(had)], "the steps are tested in their order"
    for step in wanted[len(had) :]:
        command.upgrade(alembic_config(url), step)
        add_rows(url, step)
        had.append(step)
    with new_database(server_url, name) as (_, copy):
        yield as_owner(copy)


@pytest.mark.parametrize("revision", REVISIONS[1:])
def test_a_step_keeps_the_rows_of_the_revision_before_it_forward_and_back(url_before: str, revision: str) -> None:
    config = alembic_config(url_before)
    before, functions_before = contents(url_before), functions(url_before)
    assert all(before.values())

    command.upgrade(config, revision)
    assert as_before(before, contents(url_before))
    command.downgrade(config, "-1")
    assert contents(url_before) == before
    assert functions(url_before) == functions_before

    command.upgrade(config, revision)
    add_rows(url_before, revision)
    newer = contents(url_before)
    added = {table for table, rows in before.items() if len(newer[table]) > len(rows)}
    assert added == before.keys() - {"people"}  # one row each, of the same two
    command.downgrade(config, "-1")
    assert as_before(contents(url_before), newer), "rows of the newer revision are kept on the way back too"


def test_on_the_way_back_what_was_used_by_deleted_conversations_is_lost_and_nothing_else(
    empty_database_url: str,
) -> None:
    config = alembic_config(empty_database_url)
    command.upgrade(config, "head")
    for name in ("deleted", "kept"):
        add_rows(empty_database_url, name)
    with psycopg.connect(as_admin(empty_database_url)) as connection:
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
            env={"DATABASE_URL": as_owner(fresh_database_url)},
            capture_output=True,
            text=True,
            check=False,
        )
        return done.returncode, done.stderr

    def revision() -> str:
        with psycopg.connect(as_admin(fresh_database_url)) as connection:
            row = connection.execute("SELECT version_num FROM alembic_version").fetchone()
        assert row is not None
        return row[0]

    assert run("0001")[0] == 0
    assert revision() == "0001"
    assert run()[0] == 0
    assert revision() == schema.REVISION
    with psycopg.connect(as_admin(fresh_database_url)) as connection:
        connection.execute("UPDATE alembic_version SET version_num = '9999'")
    status, sentence = run()
    assert status == 1
    assert sentence == (
        f"The database is at revision 9999, newer than this program's {schema.REVISION}: update the program.\n"
    )


OF_OTHERS = """
INSERT INTO conversations (id, user_id, status) VALUES ('thr_a', 'alice', '{"type": "active"}');
INSERT INTO messages (conversation_id, id, user_id, role, kind, item)
    VALUES ('thr_a', 'msg_a', 'alice', 'user', 'user_message', '{}'),
           ('thr_a', 'msg_b', 'bob', 'user', 'user_message', '{}');
INSERT INTO runs (id, conversation_id, user_id, status, outcome, state)
    VALUES ('run_b', 'thr_a', 'bob', 'running', NULL, '{}'), ('run_b2', 'thr_a', 'bob', 'ended', 'failed', NULL);
"""


def test_what_somebody_wrote_into_anothers_conversation_does_not_hold_up_the_keys(empty_database_url: str) -> None:
    config = alembic_config(empty_database_url)
    command.upgrade(config, "0004")
    with psycopg.connect(as_admin(empty_database_url)) as connection:
        connection.execute(OF_OTHERS.encode())
    command.upgrade(config, "0005")
    after = contents(empty_database_url)
    assert [row["id"] for row in after["messages"]] == ["msg_a"]
    runs = [(row["conversation_id"], row["status"], row["outcome"], row["state"]) for row in after["runs"]]
    assert runs == [(None, "ended", "interrupted", None), (None, "ended", "failed", None)]


NUMBERS = """
INSERT INTO tasks (user_id, title) VALUES ('alice', 'a1'), ('bob', 'b2'), ('alice', 'a3');
INSERT INTO task_changes (user_id, task_id, operation, arguments, before, after, actor)
    SELECT user_id, id, 'add', '{}', NULL, jsonb_build_object('id', id), 'mcp' FROM tasks;
INSERT INTO task_changes (user_id, task_id, operation, arguments, before, after, actor)
    VALUES ('bob', 7, 'delete', '{"task_id": 7}', '{"id": 7}', NULL, 'mcp');
"""
OWN = """
UPDATE people SET last_task_id = 8 WHERE user_id = 'alice';
INSERT INTO tasks (user_id, id, title) VALUES ('alice', 7, 'a7'), ('alice', 8, 'a8'), ('carol', 1, 'c1');
INSERT INTO task_changes (user_id, task_id, operation, arguments, before, after, actor)
    VALUES ('carol', 1, 'complete', '{"task_id": 1}', '{"id": 1}', '{"id": 1}', 'mcp');
"""


def test_each_person_counts_on_from_their_last_number_and_on_the_way_back_no_two_tasks_have_one(
    empty_database_url: str,
) -> None:
    config = alembic_config(empty_database_url)
    command.upgrade(config, "0004")
    with psycopg.connect(as_admin(empty_database_url)) as connection:
        connection.execute(NUMBERS.encode())
    command.upgrade(config, "0005")
    people = {row["user_id"]: row["last_task_id"] for row in contents(empty_database_url)["people"]}
    assert people == {"alice": 3, "bob": 7}, "of a task that was deleted, too"
    with psycopg.connect(as_admin(empty_database_url)) as connection:
        connection.execute(OWN.encode())
    command.downgrade(config, "0004")
    tasks = {row["title"]: row["id"] for row in contents(empty_database_url)["tasks"]}
    assert tasks == {"a1": 1, "b2": 2, "a3": 3, "a7": 7, "a8": 8, "c1": tasks["c1"]}
    renumbered = {
        row["user_id"]: (row["task_id"], row["arguments"], row["before"])
        for row in contents(empty_database_url)["task_changes"]
        if row["operation"] in ("complete", "delete")
    }
    for person, (number, arguments, before) in renumbered.items():
        assert number > 8, person
        assert arguments == {"task_id": number}
        assert before == {"id": number}
    with psycopg.connect(as_admin(empty_database_url)) as connection:
        connection.execute("INSERT INTO tasks (user_id, title) VALUES ('carol', 'c2')")
    assert max(row["id"] for row in contents(empty_database_url)["tasks"]) > max(n for n, _, _ in renumbered.values())


OF_BEFORE_BRANCHES = """
INSERT INTO conversations (id, user_id, status)
    VALUES ('thr_a', 'alice', '{"type": "active"}'), ('thr_b', 'alice', '{"type": "active"}'),
           ('thr_a', 'bob', '{"type": "active"}');
INSERT INTO runs (id, conversation_id, user_id, status, outcome, started_at) VALUES
    ('run_3', 'thr_a', 'alice', 'ended', 'completed', '2026-01-01 10:00Z'),
    ('run_1', 'thr_a', 'alice', 'ended', 'completed', '2026-01-01 11:00Z'),
    ('run_2', 'thr_a', 'alice', 'running', NULL, '2026-01-01 12:00Z'),
    ('run_4', 'thr_b', 'alice', 'ended', 'failed', '2026-01-01 10:30Z'),
    ('run_5', NULL, 'alice', 'ended', 'completed', '2026-01-01 10:40Z'),
    ('run_3', 'thr_a', 'bob', 'ended', 'completed', '2026-01-01 10:00Z');
INSERT INTO messages (conversation_id, id, user_id, run_id, role, kind, item, superseded_by) VALUES
    ('thr_a', 'msg_1', 'alice', 'run_3', 'user', 'user_message', '{}', NULL),
    ('thr_a', 'msg_2', 'alice', 'run_3', 'assistant', 'assistant_message', '{}', 'run_1'),
    ('thr_a', 'msg_3', 'alice', 'run_1', 'assistant', 'assistant_message', '{}', NULL),
    ('thr_a', 'msg_4', 'alice', 'run_2', 'user', 'user_message', '{}', NULL),
    ('thr_b', 'msg_5', 'alice', 'run_4', 'user', 'user_message', '{}', NULL);
"""


def test_runs_of_before_branches_are_one_path_in_the_order_in_which_they_began(empty_database_url: str) -> None:
    config = alembic_config(empty_database_url)
    command.upgrade(config, "0013")
    with psycopg.connect(as_admin(empty_database_url)) as connection:
        connection.execute(OF_BEFORE_BRANCHES.encode())
    command.upgrade(config, "0014")
    after = contents(empty_database_url)
    runs = {
        (row["user_id"], row["id"]): (row["parent_run_id"], row["message_id"], row["edits_run_id"], row["chosen"])
        for row in after["runs"]
    }
    assert runs == {
        ("alice", "run_3"): (None, "msg_1", None, True),
        ("alice", "run_1"): ("run_3", None, None, True),  # the same message, answered again
        ("alice", "run_2"): ("run_1", "msg_4", None, True),
        ("alice", "run_4"): (None, "msg_5", None, True),
        ("alice", "run_5"): (None, None, None, True),
        ("bob", "run_3"): (None, None, None, True),
    }
    leaves = {(row["user_id"], row["id"]): row["leaf_run_id"] for row in after["conversations"]}
    assert leaves == {("alice", "thr_a"): "run_2", ("alice", "thr_b"): "run_4", ("bob", "thr_a"): "run_3"}
