"""`python -m mcp_server import`: todo.txt, CSV of Todoist and our own export; on a Sunday at 10:30 in Berlin."""

import asyncio
import csv
import io
import json
import re
import signal
from functools import partial
from typing import Any

import psycopg
import pytest

from common.database import advisory_locks
from tests.logins import as_admin
from tests.mcp.calls import FULL, Tools
from tests.mcp.importing import ADDED, PARTLY, Import, Imported, listed, run_command, started
from tests.support.stored import Stored
from tests.waiting import until

LINES = "(A) pay rent due:2026-11-27 rec:+1m +home\nx 2026-11-20 2026-11-01 call mum\nmilk\nmilk\n"


NOON, HALF_PAST_NINE = "2026-11-20T11:00", "2026-11-22T09:30"
TODO_TXT: list[tuple[str, str, dict[str, Any]]] = [
    ("buy milk", "buy milk", {}),
    ("(A) pay rent", "pay rent", {"priority": "high"}),
    ("(B) pay rent", "pay rent", {"priority": "medium"}),
    ("(C) pay rent", "pay rent", {"priority": "low"}),
    ("(D) pay rent", "pay rent", {}),
    ("(a) pay rent", "(a) pay rent", {}),
    ("2026-11-01 pay rent", "pay rent", {}),
    ("pay rent +home @desk", "pay rent", {"labels": ["desk", "home"]}),
    ("@phone call @mum about +xmas gifts", "call @mum about +xmas gifts", {"labels": ["mum", "phone", "xmas"]}),
    ("mail me@example.com 1 + 1", "mail me@example.com 1 + 1", {}),
    ("pay rent due:2026-11-27 +home", "pay rent", {"due": "2026-11-27", "labels": ["home"]}),
    ("dentist due:2026-11-27T15:00", "dentist", {"due": "2026-11-27 15:00"}),
    ("plants t:2026-11-25 see https://example.com", "plants t:2026-11-25 see https://example.com", {}),
    ("due: nothing", "due: nothing", {}),
    ("xylophone", "xylophone", {}),
    ("X not done", "X not done", {}),
    ("x 2026-11-20 2026-11-01 (A) a", "(A) a", {"completed_at": NOON}),
    ("x 2026-11-20 (A) 2026-11-01 a", "a", {"completed_at": NOON, "priority": "high"}),
    ("x 2026-11-20 (B) a", "a", {"completed_at": NOON, "priority": "medium"}),
    ("x (B) 2026-11-20 2026-11-01 a", "a", {"completed_at": NOON, "priority": "medium"}),
    ("x 2026-11-20 a pri:C rec:1w", "a", {"completed_at": NOON, "priority": "low"}),
    ("x done once", "done once", {"completed_at": HALF_PAST_NINE}),
    ("\tx   spaced \t out ", "spaced out", {"completed_at": HALF_PAST_NINE}),
    ("größer 日本 🚀", "größer 日本 🚀", {}),
    *[
        (f"water due:2026-11-27 rec:{rec}", "water", {"due": "2026-11-27", "repeat": repeat})
        for rec, repeat in {
            "1d": "FREQ=DAILY;FROM=DONE",
            "+1d": "FREQ=DAILY",
            "2w": "FREQ=WEEKLY;INTERVAL=2;FROM=DONE",
            "+2w": "FREQ=WEEKLY;INTERVAL=2;BYDAY=FR",
            "+1m": "FREQ=MONTHLY;BYMONTHDAY=27",
            "1y": "FREQ=YEARLY;FROM=DONE",
            "1b": "FREQ=WEEKLY;BYDAY=MO,TU,WE,TH,FR",
        }.items()
    ],
]
NO_TODO_TXT = [
    *("two due:2026-02-30", "three due:2026-11-27 rec:2b", "four rec:1w", "+only @labels", "2026-13-01 five"),
    *("x 9999-12-31 six", f"seven @{'l' * 41}", "eight" * 41, "nine" * 10_000, "ten due:2026-11-27 rec:0d"),
]


async def test_todo_txt(imported: Import, tools: Tools) -> None:
    report = imported("\n".join(line for line, *_ in TODO_TXT))
    assert (report.counts, report.problems, report.status) == ((len(TODO_TXT), 0), {}, 0)
    assert await listed(tools) == [(title, fields) for _, title, fields in TODO_TXT]


