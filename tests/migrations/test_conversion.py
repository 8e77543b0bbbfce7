"""The conversion of a database of version 0.1.0: what is shown and sent to the model is what 0.1.0 did.

The database and what 0.1.0 answered were recorded from that version; `data/README.md` tells how.
"""

import gzip
import json
import subprocess
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from agents.models.chatcmpl_converter import Converter
from alembic import command
from psycopg.rows import dict_row

from backend.api.interactions.render import render_event
from backend.context.window import render_request
from backend.conversations import conversations, history, timeline
from backend.conversations.records import Entry, ToolCall
from backend.conversations.steering import load_queue
from backend.runs.outcomes import sentence_of
from cli.database import postgres_binaries
from common.database import Database
from migrations.database import create_alembic_config
from migrations.from_0_1_0.conversion import OLD_TABLES
from tests.conftest import new_database, prepare_roles
from tests.logins import as_admin, as_owner, as_service
from tests.migrations.process import run
from tests.support.commands import todo

pytestmark = pytest.mark.long

Json = dict[str, Any]
DATA = Path(__file__).parent / "data"
BINARIES = postgres_binaries.find(None).directory
ANSWERS: Json = json.loads(gzip.decompress((DATA / "version-0.1.0.json.gz").read_bytes()))
USERS = [name for name in ANSWERS if name != "usage"]
CONVERSATIONS = [(user, thread) for user in USERS for thread in ANSWERS[user]]


@pytest.fixture
def old_database_url(empty_database_url: str) -> str:
    """A database of version 0.1.0, as the tables' owner."""
    load_version_0_1_0(empty_database_url)
    return empty_database_url


def load_version_0_1_0(url: str) -> None:
    with psycopg.connect(as_owner(url)) as connection:
        connection.execute(gzip.decompress((DATA / "version-0.1.0.sql.gz").read_bytes()))


def migrate(url: str, **variables: str) -> tuple[int | None, str]:
    """Exit status and output of `python -m migrations`."""
    process = run(url, **{"DUMP_MADE": "yes", **variables})
    output, errors = process.communicate(timeout=120)
    return process.returncode, output + errors


@pytest.fixture(scope="module")
def converted_url(server_url: str) -> Iterator[str]:
    """A converted database, which the tests only read."""
    with new_database(server_url) as (_, url):
        prepare_roles(url)
        load_version_0_1_0(url)
        command.upgrade(create_alembic_config(as_owner(url)), "head")
        yield url


@pytest.fixture
async def database(converted_url: str) -> AsyncIterator[Database]:
    async with Database(as_service(converted_url)) as database:
        yield database


def rows(url: str, statement: str, *values: Any) -> list[Json]:
    with psycopg.Connection[Json].connect(as_admin(url), row_factory=dict_row) as connection:
        return connection.execute(statement.encode(), values).fetchall()


async def test_what_a_user_sees(database: Database) -> None:
    for user, thread in CONVERSATIONS:
        old = ANSWERS[user][thread]
        found = await conversations.find(database, user, thread)
        assert (found.title, found.name) == (old["chat"]["title"], old["chat"]["name"])
        shown = (await timeline.load_shown(database, user, thread)).records
        said = [one for one in shown if isinstance(one, Entry) and one.kind in ("user_message", "assistant_message")]
        items = [one for one in old["items"] if one["type"] in ("user_message", "assistant_message")]
        assert [one.id for one in said] == [one["id"] for one in items]
        assert [one.feedback for one in said] == [one.get("feedback") for one in items]
        notices = [(one.details or {})["code"] for one in shown if isinstance(one, Entry) and one.kind == "notice"]
        tasks = [one["task"]["title"] for one in old["items"] if one["type"] == "task"]
        open_runs = [one for one in old["chat"]["interactions"] if was_open(one)]
        assert len(notices) == len([one for one in tasks if "summarised" not in one]) + len(open_runs)
        sentences = [sentence_of(code) for code in notices]
        assert sentence_of("failed") not in sentences, "each sentence of the recording has a code"


def was_open(interaction: Json) -> bool:
    return interaction["status"] in ("RUNNING", "WAITING_APPROVAL")


async def test_what_the_model_reads(database: Database) -> None:
    compared = 0
    for user, thread in CONVERSATIONS:
        interactions = ANSWERS[user][thread]["chat"]["interactions"]
        if not interactions or was_open(interactions[-1]):
            continue
        known = await history.load_history(database, user, thread)
        messages: list[Any] = Converter.items_to_messages(render_request(known, tokens=60_000))
        assert messages == interactions[-1]["final_agent_state"]["messages"], (user, thread)
        compared += 1
    assert compared == 10


