"""`python -m mcp_server import`, on a database."""

import asyncio
import io
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from mcp_server.commands import export as export_command
from mcp_server.commands import forget as forget_command
from mcp_server.commands import import_ as import_command
from mcp_server.imports import adding, reading
from mcp_server.imports.adding import Report
from mcp_server.tasks import quota
from mcp_server.tasks.changes import Caller
from service.commands import PARTLY
from service.database import create_engine
from tests.conftest import ROOT
from tests.logins import as_owner
from tests.mcp_server.calls import Tools, client_of
from tests.mcp_server.conftest import Rows

Import = Callable[..., tuple[str, object]]
LINES = "(A) pay rent due:2026-11-27 rec:+1m +home\nx 2026-11-20 2026-11-01 call mum\nmilk\nmilk\n"


@pytest.fixture
def imported(database_url: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Import:
    """Imports a text for alice, or for whom else is named; what is said of it, and the exit status."""
    monkeypatch.setenv("MIGRATION_DATABASE_URL", as_owner(database_url))

    def run(text: str | bytes, *arguments: str, user: str = "alice", **settings: str) -> tuple[str, object]:
        data = text if isinstance(text, bytes) else text.encode()
        with pytest.MonkeyPatch.context() as patch, pytest.raises(SystemExit) as ended:
            patch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(data)))
            for name, value in settings.items():
                patch.setenv(name, value)
            import_command.run([f"--user={user}", *arguments])
        return capsys.readouterr().out, ended.value.code

    return run


def titles(rows: Rows, user: str = "alice") -> list[str]:
    return [row["title"] for row in rows("SELECT title FROM tasks WHERE user_id = %s ORDER BY id", user)]


def test_a_file_is_added_once_however_often_it_is_read(imported: Import, rows: Rows) -> None:
    assert imported(LINES) == ("Added 4 tasks.\n", 0)
    before = rows.tasks(), rows.changes()
    assert imported(LINES) == ("Added 0 tasks, 4 were there already.\n", 0)
    assert (rows.tasks(), rows.changes()) == before
    assert imported("first\n" + LINES.replace("\n", "\r\n")) == ("Added 1 task, 4 were there already.\n", 0)
    assert titles(rows) == ["pay rent", "call mum", "milk", "milk", "first"]


def test_what_is_stored_and_what_the_log_says(imported: Import, rows: Rows) -> None:
    imported(LINES)
    by_title = {row["title"]: row for row in rows.tasks()}
    rent, mum = by_title["pay rent"], by_title["call mum"]
    assert (rent["due_on"].isoformat(), rent["repeat"], rent["series"], rent["priority"], rent["labels"]) == (
        "2026-11-27",
        "FREQ=MONTHLY;BYMONTHDAY=27",
        rent["id"],
        1,
        ["home"],
    )
    assert (mum["status"], mum["completed_at"].isoformat()) == ("completed", "2026-11-20T12:00:00+00:00")
    changes = rows.changes()
    assert {(change["operation"], change["actor"], change["before"]) for change in changes} == {("add", "import", None)}
    assert [change["arguments"] for change in changes] == [{"task_id": number} for number in (1, 2, 3, 4)]
    assert [change["task_id"] for change in changes] == [1, 2, 3, 4]
    assert changes[0]["after"]["title"] == "pay rent"


def test_what_became_of_a_task_in_the_list_does_not_bring_it_back(imported: Import, rows: Rows) -> None:
    imported(LINES)
    rows("UPDATE tasks SET title = 'bread' WHERE id = 3 RETURNING id")
    rows("DELETE FROM tasks WHERE id = 4 RETURNING id")
    rows("UPDATE tasks SET status = 'completed', completed_at = now() WHERE id = 1 RETURNING id")
    assert imported(LINES)[0] == "Added 0 tasks, 4 were there already.\n"
    assert (
        imported("x 2026-11-28 pay rent due:2026-11-27 rec:+1m +home\n")[0] == "Added 0 tasks, 1 was there already.\n"
    )


def test_lines_that_cannot_be_read_are_listed_and_added_once_they_are_mended(imported: Import, rows: Rows) -> None:
    text = "milk\nrent due:soon\nbread\nx 2026-02-30 a\n"
    said, status = imported(text)
    assert said.splitlines()[:2] == [
        "Added 2 tasks.",
        "2 lines could not be read; mend what is wrong and import the file again:",
    ]
    assert [line.partition(":")[0] for line in said.splitlines()[2:]] == ["line 2", "line 4"]
    assert status == PARTLY
    assert imported(text.replace("soon", "2026-11-27").replace("02-30", "02-28")) == (
        "Added 2 tasks, 2 were there already.\n",
        0,
    )
    assert titles(rows) == ["milk", "bread", "rent", "a"]