def test_lines_of_todo_txt_that_cannot_be_read(imported: Import, tools: Tools, stored: Stored) -> None:
    report = imported("\r\n".join(["one", "", *NO_TODO_TXT, "last"]))
    assert (report.counts, report.status) == ((2, 0), PARTLY)
    assert [*report.problems] == [f"line {number + 3}" for number in range(len(NO_TODO_TXT))]
    assert stored.titles(tools.user) == ["one", "last"]
    corrected = [re.sub(r"due.*", "due:2026-11-27", NO_TODO_TXT[0])]
    assert imported("\r".join(["one", *corrected, "last"])).counts == (1, 2)


COLUMNS = (
    *("TYPE", "CONTENT", "DESCRIPTION", "PRIORITY", "INDENT", "AUTHOR", "RESPONSIBLE", "DATE", "DATE_LANG"),
    *("TIMEZONE", "DURATION", "DURATION_UNIT", "DEADLINE", "DEADLINE_LANG"),
)


def project(*rows: dict[str, str]) -> str:
    file = io.StringIO()
    writer = csv.DictWriter(file, COLUMNS)
    writer.writeheader()
    writer.writerows(rows)
    return file.getvalue()


def row(content: str, **cells: str) -> dict[str, str]:
    return {"TYPE": "task", "CONTENT": content, "PRIORITY": "4", "INDENT": "1", "DATE_LANG": "en"} | cells


