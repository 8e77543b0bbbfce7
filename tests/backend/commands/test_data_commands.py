"""`python -m backend usage`, `export` and `forget`."""

import asyncio
import errno
import io
import json
import os
import sys
import tracemalloc
from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import pytest

from backend.commands import export as export_command
from backend.commands import forget as forget_command
from backend.commands import usage as usage_command
from service import commands
from service.database import utc_now
from tests.backend.conftest import Rows
from tests.backend.consent import calls, cards, deleting, with_tasks
from tests.chatkit_client import ChatKit, user_input
from tests.logins import as_owner
from tests.scripted_model import ScriptedModel

COMMANDS = {"export": export_command.run, "forget": forget_command.run}
SLOW = {"text": "one two three four five six seven eight nine ten", "token_delay": 0.3}


@pytest.fixture(autouse=True)
def _environment(database_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MIGRATION_DATABASE_URL", as_owner(database_url))


def add_thread(rows: Rows, user: str, name: str, *, items: int = 1, text: str = "hello") -> None:
    rows('INSERT INTO conversations (id, user_id, status) VALUES (%s, %s, \'{"type": "active"}\')', name, user)
    rows(
        "INSERT INTO messages (conversation_id, id, user_id, role, kind, item) "
        "SELECT %s, %s || n, %s, 'user', 'user_message', jsonb_build_object('text', %s::text) "
        "FROM generate_series(1, %s) n",
        *(name, f"{name}_", user, text, items),
    )


def add_run(rows: Rows, user: str, name: str, *, days_ago: int = 0, thread: str | None = None, **usage: Any) -> None:
    rows(
        "INSERT INTO runs (id, conversation_id, user_id, status, outcome, usage, started_at) "
        "VALUES (%s, %s, %s, 'ended', 'completed', %s, %s)",
        *(name, thread, user, json.dumps(usage) if usage else None, utc_now() - timedelta(days=days_ago)),
    )


@pytest.fixture
def used(rows: Rows) -> None:
    add_run(rows, "alice", "1", model="large", requests=2, input_tokens=1500, output_tokens=30)
    coder = {"requests": 1, "input_tokens": 400, "output_tokens": 4}
    add_run(rows, "alice", "2", model="large", requests=1, input_tokens=500, output_tokens=5, by_agent={"coder": coder})
    add_run(rows, "alice", "3", model="small", requests=1, input_tokens=7, output_tokens=3)
    add_run(rows, "alice", "4")
    add_run(rows, "bob", "5", model="large", requests=1, input_tokens=1, output_tokens=1)
    add_run(rows, "alice", "6", days_ago=1, model="large", requests=1, input_tokens=10, output_tokens=10)


def usage(capsys: pytest.CaptureFixture[str], *arguments: str) -> list[tuple[Any, ...]]:
    usage_command.run([*arguments, "--json"])
    found = json.loads(capsys.readouterr().out)
    assert all(tuple(row) == (*usage_command.COLUMNS, "by_agent") for row in found)
    return [tuple(row.values())[1:-1] for row in found]


@pytest.mark.usefixtures("used")
def test_usage_is_added_up_by_day_person_and_model(capsys: pytest.CaptureFixture[str]) -> None:
    today = [("alice", "large", 2, 3, 2000, 35), ("alice", "small", 1, 1, 7, 3), ("alice", None, 1, 0, 0, 0)]
    bob = ("bob", "large", 1, 1, 1, 1)
    assert usage(capsys, "--days", "1") == [*today, bob]
    assert usage(capsys) == [("alice", "large", 1, 1, 10, 10), *today, bob]
    assert usage(capsys, "--user", "bob") == [bob]
    assert usage(capsys, "--user", "carol") == []


@pytest.mark.usefixtures("used")
def test_usage_names_what_agents_used_of_it(capsys: pytest.CaptureFixture[str]) -> None:
    usage_command.run(["--user", "alice", "--days", "1", "--json"])
    large, *others = json.loads(capsys.readouterr().out)
    coder = {"turns": 1, "requests": 1, "input_tokens": 400, "output_tokens": 4}
    assert (large["model"], large["by_agent"]) == ("large", {"coder": coder})
    assert [row["by_agent"] for row in others] == [{}, {}]


@pytest.mark.usefixtures("used")
def test_usage_is_a_table_with_a_total(capsys: pytest.CaptureFixture[str]) -> None:
    usage_command.run(["--user", "alice"])
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[1:] for line in lines[2:6]] == [
        ["alice", "large", "2", "3", "2,000", "35"],
        ["it", "coder", "1", "1", "400", "4"],
        ["alice", "small", "1", "1", "7", "3"],
        ["alice", "-", "1", "0", "0", "0"],
    ]
    assert lines[-1].split() == ["total", "5", "5", "2,017", "48"]
    assert len({len(line) for line in lines}) == 1