async def test_what_the_run_api_tells(database: Database) -> None:
    for user, thread in CONVERSATIONS:
        for old in ANSWERS[user][thread]["chat"]["interactions"]:
            ids = [row["id"] for row in await runs_of(database, user, old["id"])]
            assert ids[0] == old["id"]
            run = await load_run(database, user, ids[0])
            assert run["usage"] == old["usage"] or "by_agent" in old["usage"]
            loaded = await timeline.load_trees(database, user, ids)
            message = loaded.of_run(ids[0]).find_first("user_message")
            assert message is not None
            assert message.text == old["user_message"]
            events = [event for run_id in ids for event in timeline.events_of(loaded.of_run(run_id))]
            told = [pair for event in events for pair in render_event(event)]
            for kind in ("answer", "thinking", "tool_result"):
                new = [strip(data) for name, data in told if name == kind]
                before = [strip(event["data"]) for event in old["agent_events"] if event["event"] == kind]
                assert new == before, (user, thread, old["user_message"], kind)
            calls = [event["data"]["id"] for event in old["agent_events"] if event["event"] == "tool_call"]
            assert set(calls) <= {one.id for run_id in ids for one in loaded.of_run(run_id).calls}


def strip(data: Json) -> Json:
    """Without what this version adds."""
    return {name: value for name, value in data.items() if name not in ("type", "is_error", "details")}


async def runs_of(database: Database, user: str, old_id: str) -> list[Json]:
    async with database.transaction(user) as tx:
        found = await tx.execute(
            "SELECT id FROM runs WHERE user_id = %(user)s AND starts_with(id, %(id)s) AND active "
            "AND conversation_id IS NOT NULL ORDER BY seq",
            user=user,
            id=old_id,
        )
    return await found.fetchall()


async def load_run(database: Database, user: str, run_id: str) -> Json:
    async with database.transaction(user) as tx:
        found = await tx.execute("SELECT * FROM runs WHERE user_id = %(user)s AND id = %(id)s", user=user, id=run_id)
    row = await found.fetchone()
    assert row is not None
    return row


async def test_runs_are_one_line(converted_url: str) -> None:
    found = rows(
        converted_url,
        "SELECT user_id, conversation_id, id, previous_run_id, status FROM runs "
        "WHERE conversation_id IS NOT NULL ORDER BY user_id, conversation_id, seq",
    )
    last: dict[tuple[str, str], str] = {}
    for row in found:
        key = (row["user_id"], row["conversation_id"])
        assert row["previous_run_id"] == last.get(key)
        assert row["status"] not in ("running", "waiting")
        last[key] = row["id"]


async def test_running_and_waiting_runs_are_interrupted(database: Database, converted_url: str) -> None:
    [running] = [thread for user, thread in CONVERSATIONS if ANSWERS[user][thread]["thread"].get("unread")]
    user = next(user for user, thread in CONVERSATIONS if thread == running)
    head = (await conversations.find(database, user, running)).head_run_id
    assert head is not None
    assert (await load_run(database, user, head))["error_code"] == "interrupted"
    unsent = [(one.text, (one.details or {})["mode"]) for one in await load_queue(database, user, head)]
    assert unsent == [("unread steer", "steer"), ("unread follow-up", "follow_up")]
    [waiting] = ANSWERS["ben"]
    shown = await timeline.load_shown(database, "ben", waiting)
    calls = [one for one in shown.records if isinstance(one, ToolCall)][-3:]
    assert [(one.state, one.reason) for one in calls] == [
        ("not_made", "ended"),  # approved, but the other approval was open
        ("not_made", "ended"),
        ("done", None),
    ]
    states = rows(converted_url, "SELECT DISTINCT state FROM tool_calls WHERE result_seq IS NULL")
    assert states == [], "no call is open"


def test_each_number_is_given_once(converted_url: str) -> None:
    """Or a reader who asks for what comes after a number could miss something. Results come after their calls."""
    given = """
        SELECT seq AS number FROM runs WHERE conversation_id IS NOT NULL
        UNION ALL SELECT end_seq FROM runs WHERE conversation_id IS NOT NULL
        UNION ALL SELECT seq FROM entries WHERE seq IS NOT NULL
        UNION ALL SELECT seq FROM tool_calls UNION ALL SELECT result_seq FROM tool_calls
    """
    assert rows(converted_url, f"SELECT number FROM ({given}) AS given GROUP BY 1 HAVING count(*) > 1") == []
    assert rows(converted_url, "SELECT id FROM tool_calls WHERE result_seq <= seq") == []