TODOIST: list[tuple[dict[str, str], str, dict[str, Any]]] = [
    (row("buy milk"), "buy milk", {}),
    (row("a", PRIORITY="1"), "a", {"priority": "high"}),
    (row("a", PRIORITY="2"), "a", {"priority": "medium"}),
    (row("a", PRIORITY="3"), "a", {"priority": "low"}),
    (row("a", PRIORITY=""), "a", {}),
    (row("basil @garden @Weekend"), "basil", {"labels": ["garden", "weekend"]}),
    (row("ask @mum first"), "ask @mum first", {"labels": ["mum"]}),
    (row("a", DESCRIPTION="two\nlines"), "a", {"description": "two\nlines"}),
    (row("a", DESCRIPTION="two\r\nlines"), "a", {"description": "two\nlines"}),
    (row("a", DESCRIPTION="d", DEADLINE="Oct 9 2026"), "a", {"description": "d\nDeadline: Oct 9 2026"}),
    (row("b", INDENT="3", AUTHOR="Kai (1)", DURATION="30"), "b", {}),
    (row('5" nails, "long"'), '5" nails, "long"', {}),
    (row("a", DATE="2026-11-27", DATE_LANG="de"), "a", {"due": "2026-11-27"}),
]
DATES = {
    "2026-11-27": "2026-11-27",
    "2026-11-27 15:00": "2026-11-27 15:00",
    "2026-11-27 3pm": "2026-11-27 15:00",
    "2026-11-27T15:00:00Z": "2026-11-27 16:00",
    "Oct 5 2026": "2026-10-05",
    "27 Nov 2026": "2026-11-27",
    "November 27, 2026 at 9": "2026-11-27 09:00",
    "27th nov 9am": "2026-11-27 09:00",
    "Nov 21": "2026-11-21",
    "next week": "2026-11-23",
    "12/24/2026": "2026-12-24",
    "Nov 22": "2026-11-22",
    "29 Feb": "2028-02-29",
    "today": "2026-11-22",
    "today at 9": "2026-11-22 09:00",
    "tomorrow 18:00": "2026-11-23 18:00",
    "Monday 12am": "2026-11-23 00:00",
    "sunday at 12 pm": "2026-11-29 12:00",
}
REPEATS = {
    "every day": ("2026-11-22", "FREQ=DAILY"),
    "daily": ("2026-11-22", "FREQ=DAILY"),
    "every day at 9": ("2026-11-23 09:00", "FREQ=DAILY"),
    "every day 21:00": ("2026-11-22 21:00", "FREQ=DAILY"),
    "every morning": ("2026-11-23 09:00", "FREQ=DAILY"),
    "every monday at 9": ("2026-11-23 09:00", "FREQ=WEEKLY;BYDAY=MO"),
    "every sun": ("2026-11-22", "FREQ=WEEKLY;BYDAY=SU"),
    "every mon, wed and fri 18:30": ("2026-11-23 18:30", "FREQ=WEEKLY;BYDAY=MO,WE,FR"),
    "every other monday": ("2026-11-23", "FREQ=WEEKLY;INTERVAL=2;BYDAY=MO"),
    "every weekday": ("2026-11-23", "FREQ=WEEKLY;BYDAY=MO,TU,WE,TH,FR"),
    "every weekend": ("2026-11-28", "FREQ=WEEKLY;BYDAY=SA"),
    "every 3 days starting 5 Dec 2026": ("2026-12-05", "FREQ=DAILY;INTERVAL=3"),
    "every 2 weeks at 9 starting on Dec 5": ("2026-12-05 09:00", "FREQ=WEEKLY;INTERVAL=2;BYDAY=SA"),
    "every week until 24 Dec": ("2026-11-22", "FREQ=WEEKLY;BYDAY=SU;UNTIL=20261224"),
    "every month": ("2026-11-22", "FREQ=MONTHLY;BYMONTHDAY=22"),
    "every! 3 months": ("2026-11-22", "FREQ=MONTHLY;INTERVAL=3;FROM=DONE"),
    "every! monday": ("2026-11-23", "FREQ=WEEKLY;BYDAY=MO"),
    "every 27th": ("2026-11-27", "FREQ=MONTHLY;BYMONTHDAY=27"),
    "every 1st, 15th of the month": ("2026-12-01", "FREQ=MONTHLY;BYMONTHDAY=1,15"),
    "every last day": ("2026-11-30", "FREQ=MONTHLY;BYMONTHDAY=-1"),
    "every 3rd friday": ("2026-12-18", "FREQ=MONTHLY;BYDAY=3FR"),
    "every last friday 5pm": ("2026-11-27 17:00", "FREQ=MONTHLY;BYDAY=-1FR"),
    "every jan 27th": ("2027-01-27", "FREQ=YEARLY;BYMONTH=1;BYMONTHDAY=27"),
    "every year starting 2027-01-01": ("2027-01-01", "FREQ=YEARLY;BYMONTH=1;BYMONTHDAY=1"),
}
NO_DATES = (
    *("soon", "12/05/2026", "feb 30", "32 nov 2026", "at 9", "noon", "monday tuesday", "x" * 200),
    *("every", "every hour", "every 12 hours", "every day at 5", "every day at 25", "every day at 13pm", "every 40"),
    *("every second tuesday", "every other weekday", "every 6th friday", "every feb 30", "every purple friday"),
    *("tomorrow until friday", "every day until soon", "every day starting never", "every day from fri from sat"),
)


async def test_todoist(imported: Import, tools: Tools) -> None:
    expected = [
        *TODOIST,
        *[(row(text, DATE=text), text, {"due": due}) for text, due in DATES.items()],
        *[(row(text, DATE=text), text, {"due": due, "repeat": repeat}) for text, (due, repeat) in REPEATS.items()],
    ]
    report = imported(project(*(cells for cells, *_ in expected)))
    assert (report.counts, report.problems) == ((len(expected), 0), {})
    assert await listed(tools) == [(title, fields) for _, title, fields in expected]


def test_dates_of_todoist_that_cannot_be_read(imported: Import, tools: Tools, stored: Stored) -> None:
    report = imported(project(row("good"), *(row("a", DATE=text) for text in NO_DATES)))
    assert (report.counts, len(report.problems), report.status) == ((1, 0), len(NO_DATES), PARTLY)
    assert stored.titles(tools.user) == ["good"]


async def test_other_columns_of_todoist(imported: Import, tools: Tools) -> None:
    """Older files have other names for the dates; a column that is not known is named, not skipped in silence."""
    report = imported(
        "TYPE,CONTENT,DUE_DATE,DUE_DATE_LANG,EFFORT\ntask,plants,every monday,en,3\ntask,tax,2026-12-24,en,\n"
    )
    assert await listed(tools) == [
        ("plants", {"due": "2026-11-23", "repeat": "FREQ=WEEKLY;BYDAY=MO"}),
        ("tax", {"due": "2026-12-24"}),
    ]
    assert (report.lost, report.problems, report.status) == ({"EFFORT": "once"}, {}, 0)