def test_usage_without_a_turn_is_a_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    usage_command.run([])
    assert capsys.readouterr().out == "No turn was made in these days.\n"


@pytest.mark.parametrize("days", ["0", "-1", "x", "99999999999"])
def test_usage_of_no_days_is_refused(days: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        usage_command.run([f"--days={days}"])
    assert "is no number of days" in capsys.readouterr().err


@pytest.mark.parametrize("command", COMMANDS.values(), ids=COMMANDS)
def test_a_person_of_whom_nothing_is_stored(command: Any, rows: Rows, capsys: pytest.CaptureFixture[str]) -> None:
    add_thread(rows, "alice", "thr_alice")
    with pytest.raises(SystemExit) as ended:
        command(["--user", "alicia"])
    assert ended.value.code == commands.NOTHING
    assert capsys.readouterr().err == "Nothing is stored for alicia: check the name.\n"


@pytest.mark.parametrize("command", COMMANDS.values(), ids=COMMANDS)
def test_a_database_of_another_revision_is_not_worked_on(
    command: Any, rows: Rows, capsys: pytest.CaptureFixture[str]
) -> None:
    add_thread(rows, "alice", "thr_alice")
    [found] = rows("SELECT version_num FROM alembic_version")
    rows("UPDATE alembic_version SET version_num = '9999'")
    try:
        with pytest.raises(SystemExit, match="newer than this program's"):
            command(["--user", "alice"])
    finally:
        rows("UPDATE alembic_version SET version_num = %s", found["version_num"])
    assert capsys.readouterr().out == ""
    assert len(rows("SELECT 1 FROM conversations")) == 1


def test_without_a_database_the_commands_say_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MIGRATION_DATABASE_URL")
    with pytest.raises(SystemExit, match=r"^MIGRATION_DATABASE_URL is not set: .env.example says what it is\.$"):
        export_command.run(["--user", "alice"])


@pytest.mark.parametrize("command", COMMANDS.values(), ids=COMMANDS)
def test_the_services_login_is_not_enough(
    rows: Rows, monkeypatch: pytest.MonkeyPatch, database_url: str, command: Any
) -> None:
    add_thread(rows, "alice", "thr_alice")
    monkeypatch.delenv("MIGRATION_DATABASE_URL")
    monkeypatch.setenv("DATABASE_URL", database_url)
    with pytest.raises(SystemExit, match="set MIGRATION_DATABASE_URL"):
        command(["--user", "alice"])
    with pytest.raises(SystemExit, match="set MIGRATION_DATABASE_URL"):
        usage_command.run([])
    monkeypatch.setenv("DATABASE_URL", as_owner(database_url))
    command(["--user", "alice"])


async def test_an_export_holds_what_the_thread_shows_and_what_it_hides(
    chat: ChatKit, rows: Rows, capsys: pytest.CaptureFixture[str]
) -> None:
    answer = await chat.say("add buy milk")
    again = await chat.say("hello")
    await chat.ask("threads.delete", thread_id=again.thread_id)
    await asyncio.to_thread(export_command.run, ["--user", "local"])
    exported = json.loads(capsys.readouterr().out)

    assert [thread["id"] for thread in exported["threads"]] == [answer.thread_id]
    items = {item["id"]: item["item"] for item in exported["threads"][0]["items"]}
    assert list(items) == [row["id"] for row in rows("SELECT id FROM messages ORDER BY seq")]
    assert {item["id"] for item in answer.items} < set(items), "tool calls are there too"
    assert [(run["thread_id"], run["outcome"]) for run in exported["runs"]] == [
        (answer.thread_id, "completed"),
        (None, "completed"),
    ]
    assert exported["runs"][0]["usage"]["model"] == "offline-rules"


def test_an_export_of_one_holds_nothing_of_another(rows: Rows, capsys: pytest.CaptureFixture[str]) -> None:
    for user in ("alice", "bob"):
        add_thread(rows, user, f"thr_{user}")
        add_run(rows, user, f"run_{user}", thread=f"thr_{user}")
    export_command.run(["--user", "alice"])
    assert "bob" not in capsys.readouterr().out


def test_an_export_is_written_while_it_is_read(rows: Rows, monkeypatch: pytest.MonkeyPatch) -> None:
    add_thread(rows, "alice", "thr_long", items=4_000, text="long " * 1_000)
    with open(os.devnull, "wb") as nowhere:
        monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(nowhere))
        tracemalloc.start()
        try:
            export_command.run(["--user", "alice"])
            most = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
    assert most < 5_000_000, "of 20 MB"