async def test_what_agents_did(database: Database) -> None:
    """The call and its result; the steps are in v01."""
    thread = next(thread for thread, old in ANSWERS["cara"].items() if old["chat"]["name"] == "agents-waiting")
    shown = await timeline.load_shown(database, "cara", thread)
    [call] = [one for one in shown.records if isinstance(one, ToolCall)]
    assert (call.tool, call.state) == ("do_with_coder", "unknown"), "the agent has begun"


async def test_usage(converted_url: str) -> None:
    counted = rows(
        converted_url,
        "SELECT user_id, count(*) FILTER (WHERE parent_run_id IS NULL) AS turns, "
        "sum((usage->>'requests')::int) AS requests, sum((usage->>'input_tokens')::int) AS input_tokens, "
        "sum((usage->>'output_tokens')::int) AS output_tokens FROM runs "
        "WHERE usage IS NOT NULL AND usage->>'model' IS NOT NULL GROUP BY 1 ORDER BY 1",
    )
    names = ("requests", "input_tokens", "output_tokens")
    old = {one["user"]: one for one in ANSWERS["usage"] if one["model"]}
    assert {one["user_id"]: [one[name] for name in ("turns", *names)] for one in counted} == {
        user: [one[name] for name in ("turns", *names)] for user, one in old.items()
    }
    [coder] = rows(
        converted_url,
        "SELECT sum((usage->>'requests')::int) AS requests, sum((usage->>'input_tokens')::int) AS input_tokens, "
        "sum((usage->>'output_tokens')::int) AS output_tokens FROM runs WHERE agent = 'coder'",
    )
    assert coder == {name: old["cara"]["by_agent"]["coder"][name] for name in names}


def contents(url: str, schema: str = "public") -> dict[str, list[Json]]:
    """The rows of each table."""
    tables = rows(url, "SELECT tablename AS name FROM pg_tables WHERE schemaname = %s ORDER BY 1", schema)
    return {
        table["name"]: rows(url, f"SELECT to_jsonb(t) AS row FROM {schema}.{table['name']} t ORDER BY t")
        for table in tables
        if table["name"] != "alembic_version"
    }


def test_rows_are_kept(old_database_url: str) -> None:
    before = contents(old_database_url)
    code, output = migrate(old_database_url)
    assert code == 0
    assert "Converted 14 conversations, 236 messages: 47 runs with 107 entries and 48 tool calls." in output
    after = contents(old_database_url)
    assert contents(old_database_url, "v01") == {table: before[table] for table in OLD_TABLES}
    kept = set(before) - set(OLD_TABLES)
    assert {table: after[table] for table in kept} == {table: before[table] for table in kept}
    assert {"tasks", "profiles", "kept_requests"} <= kept
    code, output = migrate(old_database_url)
    assert code == 0
    assert "newest revision" in output


def test_old_tables_are_the_owners(converted_url: str) -> None:
    """The services do not reach them. `forget` deletes from them, and what refers to the rows goes with them."""
    with pytest.raises(psycopg.errors.InsufficientPrivilege), psycopg.connect(as_service(converted_url)) as service:
        service.execute("SET ROLE todo_app")
        service.execute("SELECT FROM v01.messages")
    with psycopg.connect(as_owner(converted_url)) as owner:
        owner.execute("SET todo.all_people = 'on'")
        for table in ("conversations", "runs"):
            owner.execute(f"DELETE FROM v01.{table} WHERE user_id = 'anna'".encode())
        for table in OLD_TABLES:
            left = owner.execute(f"SELECT user_id FROM v01.{table} WHERE user_id = 'anna'".encode())
            assert left.fetchall() == []
        owner.rollback()


def test_schema_is_that_of_a_new_database(converted_url: str, fresh_database_url: str) -> None:
    """Tables, keys, policies, grants and functions; the order of columns may differ."""
    assert schema_of(converted_url) == schema_of(fresh_database_url)


def schema_of(url: str) -> list[str]:
    dump = [BINARIES / "pg_dump", "--schema-only", "--schema=public", as_admin(url)]
    lines = subprocess.run(dump, capture_output=True, text=True, check=True).stdout.splitlines()
    return sorted(line.rstrip(",") for line in lines if not line.startswith(("--", "\\")))