async def test_many_other_columns(imported: Import, tools: Tools) -> None:
    """Cells without a name, too: a task may have more cells than the header."""
    names = [f"COLUMN{number:03}" for number in range(100)]
    report = imported(f"TYPE,CONTENT,{','.join(names)}\ntask,milk{',x' * 101}\n")
    assert report.counts == (1, 0)
    assert report.lost == dict.fromkeys(names[:30], "once")
    assert "and 71 more columns." in report.text


async def test_notes_and_sections_of_todoist(imported: Import, tools: Tools) -> None:
    report = imported(
        project(
            {"TYPE": "meta", "CONTENT": "view_style=list"},
            row("first", DESCRIPTION="d"),
            {"TYPE": "note", "CONTENT": "one"},
            {"TYPE": "note", "CONTENT": "two"},
            {},
            {"TYPE": "section", "CONTENT": "This Week"},
            row("second @home"),
            {"TYPE": "section", "CONTENT": "s" * 41},
            {"TYPE": "note", "CONTENT": "of nothing"},
            row("third"),
        )
    )
    assert await listed(tools) == [
        ("first", {"description": "d\none\ntwo"}),
        ("second", {"labels": ["home", "this week"]}),
        ("third", {}),
    ]
    assert [*report.problems] == ["line 9", "line 10"]


async def test_rows_of_todoist_that_cannot_be_read(imported: Import, tools: Tools) -> None:
    """Each is named by its first line, and none is half done."""
    good = project(row("one", DESCRIPTION="two\nlines"), row("a", DATE="jeden Montag", DATE_LANG="de"))
    broken = 'task,"x"y,,4,1\r\nnote,of nobody,,,\r\ntask,last,,4,1\r\n'
    rows = project(
        row("a", PRIORITY="5"),
        row("b", DATE="soon"),
        {"TYPE": "note", "CONTENT": "waits"},
        {"TYPE": "Task"},
        row(""),
    )
    report = imported(good + broken + rows.partition("\r\n")[2] + 'task,"never closed\r\ntask,lost\r\n')
    assert await tools.titles() == ["one", "last"]
    assert [*report.problems] == ["line 4", "line 5", "line 8", "line 9", "line 11", "line 12", "lines 13 to 14"]


MADE = "2026-10-01T08:00:00.123456+00:00"
TASK: dict[str, Any] = {"id": 7, "title": "milk", "status": "pending", "created_at": MADE}
EXPORTED = TASK | {
    "description": "two\nlines",
    "updated_at": "2026-10-02T08:00:00+00:00",
    "completed_at": None,
    "due_on": "2026-11-27",
    "due_time": "15:00:00",
    "priority": 1,
    "labels": ["home", "work"],
    "repeat": "FREQ=WEEKLY;BYDAY=FR",
    "series": 3,
}
NO_TASKS: list[dict[str, Any]] = [
    *[{"id": "x"}, {"id": 2**63}, {"id": None, "title": 5}, {"title": "x" * 201}, {"title": "a\0b"}],
    *[{"title": "a\ud800b"}, {"status": "done"}, {"created_at": "2026-10-01T08:00:00"}, {"due_on": "2026-02-30"}],
    *[{"created_at": "0001-01-01T00:00:00+14:00"}, {"due_on": "0001-01-01"}, {"priority": 4}, {"labels": ["x" * 41]}],
    *[{"labels": "home"}, {"repeat": "FREQ=DAILY"}, {"due_time": "15:00"}],
]


def export(*tasks: object) -> str:
    return json.dumps({"version": 1, "user": "alice", "todo": {"tasks": tasks}})