@pytest.mark.parametrize(
    ("text", "arguments", "said"),
    [
        ("", [], "There is nothing to import in this file.\n"),
        ("\n \n", [], "There is nothing to import in this file.\n"),
        ("TYPE,CONTENT\n", [], "There is nothing to import in this file.\n"),
        ('{"todo": {"tasks": []}}', [], "There is nothing to import in this file.\n"),
        ("milk\0", [], "The file is no text, line 1 has a NUL: give a CSV of Todoist, a todo.txt or an export."),
        ("Title\nmilk\n", ["--name=a.csv"], "This CSV is not Todoist's, whose first line begins with TYPE,CONTENT: "),
        ("{}", [], "The file is JSON, but no export of ./todo export: give one that it wrote."),
        ("milk", ["--user=a\nb"], "No person can have this name: give the `sub` of the person's tokens."),
    ],
)
def test_what_holds_no_task_changes_nothing(
    imported: Import, rows: Rows, text: str, arguments: list[str], said: str
) -> None:
    output, status = imported(text, *arguments)
    assert (output or str(status)).startswith(said)
    assert (rows.tasks(), rows("SELECT * FROM task_calls"), rows("SELECT * FROM people")) == ([], [], [])


def test_the_format_can_be_said(imported: Import, rows: Rows) -> None:
    imported('{"milk"}\n', "--format=todo.txt")
    assert titles(rows) == ['{"milk"}']


def test_a_list_belongs_to_one_person(imported: Import, rows: Rows) -> None:
    assert imported(LINES)[0] == imported(LINES, user="bob")[0] == "Added 4 tasks.\n"
    assert titles(rows, "bob") == titles(rows)


def test_a_person_has_as_many_tasks_as_they_may_and_no_more(imported: Import, rows: Rows) -> None:
    text = "\n".join(f"task {number}" for number in range(10))
    said, status = imported(text, LIMIT_TASKS="7")
    assert said == (
        "Added 7 tasks.\n3 more tasks would be more than alice may have (LIMIT_TASKS): "
        "delete some, or raise it, and import the file again.\n"
    )
    assert (status, len(titles(rows))) == (PARTLY, 7)
    assert imported(text, LIMIT_TASKS="20") == ("Added 3 tasks, 7 were there already.\n", 0)


def test_imports_at_once_add_once(rows: Rows, database_url: str) -> None:
    text = "".join(f"task {number}\n" for number in range(1_200))

    async def at_once() -> list[Report]:
        engine = create_engine(database_url)
        caller = Caller("alice", actor=adding.ACTOR)
        try:
            work = (
                adding.add_all(engine, caller, partial(reading.parse, text, "todo.txt"), progress=lambda _: None)
                for _ in range(3)
            )
            return await asyncio.gather(*work)
        finally:
            await engine.dispose()

    reports = asyncio.run(at_once())
    assert [report.added + report.there for report in reports] == [1_200] * 3
    assert sum(report.added for report in reports) == 1_200
    assert sorted(titles(rows)) == sorted(text.splitlines())


@pytest.mark.long
def test_an_import_that_is_killed_is_completed_by_the_same_one_again(rows: Rows, database_url: str) -> None:
    text = "".join(f"task {number}\n" for number in range(3_000)).encode()
    with started(database_url) as process:
        assert process.stdin
        process.stdin.write(text)
        process.stdin.close()
        deadline = time.monotonic() + 30
        while not titles(rows):
            assert time.monotonic() < deadline
            time.sleep(0.005)
        process.kill()
    half = len(titles(rows))
    assert 0 < half < 3_000
    with started(database_url) as second:
        said, _ = second.communicate(text, 60)
    assert said.decode() == f"Added {3_000 - half:,} tasks, {half:,} were there already.\n"
    assert titles(rows) == text.decode().splitlines()


