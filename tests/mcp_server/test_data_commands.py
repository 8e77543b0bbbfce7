"""`python -m mcp_server export` and `forget`."""

import asyncio
import json
import threading
from typing import Any

import httpx2
import psycopg
import pytest

from mcp_server.commands import export as export_command
from mcp_server.commands import forget as forget_command
from service import commands
from tests.logins import as_admin, as_owner
from tests.mcp_server.conftest import Rows
from tests.mcp_server.guarded import AUDIENCE, own
from tests.mcp_server.wire import call, result, send
from tests.stored_tasks import ADD_TASK
from tests.tokens import for_mcp

COMMANDS = {"export": export_command.run, "forget": forget_command.run}


@pytest.fixture(autouse=True)
def _environment(database_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MIGRATION_DATABASE_URL", as_owner(database_url))


@pytest.fixture
async def bread(guarded_http: httpx2.AsyncClient, milk: Any) -> None:
    """Alice has completed her milk and deleted a task; bob has bread."""
    for made in (
        call("complete_task", {"task_id": 1}, token=own()),
        call("add_task", {"title": "größer"}, token=own()),
        call("delete_task", {"task_id": 2}, token=own()),
        call("add_task", {"title": "bread"}, token=own(sub="bob")),
    ):
        result(await send(guarded_http, made))


@pytest.mark.usefixtures("bread")
def test_an_export_holds_tasks_and_all_changes_of_one_person(capsys: pytest.CaptureFixture[str]) -> None:
    export_command.run(["--user", "alice"])
    text = capsys.readouterr().out
    exported = json.loads(text)
    assert [(task["id"], task["title"], task["status"]) for task in exported["tasks"]] == [(1, "milk", "completed")]
    assert exported["tasks"][0]["completed_at"].endswith("+00:00")
    assert [(change["task_id"], change["operation"]) for change in exported["changes"]] == [
        (1, "add"),
        (1, "complete"),
        (2, "add"),
        (2, "delete"),
    ]
    assert exported["changes"][3]["before"]["title"] == "größer"
    assert "bread" not in text


async def test_an_export_holds_dates_labels_and_what_took_back_what(
    guarded_http: httpx2.AsyncClient, capsys: pytest.CaptureFixture[str]
) -> None:
    dated = {"title": "dentist", "due": "2027-03-05 15:00", "labels": ["health"], "repeat": "FREQ=MONTHLY"}
    for tool, arguments in (
        ("add_task", dated | {"priority": "high"}),
        ("update_task", {"task_id": 1, "title": "the dentist"}),
        ("update_task", {"task_id": 1, "undo": True}),
    ):
        made = call(tool, arguments, meta={"todo/batch": tool}, token=for_mcp("alice", AUDIENCE))
        result(await send(guarded_http, made))
    await asyncio.to_thread(export_command.run, ["--user", "alice"])
    exported = json.loads(capsys.readouterr().out)
    (task,) = exported["tasks"]
    assert {name: task[name] for name in ("title", "due_on", "due_time", "priority", "labels", "repeat", "series")} == {
        "title": "dentist",
        "due_on": "2027-03-05",
        "due_time": "15:00:00",
        "priority": 1,
        "labels": ["health"],
        "repeat": "FREQ=MONTHLY;BYMONTHDAY=5",
        "series": 1,
    }
    added, renamed, undone = exported["changes"]
    assert [change["undoes"] for change in (added, renamed, undone)] == [None, None, renamed["id"]]
    assert [change["batch"] for change in (added, renamed, undone)] == ["add_task", "update_task", "update_task"]
    assert exported["people"] == [{"time_zone": None, "week_starts": None}]


@pytest.mark.usefixtures("bread")
def test_forget_leaves_nothing_of_one_person_and_everything_of_others(
    rows: Rows, capsys: pytest.CaptureFixture[str]
) -> None:
    forget_command.run(["--user", "alice"])
    assert capsys.readouterr().out == "Deleted for good: tasks 1, changes 4.\n"
    assert {row["user_id"] for row in rows.tasks() + rows.changes()} == {"bob"}
    assert (len(rows.tasks()), len(rows.changes())) == (1, 1)
    with pytest.raises(SystemExit, match=str(commands.NOTHING)):
        forget_command.run(["--user", "alice"])


@pytest.mark.parametrize("known", [True, False])
def test_forget_waits_for_a_call_in_flight(
    rows: Rows, database_url: str, capsys: pytest.CaptureFixture[str], known: bool
) -> None:
    """A task that is being added when a person is forgotten, be it their first or not, is forgotten with the others."""
    with psycopg.connect(as_admin(database_url)) as connection:
        if known:
            connection.execute(ADD_TASK, ("alice", "milk", ""))
            connection.commit()
        connection.execute(ADD_TASK, ("alice", "bread", ""))
        committing = threading.Timer(0.5, connection.commit)
        committing.start()
        forget_command.run(["--user", "alice"])
        committing.join()
    assert capsys.readouterr().out == f"Deleted for good: tasks {1 + known}, changes 0.\n"
    assert rows.tasks() == []


@pytest.mark.usefixtures("bread")
@pytest.mark.parametrize("command", COMMANDS.values(), ids=COMMANDS)
def test_a_person_of_whom_nothing_is_stored(command: Any, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        command(["--user", "alicia"])
    assert ended.value.code == commands.NOTHING
    assert capsys.readouterr().err == "Nothing is stored for alicia: check the name.\n"