def test_a_full_disk_is_not_called_a_failed_database(rows: Rows, monkeypatch: pytest.MonkeyPatch) -> None:
    class Full(io.RawIOBase):
        def write(self, _: object) -> int:
            raise OSError(errno.ENOSPC, "No space left on device")

    add_thread(rows, "alice", "thr_alice")
    monkeypatch.setattr(sys, "stdout", SimpleNamespace(buffer=Full()))
    with pytest.raises(SystemExit) as ended:
        export_command.run(["--user", "alice"])
    assert ended.value.code == "What was found cannot be written: No space left on device."


async def test_forget_stops_the_turn_then_leaves_nothing(
    chat: ChatKit, model: ScriptedModel, rows: Rows, capsys: pytest.CaptureFixture[str]
) -> None:
    add_thread(rows, "bob", "thr_bob", items=3)
    add_run(rows, "bob", "run_bob", thread="thr_bob")
    bobs = [rows(f"SELECT * FROM {table} WHERE user_id = 'bob'") for table in ("conversations", "messages", "runs")]
    await chat.say("hello")
    await model.script(SLOW)
    async with chat.open("threads.create", input=user_input("count")) as events:
        async for event in events:
            if event["type"] == "thread.item.updated":
                break
        await asyncio.to_thread(forget_command.run, ["--user", "local"])
        assert (await model.finished_requests())[-1]["outcome"] == "client_closed"
        rest = [event async for event in events]
    assert all(event["type"] != "error" or event["allow_retry"] for event in rest)
    assert capsys.readouterr().out.startswith("Deleted for good: threads 2, items ")
    assert [rows(f"SELECT * FROM {table}") for table in ("conversations", "messages", "runs")] == bobs
    with pytest.raises(SystemExit, match=str(commands.NOTHING)):
        await asyncio.to_thread(forget_command.run, ["--user", "local"])


async def test_a_turn_that_cannot_be_stopped_does_not_keep_forget_waiting_for_ever(
    rows: Rows, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As after a crash: the row says that it runs, and nobody does."""
    monkeypatch.setenv("LEASE_SECONDS", "0.5")
    monkeypatch.setenv("HEARTBEAT_SECONDS", "0.1")
    add_thread(rows, "local", "thr_dead")
    rows(
        "INSERT INTO runs (id, conversation_id, user_id, status, heartbeat_at) "
        "VALUES ('run_dead', 'thr_dead', 'local', 'running', now() + interval '1 hour')"
    )
    async with asyncio.timeout(10):
        await asyncio.to_thread(forget_command.run, ["--user", "local"])
    assert rows("SELECT 1 FROM runs") == rows("SELECT 1 FROM conversations") == []


async def test_what_waits_is_exported_and_forgotten(
    chat: ChatKit, model: ScriptedModel, rows: Rows, capsys: pytest.CaptureFixture[str]
) -> None:
    thread = await with_tasks(chat, model, 12)
    await model.script(calls(deleting(*range(1, 13))))
    [card] = cards(await chat.say("delete all", thread))
    await asyncio.to_thread(export_command.run, ["--user", "local"])
    exported = json.loads(capsys.readouterr().out)
    [asked] = exported["approvals"]
    assert (asked["call"]["name"], asked["decision"]) == ("delete_task", None)
    assert asked["text"].startswith("Delete 12 tasks\n")
    await asyncio.to_thread(forget_command.run, ["--user", "local"])
    assert rows("SELECT 1 FROM approvals") == rows("SELECT 1 FROM runs") == rows("SELECT 1 FROM messages") == []
    action = card["widget"]["confirm"]["action"]
    gone = await chat.post("threads.custom_action", thread_id=thread, item_id=card["id"], action=action)
    assert gone.status_code == 404