def started(database_url: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-m", "mcp_server", "import", "--user=alice"],
        cwd=ROOT,
        env=os.environ | {"MIGRATION_DATABASE_URL": as_owner(database_url)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )


def test_an_import_is_known_after_the_log_was_thinned(
    imported: Import, rows: Rows, database_url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    imported(LINES)
    rows(
        "INSERT INTO task_calls (user_id, operation, arguments, actor) VALUES ('bob', 'add', '{}', 'mcp') RETURNING id"
    )
    rows("UPDATE task_calls SET created_at = now() - interval '400 days' RETURNING id")
    assert [asyncio.run(swept(database_url)) for _ in range(2)] == [5, 0]
    assert rows("SELECT * FROM task_changes") == []
    kept = rows("SELECT user_id, operation, arguments, actor FROM task_calls ORDER BY id")
    assert kept == [
        {"user_id": "alice", "operation": "add", "arguments": {"task_id": number}, "actor": "import"}
        for number in (1, 2, 3, 4)
    ]
    assert imported(LINES)[0] == "Added 0 tasks, 4 were there already.\n"
    assert len(titles(rows)) == 4

    rows("DELETE FROM tasks RETURNING id")
    export_command.run(["--user=alice"])
    imports = json.loads(capsys.readouterr().out)["imports"]
    assert [call["task_id"] for call in imports] == [1, 2, 3, 4], "what is known of them is in an export"
    forget_command.run(["--user=alice"])
    assert capsys.readouterr().out == "Deleted for good: tasks 0, changes 0.\n"
    assert imported(LINES)[0] == "Added 4 tasks.\n"


async def swept(database_url: str) -> int:
    engine = create_engine(database_url)
    try:
        return await quota.sweep(engine, 365, at_once=2)
    finally:
        await engine.dispose()


async def test_export_forget_import_and_the_same_tasks(
    server_at: str, imported: Import, rows: Rows, capsys: pytest.CaptureFixture[str]
) -> None:
    async with client_of(server_at) as client:
        tools = Tools(client)
        weekly = {"due": "2026-11-20 09:00", "repeat": "FREQ=WEEKLY;COUNT=3", "labels": ["home", "plants"]}
        await tools.call("add_task", title="water", priority="low", **weekly)
        await tools.call("add_task", title="größer", description="two\nlines", due="2026-11-27")
        await tools.call("add_task", title="gone")
        await tools.call("add_task", title="ended", due="2026-11-20", repeat="FREQ=DAILY;UNTIL=20261121")
        await tools.call("update_task", task_id=4, due="2027-01-01")
        await tools.call("complete_task", task_id=1)
        await tools.call("delete_task", task_id=3)

    def round_trip() -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
        export_command.run(["--user=local"])
        document = capsys.readouterr().out
        assert imported(document, user="local")[0] == "Added 0 tasks, 4 were there already.\n", "they stand in the list"
        forget_command.run(["--user=local"])
        assert rows.tasks() == rows("SELECT * FROM task_calls") == []
        capsys.readouterr()
        assert imported(document, user="local") == ("Added 4 tasks.\n", 0)
        assert imported(document, user="local") == ("Added 0 tasks, 4 were there already.\n", 0)
        export_command.run(["--user=local"])
        return tuple(json.loads(text)["tasks"] for text in (document, capsys.readouterr().out))

    before, after = await asyncio.to_thread(round_trip)
    assert [task["id"] for task in after] == [1, 2, 3, 4]
    assert [kept(task) for task in after] == [kept(task) for task in before]
    assert [(task["title"], task["status"], task["repeat"], task["series"]) for task in after] == [
        ("water", "completed", None, None),
        ("größer", "pending", None, None),
        ("ended", "pending", None, None),
        ("water", "pending", "FREQ=WEEKLY;BYDAY=FR;COUNT=2", 4),
    ]


def test_a_task_that_only_has_the_id_and_the_day_of_another_is_added(imported: Import, rows: Rows) -> None:
    imported("2026-11-01 milk\n2026-11-01 bread\n")
    other = {"id": 1, "title": "eggs", "status": "pending", "created_at": "2026-11-01T12:00:00+00:00"}
    document = json.dumps({"todo": {"tasks": [other, other | {"id": 2, "title": "bread"}]}})
    assert imported(document)[0] == "Added 1 task, 1 was there already.\n"
    assert titles(rows) == ["milk", "bread", "eggs"]


def kept(task: dict[str, Any]) -> dict[str, Any]:
    """What an import keeps of every task."""
    return {name: value for name, value in task.items() if name not in ("id", "series", "repeat")}