def test_interrupted_conversion_begins_again(old_database_url: str) -> None:
    before = contents(old_database_url)
    with psycopg.connect(as_admin(old_database_url)) as other:
        other.execute("LOCK alembic_version IN SHARE MODE")  # written at the end
        process = run(old_database_url, DUMP_MADE="yes")
        waiting = "SELECT FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE 'UPDATE %%'"
        while not rows(old_database_url, waiting):
            assert process.poll() is None, process.communicate()
            time.sleep(0.05)
        process.kill()
        process.communicate()
    assert contents(old_database_url) == before
    assert rows(old_database_url, "SELECT FROM pg_namespace WHERE nspname = 'v01'") == []
    assert migrate(old_database_url)[0] == 0


def test_locked_tables(old_database_url: str) -> None:
    before = contents(old_database_url)
    with psycopg.connect(as_admin(old_database_url)) as other:
        other.execute("LOCK messages IN ACCESS SHARE MODE")
        code, output = migrate(old_database_url)
    assert code == 1
    assert "Another program uses the tables: stop the services" in output
    assert contents(old_database_url) == before


async def test_users_are_kept_apart(database: Database) -> None:
    for user in USERS:
        async with database.transaction(user) as tx:
            for table in ("conversations", "runs", "entries", "tool_calls", "consents", "requests"):
                found = await tx.execute(f"SELECT DISTINCT user_id FROM {table}")  # pyright: ignore[reportArgumentType]
                assert {row["user_id"] for row in await found.fetchall()} <= {user}


class TestBefore:
    """What the migration checks and does before."""

    def test_older_database_is_refused(self, old_database_url: str) -> None:
        with psycopg.connect(as_admin(old_database_url)) as connection:
            connection.execute("UPDATE alembic_version SET version_num = '0020'")
        code, output = migrate(old_database_url)
        assert code == 1
        assert "at revision 0020, older than version 0.1.0 (0021). Update to version 0.1.0 first" in output

    def test_database_in_use_is_refused(self, old_database_url: str) -> None:
        with psycopg.connect(as_service(old_database_url), application_name="todo-assistant"):
            code, output = migrate(old_database_url)
        assert code == 1
        assert "1 connections of services are open. Stop the services first" in output

    def test_dump(self, old_database_url: str, tmp_path: Path) -> None:
        variables = {"DUMP_MADE": "", "BACKUP_DIR": str(tmp_path), "PG_BIN": str(BINARIES)}
        code, output = migrate(old_database_url, **variables)
        assert code == 0
        [dump] = tmp_path.iterdir()
        assert f"The database as it was is in {dump}." in output
        assert dump.stat().st_mode & 0o777 == 0o600
        restored = subprocess.run(
            [BINARIES / "pg_restore", "--data-only", "--table=messages", "--file=-", dump],
            capture_output=True,
            text=True,
            check=True,
        )
        assert "Much more was said." in restored.stdout, "rows of all users are in it"

    def test_dump_is_asked_for(self, old_database_url: str) -> None:
        code, output = migrate(old_database_url, DUMP_MADE="", BACKUP_DIR="")
        assert code == 1
        assert "run the migration again with DUMP_MADE=yes" in output
        assert "messages" in contents(old_database_url)


def test_forget_deletes_what_the_conversion_left(old_database_url: str) -> None:
    assert migrate(old_database_url)[0] == 0
    done = todo("forget", "--user", "anna", "--yes", MIGRATION_DATABASE_URL=as_owner(old_database_url))
    assert done.returncode == 0, done.stderr
    for table in OLD_TABLES:
        left = {row["user_id"] for row in rows(old_database_url, f"SELECT DISTINCT user_id FROM v01.{table}")}
        assert "anna" not in left
    assert rows(old_database_url, "SELECT id FROM v01.runs"), "those of other users stay"


def test_an_unsent_message_keeps_its_tags(old_database_url: str) -> None:
    parts = '[{"type": "input_tag", "id": "task-1", "text": "milk", "data": {}}]'
    change = """UPDATE run_inputs SET said = jsonb_set(said, '{body,content}', %s::jsonb)
        WHERE taken_at IS NULL AND dropped_at IS NULL RETURNING id"""
    changed = [row["id"] for row in rows(old_database_url, change, parts)]
    assert migrate(old_database_url)[0] == 0
    found = rows(old_database_url, "SELECT details FROM entries WHERE id = ANY(%s)", changed)
    assert changed
    assert [one["details"]["content"] for one in found] == [json.loads(parts)] * len(changed)