async def test_an_export(imported: Import, tools: Tools) -> None:
    done = EXPORTED | {"id": 8, "status": "completed", "completed_at": MADE}
    ended = EXPORTED | {"id": 9, "repeat": "FREQ=WEEKLY;BYDAY=FR;UNTIL=20261126"}
    assert imported(export(EXPORTED, done, ended)).counts == (3, 0)
    details: dict[str, Any] = {"description": "two\nlines", "due": "2026-11-27 15:00", "priority": "high"}
    details["labels"] = ["home", "work"]
    assert await listed(tools) == [
        ("milk", details | {"repeat": "FREQ=WEEKLY;BYDAY=FR"}),
        ("milk", details | {"repeat": "FREQ=WEEKLY;BYDAY=FR", "completed_at": "2026-10-01T08:00"}),
        ("milk", details | {"repeat": "FREQ=WEEKLY;BYDAY=FR;UNTIL=20261126"}),
    ]
    [first, *_] = await tools.tasks()
    assert (first["created_at"], first["updated_at"]) == ("2026-10-01T08:00:00.123456Z", "2026-10-02T08:00:00Z")


def test_tasks_of_an_export_that_cannot_be_read(imported: Import, tools: Tools, stored: Stored) -> None:
    report = imported(export(TASK, *(TASK | wrong for wrong in NO_TASKS), TASK | {"id": 8, "title": "bread"}))
    assert [*report.problems] == [f"task {number + 2}" for number in range(len(NO_TASKS))]
    assert stored.titles(tools.user) == ["milk", "bread"]


@pytest.mark.parametrize(
    ("text", "arguments"),
    [("TYPE,CONTENT\n", []), ("Title\nmilk\n", ["--name=a.csv"]), ("milk", ["--user=a\nb"])],
    ids=range(3),
)
def test_a_file_without_tasks_changes_nothing(
    imported: Import, stored: Stored, user: str, text: str, arguments: list[str]
) -> None:
    report = imported(text, *arguments)
    assert not ADDED.search(report.text)
    assert len((report.text + report.errors).splitlines()) == 1
    assert "Traceback" not in report.errors
    assert stored.row_counts(user) == {}


def test_a_format_that_is_given(imported: Import, stored: Stored, user: str) -> None:
    imported('{"milk"}\n', "--format=todo.txt")
    assert stored.titles(user) == ['{"milk"}']


async def test_a_file_is_added_once(imported: Import, tools: Tools, stored: Stored) -> None:
    assert imported(LINES).counts == (4, 0)
    assert stored.task_calls(tools.user) == [("add", "import")] * 4
    added = {call["id"]: call["arguments"]["task_id"] for call in stored.rows_of(tools.user, "task_calls")}
    changes = [(change["call_id"], change["task_id"]) for change in stored.rows_of(tools.user, "task_changes")]
    assert sorted(changes) == sorted(added.items())  # each change belongs to the call that names its task
    before = await tools.state()
    assert imported(LINES).counts == (0, 4)
    assert await tools.state() == before
    await tools.update(3, title="bread")
    await tools.delete(4)
    await tools.complete(1)
    assert imported("first\n" + LINES.replace("\n", "\r\n")).counts == (1, 4), "whatever became of them"
    assert imported("x 2026-11-28 pay rent due:2026-11-27 rec:+1m +home\n").counts == (0, 1)


async def test_a_list_belongs_to_one_user(imported: Import, tools: Tools, stored: Stored) -> None:
    other = f"{tools.user}-b"
    assert imported(LINES).counts == imported(LINES, name=other).counts == (4, 0)
    assert stored.titles(other) == await tools.titles()


def test_the_most_tasks(imported: Import, stored: Stored, user: str) -> None:
    text = "\n".join(f"task {number}" for number in range(10))
    report = imported(text, LIMIT_TASKS="7")
    assert (report.counts, report.status) == ((7, 0), PARTLY)
    assert "3 tasks were not added" in report.text
    assert imported(text, LIMIT_TASKS="20").counts == (3, 7)


def test_imports_at_once_add_once(user_environment: dict[str, str], stored: Stored, user: str) -> None:
    text = "".join(f"task {number}\n" for number in range(1_200)).encode()
    with started(user_environment, user) as one, started(user_environment, user) as other:
        for process in (one, other):
            assert process.stdin
            process.stdin.write(text)
            process.stdin.close()
            process.stdin = None
        counts = [Imported(*process.communicate(timeout=60), 0).counts for process in (one, other)]
    assert [sum(each) for each in counts] == [1_200] * 2
    assert sum(added for added, _ in counts) == 1_200
    assert sorted(stored.titles(user)) == sorted(text.decode().splitlines())


@pytest.mark.long
async def test_an_import_that_is_killed_is_completed_by_the_next(
    user_environment: dict[str, str], session_database_url: str, imported: Import, stored: Stored, user: str
) -> None:
    def lock(connection: psycopg.Connection[Any]) -> None:
        connection.execute(f"SELECT {advisory_locks.TASKS}", {"user": user})

    text = "".join(f"task {number}\n" for number in range(3_000))
    url = as_admin(session_database_url)
    # The second one is closed after the first, for whose lock it may wait.
    with psycopg.connect(url) as second, psycopg.connect(url) as first, started(user_environment, user) as process:
        lock(first)
        assert process.stdin
        process.stdin.write(text.encode())
        process.stdin.close()
        process.stdin = None
        await until(stored.has_waiting_statements)
        locking = asyncio.create_task(asyncio.to_thread(lock, second))
        await until(lambda: stored.has_waiting_statements(count=2))
        first.commit()
        await locking  # between the first and the second transaction of the import
        process.send_signal(signal.SIGKILL)
    half = len(stored.titles(user))
    assert 0 < half < 3_000
    assert imported(text).counts == (3_000 - half, half)
    assert stored.titles(user) == text.splitlines()


async def test_export_forget_import_and_the_same_tasks(
    imported: Import, user_environment: dict[str, str], tools: Tools, stored: Stored
) -> None:
    command = partial(run_command, user_environment, user=tools.user)
    weekly = {"due": "2026-11-20 09:00", "repeat": "FREQ=WEEKLY;COUNT=3", "labels": ["home", "plants"]}
    await tools.add("water", priority="low", **weekly)
    await tools.add("größer", description="two\nlines", due="2026-11-27")
    await tools.add("gone")
    await tools.add(**FULL)
    await tools.complete(1)
    await tools.delete(3)
    before, times = await listed(tools), [task["created_at"] for task in await tools.tasks()]
    document = command("export")
    assert imported(document).counts == (0, 4)
    command("forget")
    assert stored.row_counts(tools.user) == {}
    assert imported(document).counts == (4, 0)
    assert imported(document).counts == (0, 4)
    assert (await listed(tools), [task["created_at"] for task in await tools.tasks()]) == (before, times)
    assert len(json.loads(command("export"))["imports"]) == 4


def test_a_task_with_the_id_of_another(imported: Import, stored: Stored, user: str) -> None:
    imported("2026-11-01 milk\n2026-11-01 bread\n")
    other = {"id": 1, "title": "eggs", "status": "pending", "created_at": "2026-11-01T11:00:00+00:00"}
    assert imported(export(other, other | {"id": 2, "title": "bread"})).counts == (1, 1)
    assert stored.titles(user) == ["milk", "bread", "eggs"]


async def test_undo_of_the_page(imported: Import, tools: Tools, stored: Stored, user: str) -> None:
    imported("milk\nbread\n")
    imported("eggs\n")
    *_, batch = [call["batch"] for call in sorted(stored.rows_of(user, "task_calls"), key=lambda call: call["id"])]
    await tools.undo_batch(batch)
    assert await tools.titles() == ["milk", "bread"]
    assert imported("eggs\n").counts == (1, 0), "it is not known any more"
    assert imported("milk\nbread\n").counts == (0, 2)


async def test_undo(imported: Import, tools: Tools) -> None:
    imported("milk\nbread\n")
    imported("eggs\n")
    assert imported("", "--undo").text == "Undid the last import: 1 task removed.\n"
    assert await tools.titles() == ["milk", "bread"]
    assert imported("eggs\n").counts == (1, 0), "it is not known any more"
    assert imported("", "--undo").status == 0
    milk, _ = await tools.tasks()
    await tools.update(milk["id"], title="oat milk")
    changed = imported("", "--undo")
    assert (changed.status, "because of later changes to task" in changed.errors) == (1, True)
    await tools.undo(milk["id"])
    assert imported("", "--undo").text == "Undid the last import: 2 tasks removed.\n"
    assert await tools.titles() == []
    assert imported("", "--undo").status == 1
