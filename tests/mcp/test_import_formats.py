"""Imports of other programs' files, which are written as their documents and public samples are: each names its source.

On a Sunday at 10:30 in Berlin. What was imported survives an export and its import elsewhere.
"""

import json
from dataclasses import dataclass, field
from typing import Any

import pytest

from tests.mcp.calls import FULL, Tools
from tests.mcp.importing import PARTLY, Import, listed, run_command
from tests.support.stored import Stored


@dataclass(frozen=True)
class Sample:
    text: str
    tasks: list[tuple[str, dict[str, Any]]]
    lost: dict[str, str] = field(default_factory=dict[str, str])


# The columns and values of https://todoist.com/help/articles/import-or-export-a-project-as-a-csv-file-in-todoist-YC8YvN
# and of the templates in https://github.com/colin-gourlay/todoist-playbook.
TODOIST = Sample(
    "TYPE,CONTENT,DESCRIPTION,PRIORITY,INDENT,AUTHOR,RESPONSIBLE,DATE,DATE_LANG,TIMEZONE,DURATION,DURATION_UNIT,"
    "DEADLINE,DEADLINE_LANG\r\n"
    "meta,view_style=list,,,,,,,,,,,,\r\n"
    'task,Renew the passport @errands,"Two photos, 35 by 45 mm",1,1,Ada (1),,Dec 15 2026 10:00,en,Europe/Berlin,90,'
    "minute,,\r\n"
    "note,The office closes at noon on Fridays.,,,,Ada (1),,,,,,,,\r\n"
    "task,Take the photos,,2,2,Ada (1),Kai (2),,,,,,,\r\n"
    "section,Garden,,,,,,,,,,,,\r\n"
    "task,Water the ferns,,3,1,Ada (1),,every! 3 days,en,America/Sao_Paulo,,,2026-12-31,en\r\n",
    [
        (
            "Renew the passport",
            {
                "description": "Two photos, 35 by 45 mm\nThe office closes at noon on Fridays.",
                "due": "2026-12-15 10:00",
                "priority": "high",
                "labels": ["errands"],
            },
        ),
        ("Take the photos", {"priority": "medium"}),
        (
            "Water the ferns",
            {
                "description": "Deadline: 2026-12-31",
                "due": "2026-11-22",
                "priority": "low",
                "labels": ["garden"],
                "repeat": "FREQ=DAILY;INTERVAL=3;FROM=DONE",
            },
        ),
    ],
    {
        "DURATION": "once",
        "DURATION_UNIT": "once",
        "INDENT": "once",
        "RESPONSIBLE": "once",
        "TIMEZONE": "once",
    },
)

# As https://github.com/todotxt/todo.txt describes it, with `due:` and `rec:` as in its list of additional definitions.
TODO_TXT = Sample(
    "(A) 2026-11-01 Thank Ada for the soup @phone\n"
    "Sweep the yard +GarageSale @home due:2026-11-27 rec:+1w\n"
    "x 2026-11-20 2026-11-12 Return the ladder @home pri:B\n"
    "x 2026-11-19 2026-11-12 Water the ivy due:2026-11-18 rec:1w\n"
    "x 2026-11-18 Mow the lawn rec:2w\n",
    [
        ("Thank Ada for the soup", {"priority": "high", "labels": ["phone"]}),
        (
            "Sweep the yard",
            {"due": "2026-11-27", "labels": ["garagesale", "home"], "repeat": "FREQ=WEEKLY;BYDAY=FR"},
        ),
        ("Return the ladder", {"priority": "medium", "labels": ["home"], "completed_at": "2026-11-20T11:00"}),
        (
            "Water the ivy",
            {"due": "2026-11-18", "repeat": "FREQ=WEEKLY;FROM=DONE", "completed_at": "2026-11-19T11:00"},
        ),
        ("Mow the lawn", {"completed_at": "2026-11-18T11:00"}),
    ],
    {"rec": "once"},
)

# As the backups in https://github.com/go-vikunja/vikunja/tree/main/pkg/modules/migration/ticktick, with the signs of a
# checklist as in https://gist.github.com/Terrance/0e21ef32801c846f07b28fc6fc3310e9.
_TICKTICK_START = '"Date: 2026-11-20+0000"\n"Version: 7.1"\n"Status: \n0 Normal\n1 Completed\n2 Archived"\n'
_TICKTICK_COLUMNS = (
    *("Folder Name", "List Name", "Title", "Kind", "Tags", "Content", "Is Check list", "Start Date", "Due Date"),
    *("Reminder", "Repeat", "Priority", "Status", "Created Time", "Completed Time", "Order", "Timezone", "Is All Day"),
    *("Is Floating", "Column Name", "Column Order", "View Mode", "taskId", "parentId"),
)


def ticktick_row(title: str, **cells: str) -> str:
    """The words of a column's name are joined by `_`."""
    usual = {"Title": title, "List Name": "Inbox", "Kind": "TEXT", "Is Check list": "N", "Priority": "0", "Status": "0"}
    usual |= {"Created Time": "2026-10-09T15:09:48+0000", "Order": "-1099511627776", "Timezone": "Europe/Berlin"}
    usual |= {"View Mode": "list", "taskId": "1", "Is Floating": "false"}
    cells = usual | {name.replace("_", " "): value for name, value in cells.items()}
    return ",".join('"' + cells.get(name, "").replace('"', '""') + '"' for name in _TICKTICK_COLUMNS) + "\n"


def ticktick(*rows: str) -> str:
    return _TICKTICK_START + ",".join(f'"{name}"' for name in _TICKTICK_COLUMNS) + "\n" + "".join(rows)


TICKTICK = Sample(
    ticktick(
        ticktick_row(
            "Order\nthe stamps",
            Folder_Name="Office",
            List_Name="Project Alpha",
            Tags="urgent, #mail",
            Content="Two\r\n\r\nparagraphs: #, *, @",
            Priority="5",
            Column_Name="Doing",
        ),
        ticktick_row(
            "An all-day task",
            Start_Date="2026-12-10T23:00:00+0000",
            Due_Date="2026-12-10T23:00:00+0000",
            Is_All_Day="true",
            Reminder="TRIGGER:P0DT9H0M0S",
            Priority="3",
        ),
        ticktick_row(
            "A task with a time",
            Due_Date="2026-12-11T08:30:00+0000",
            Timezone="Asia/Tokyo",
            Reminder="TRIGGER:-PT30M",
            parentId="1",
        ),
        ticktick_row(
            "A floating task",
            Due_Date="2026-12-11T08:30:00+0000",
            Timezone="Asia/Tokyo",
            Reminder="-P1D",
            Is_Floating="true",
        ),
        ticktick_row("Spaces in dates", Start_Date="2026-12-20 10:00:00", Due_Date="2026-12-27 14:59:52"),
        ticktick_row(
            "A repeat",
            Due_Date="2026-11-30T08:00:00+0000",
            Repeat="RRULE:FREQ=WEEKLY;INTERVAL=1;BYDAY=MO,TU,WE,TH,FR",
            Priority="1",
        ),
        ticktick_row("A rule of TickTick", Due_Date="2026-11-30T08:00:00+0000", Repeat="LUNAR:FREQ=YEARLY"),
        ticktick_row("Pack", Kind="CHECKLIST", Is_Check_list="Y", Content="For Lyon\n▫Tent\n▪Stove"),
        ticktick_row("Done", Status="2", Completed_Time="2026-11-19T10:39:31+0000", Created_Time=""),
        ticktick_row("Dropped", Status="-1", Completed_Time="2026-11-18T10:39:31+0000"),
        ticktick_row("A note", Kind="NOTE", Created_Time="0000-00-00"),
    ),
    [
        (
            "Order the stamps",
            {
                "description": "Two\n\nparagraphs: #, *, @",
                "priority": "high",
                "labels": ["mail", "project alpha", "urgent"],
            },
        ),
        ("An all-day task", {"due": "2026-12-11", "priority": "medium"}),
        ("A task with a time", {"due": "2026-12-11 09:30", "remind": 30}),
        ("A floating task", {"due": "2026-12-11 17:30", "remind": 1440}),
        ("Spaces in dates", {"due": "2026-12-27 14:59"}),
        ("A repeat", {"due": "2026-11-30 09:00", "priority": "low", "repeat": "FREQ=WEEKLY;BYDAY=MO,TU,WE,TH,FR"}),
        ("A rule of TickTick", {"due": "2026-11-30 09:00"}),
        ("Pack", {"description": "For Lyon\n- [ ] Tent\n- [x] Stove"}),
        ("Done", {"completed_at": "2026-11-19T10:39"}),
        ("Dropped", {"completed_at": "2026-11-18T10:39"}),
        ("A note", {}),
    ],
    {
        "Column Name": "once",
        "Created Time": "once",
        "Folder Name": "once",
        "Kind": "once",
        "Reminder": "once",
        "Repeat": "once",
        "Start Date": "once",
        "Status": "once",
        "parentId": "once",
    },
)

# Outlook's columns of tasks, which are described in "Outlook Fields and Equivalent Properties" of
# https://learn.microsoft.com/office/vba/outlook, with the texts that Outlook writes into them.
OUTLOOK = Sample(
    '"Subject","Start Date","Due Date","Reminder On/Off","Reminder Date","Reminder Time","Date Completed","% Complete",'
    '"Total Work","Actual Work","Billing Information","Categories","Companies","Contacts","Mileage","Notes","Priority",'
    '"Private","Role","Schedule+ Priority","Sensitivity","Status"\r\n'
    '"Call the dentist","12/8/2026","12/10/2026","True","12/10/2026","9:00:00 AM","","0","0 hours","0 hours","",'
    '"Health;Phone calls","","","","Ask about\r\nthe crown.","High","False","","","Normal","Not Started"\r\n'
    '"Pay the power bill","","12/24/2026","False","","","","0.5","0","0","","","","","","","Normal","False","","",'
    '"Normal","In Progress"\r\n'
    '"Send the forms","","8/30/2026","False","","","9/1/2026","1","2 hours","0","","","Acme","","","","Low","False","",'
    '"","Normal","Completed"\r\n'
    '"Begin","12/5/2026","","False","","","1/1/4501","0","0","0","","","","","","","Normal","False","","","Normal",'
    '"Not Started"\r\n',
    [
        (
            "Call the dentist",
            {
                "description": "Ask about\nthe crown.",
                "due": "2026-12-10",
                "priority": "high",
                "labels": ["health", "phone calls"],
            },
        ),
        ("Pay the power bill", {"due": "2026-12-24"}),
        ("Send the forms", {"due": "2026-08-30", "priority": "low", "completed_at": "2026-09-01T10:00"}),
        ("Begin", {"due": "2026-12-05"}),
    ],
    {
        "% Complete": "once",
        "Companies": "once",
        "Reminder On/Off": "once",
        "Start Date": "once",
        "Status": "once",
        "Total Work": "once",
    },
)

# The first is an example of RFC 5545, section 3.6.2, and the second one of section 3.8.1.9; the others are written as
# Apple's Reminders, Tasks.org, Nextcloud Tasks and Thunderbird write theirs.
ICALENDAR = Sample(
    """BEGIN:VCALENDAR
VERSION:2.0
PRODID:-//Example//EN
BEGIN:VTIMEZONE
TZID:Europe/Berlin
BEGIN:STANDARD
DTSTART:19701025T030000
RRULE:FREQ=YEARLY;BYMONTH=10;BYDAY=-1SU
TZOFFSETFROM:+0200
TZOFFSETTO:+0100
END:STANDARD
END:VTIMEZONE
BEGIN:VTODO
UID:20070313T123432Z-456553@example.com
DTSTAMP:20070313T123432Z
DUE;VALUE=DATE:20070501
SUMMARY:Submit Quebec Income Tax Return for 2006
CLASS:CONFIDENTIAL
CATEGORIES:FAMILY,FINANCE
STATUS:NEEDS-ACTION
END:VTODO
BEGIN:VTODO
UID:20070514T103211Z-123404@example.com
DTSTAMP:20070514T103211Z
DTSTART:20070514T110000Z
DUE:20070709T130000Z
COMPLETED:20070707T100000Z
SUMMARY:Submit Revised Internet-Draft
PRIORITY:1
STATUS:NEEDS-ACTION
END:VTODO
BEGIN:VTODO
UID:reminders
CREATED:20261014T211812Z
LAST-MODIFIED:20261016T020342Z
COMPLETED:20261016T020342Z
PERCENT-COMPLETE:100
STATUS:COMPLETED
DESCRIPTION:
SUMMARY:Sharpen the saw
X-APPLE-SORT-ORDER:740793996
END:VTODO
BEGIN:VTODO
UID:tasks-org
SUMMARY:Water
DESCRIPTION:One line\\nand another\\, with a comma\\; and a very long tex
 t that is folded
CATEGORIES:Plants\\, indoors,home
PRIORITY:9
DTSTART;TZID=Europe/Berlin:20261127T150000
DUE;TZID=Europe/Berlin:20261127T150000
RRULE:FREQ=WEEKLY;BYDAY=FR;UNTIL=20270401T120000Z
RELATED-TO;RELTYPE=PARENT:reminders
BEGIN:VALARM
TRIGGER;RELATED=END:-PT15M
ACTION:DISPLAY
DESCRIPTION:Default Tasks.org description
END:VALARM
END:VTODO
BEGIN:VTODO
UID:nextcloud
SUMMARY:Paint the fence
PRIORITY:5
PERCENT-COMPLETE:40
STATUS:IN-PROCESS
DTSTART:20261210T090000
DURATION:PT2H
LOCATION:Garden
URL:https://example.com/fence
END:VTODO
BEGIN:VTODO
UID:thunderbird
SUMMARY:Too often
DUE;TZID="W. Europe Standard Time":20261210T090000
RRULE:FREQ=HOURLY
STATUS:CANCELLED
CREATED:19700101T000000Z
COMPLETED:20261101T120000Z
END:VTODO
BEGIN:VEVENT
UID:event
SUMMARY:A party
END:VEVENT
END:VCALENDAR
""".replace("\n", "\r\n"),
    [
        ("Submit Quebec Income Tax Return for 2006", {"due": "2007-05-01", "labels": ["family", "finance"]}),
        (
            "Submit Revised Internet-Draft",
            {"due": "2007-07-09 15:00", "priority": "high", "completed_at": "2007-07-07T10:00"},
        ),
        ("Sharpen the saw", {"completed_at": "2026-10-16T02:03"}),
        (
            "Water",
            {
                "description": "One line\nand another, with a comma; and a very long text that is folded",
                "due": "2026-11-27 15:00",
                "priority": "low",
                "labels": ["home", "plants, indoors"],
                "repeat": "FREQ=WEEKLY;BYDAY=FR;UNTIL=20270331",
                "remind": 15,
            },
        ),
        (
            "Paint the fence",
            {
                "description": "Location: Garden\nhttps://example.com/fence",
                "due": "2026-12-10 11:00",
                "priority": "medium",
            },
        ),
        ("Too often", {"due": "2026-12-10 09:00", "completed_at": "2026-11-01T12:00"}),
    ],
    {
        "CREATED": "once",
        "DTSTART": "2 times",
        "PERCENT-COMPLETE": "once",
        "RELATED-TO": "once",
        "RRULE": "once",
        "STATUS": "2 times",
        "VEVENT": "once",
    },
)

_MADE = "2026-10-01T08:00:00.123456+00:00"
_WEEKLY = {"due_on": "2026-11-27", "due_time": "15:00:00", "repeat": "FREQ=WEEKLY;BYDAY=FR", "series": 3}
EXPORT = Sample(
    json.dumps(
        {
            "version": 2,
            "user": "ada",
            "todo": {
                "tasks": [
                    {"id": 3, "title": "Water", "status": "completed", "created_at": _MADE, "completed_at": _MADE}
                    | _WEEKLY
                    | {"due_on": "2026-11-20"},
                    {"id": 4, "title": "Water", "status": "pending", "created_at": _MADE, "priority": 1} | _WEEKLY,
                ]
            },
        }
    ),
    [
        (
            "Water",
            {"due": "2026-11-20 15:00", "repeat": "FREQ=WEEKLY;BYDAY=FR", "completed_at": "2026-10-01T08:00"},
        ),
        ("Water", {"due": "2026-11-27 15:00", "repeat": "FREQ=WEEKLY;BYDAY=FR", "priority": "high"}),
    ],
)
SAMPLES = {
    "export": EXPORT,
    "todoist": TODOIST,
    "ticktick": TICKTICK,
    "microsoft-todo": OUTLOOK,
    "icalendar": ICALENDAR,
    "todo.txt": TODO_TXT,
}


@pytest.mark.parametrize("format", SAMPLES)
async def test_import_export_and_import(
    format: str, imported: Import, user_environment: dict[str, str], tools: Tools, stored: Stored
) -> None:
    """Each field is there, is there again elsewhere, and what has no field is said; nothing is added twice."""
    sample = SAMPLES[format]
    report = imported(sample.text, "--name=file")
    assert (report.counts, report.problems, report.lost) == ((len(sample.tasks), 0), {}, sample.lost)
    assert report.status == 0
    assert await listed(tools) == sample.tasks
    assert imported(sample.text, f"--format={format}").counts == (0, len(sample.tasks))
    before = export_of(user_environment, tools.user)
    other = f"{tools.user}-b"
    copied = imported(run_command(user_environment, "export", tools.user), name=other)
    assert (copied.counts, copied.lost) == ((len(sample.tasks), 0), {})
    assert export_of(user_environment, other) == before
    series = [{task["id"]: task["series"] for task in stored.rows_of(user, "tasks")} for user in (other, tools.user)]
    assert series[0] == series[1]


def export_of(environment: dict[str, str], user: str) -> list[dict[str, Any]]:
    """All columns of the tasks."""
    return json.loads(run_command(environment, "export", user))["tasks"]


async def test_each_field_of_tasks_survives(
    imported: Import, user_environment: dict[str, str], tools: Tools, stored: Stored
) -> None:
    """Of open and completed tasks, of a repeat that goes on, and of one that has ended."""
    await tools.add("first")
    await tools.delete(1)
    await tools.add(**FULL)
    await tools.complete(2)
    await tools.complete(3)
    await tools.add("last", due="2026-11-27", repeat="FREQ=DAILY;UNTIL=20261127")
    await tools.update(5, due="2026-11-30")
    await tools.add("once", due="2026-11-27", repeat="FREQ=DAILY")
    await tools.update(6, repeat="none")
    before = export_of(user_environment, tools.user)
    assert {task["status"] for task in before} == {"pending", "completed"}
    document = run_command(user_environment, "export", tools.user)
    run_command(user_environment, "forget", tools.user)
    assert imported(document).counts == (len(before), 0)
    after = export_of(user_environment, tools.user)
    renumbered = {task["id"]: copy["id"] for task, copy in zip(before, after, strict=True)}
    assert after == [
        task | {"id": renumbered[task["id"]], "series": task["series"] and renumbered[task["series"]]}
        for task in before
    ]
    assert [task["repeat"] for task in after if task["status"] == "completed"] == ["FREQ=WEEKLY;BYDAY=FR"] * 2
    assert imported(document).counts == (0, len(before))


async def test_a_repeat_continues_after_an_import(imported: Import, tools: Tools) -> None:
    imported(EXPORT.text)
    assert await tools.error("update_task", task_id=1, status="pending"), "the next one is open"
    await tools.complete(2)
    assert [task["series"] for task in await tools.tasks()] == [1, 1, 1]


def test_an_open_task_of_a_repeat_that_has_one(imported: Import, tools: Tools, stored: Stored) -> None:
    """Two tasks of a repeat are never open, so the second begins another."""
    document = json.loads(EXPORT.text)
    done, open_task = document["todo"]["tasks"]
    document["todo"]["tasks"] = [done, open_task, open_task | {"id": 5, "title": "Feed"}]
    assert imported(json.dumps(document)).counts == (3, 0)
    assert [task["series"] for task in stored.rows_of(tools.user, "tasks")] == [1, 1, 3]
    document["todo"]["tasks"] = [open_task | {"id": 6, "title": "Sing"}, done]
    assert imported(json.dumps(document)).counts == (1, 1)
    assert [task["series"] for task in stored.rows_of(tools.user, "tasks")] == [1, 1, 3, 4]


async def test_dates_of_outlook(imported: Import, tools: Tools) -> None:
    """Their order is that of the dates which can be read in one way only."""
    columns = "Subject,Due Date,Date Completed,Status\n"
    british = imported(f"{columns}a,9/12/2026,,Not Started\nb,24/12/2026,,Not Started\n", "--name=tasks.csv")
    assert british.counts == (2, 0)
    imported(f"{columns}c,9.12.2026,,Not Started\nd,2026-12-09,,Not Started\n", "--name=tasks.csv")
    dues = [fields["due"] for _, fields in await listed(tools)]
    assert dues == ["2026-12-09", "2026-12-24", "2026-12-09", "2026-12-09"]
    unknown = imported(f"{columns}e,9/12/2026,,Not Started\nf,5/5/2026,,Not Started\n", "--name=tasks.csv")
    assert (unknown.counts, unknown.status) == ((1, 0), PARTLY)
    assert "may mean two days. Write it like 2026-11-27." in unknown.problems["line 2"]


NO_TICKTICK = {
    "a priority": {"Priority": "7"},
    "a status": {"Status": "9"},
    "a date": {"Due_Date": "tomorrow"},
    "a year": {"Due_Date": "0001-01-01T00:00:00+0000"},
    "no title": {"Title": ""},
}


async def test_rows_of_ticktick_that_cannot_be_read(imported: Import, tools: Tools) -> None:
    rows = [ticktick_row("a", **cells) for cells in NO_TICKTICK.values()]
    report = imported(ticktick(ticktick_row("good"), *rows), "--name=backup.csv")
    assert (report.counts, report.status) == ((1, 0), PARTLY)
    assert [*report.problems] == [f"line {number + 9}" for number in range(len(rows))]
    assert await tools.titles() == ["good"]


def many(format: str, count: int) -> str:
    """A file with so many tasks."""
    match format:
        case "export":
            task = {"title": "milk", "status": "pending", "created_at": _MADE}
            return json.dumps({"tasks": [task | {"id": number + 1} for number in range(count)]})
        case "todoist":
            return "TYPE,CONTENT,DATE\n" + "".join(f"task,milk {n},every monday at 9\n" for n in range(count))
        case "ticktick":
            return ticktick(*(ticktick_row(f"milk {n}", Due_Date="2026-11-30T08:00:00+0000") for n in range(count)))
        case "microsoft-todo":
            rows = (f"milk {n},12/24/2026,,Not Started\n" for n in range(count))
            return "Subject,Due Date,Date Completed,Status\n" + "".join(rows)
        case "icalendar":
            task = "BEGIN:VTODO\nUID:{n}\nSUMMARY:milk\nDUE;TZID=Europe/Berlin:20261127T150000\nEND:VTODO\n"
            return f"BEGIN:VCALENDAR\n{''.join(task.format(n=n) for n in range(count))}END:VCALENDAR\n"
        case _:
            return "".join(f"(A) milk {n} due:2026-11-27\n" for n in range(count))


@pytest.mark.long
@pytest.mark.parametrize("format", SAMPLES)
def test_ten_thousand_tasks(format: str, imported: Import) -> None:
    assert imported(many(format, 10_000), "--name=file").counts == (10_000, 0)


def test_a_file_of_another_format(imported: Import, stored: Stored, user: str) -> None:
    report = imported("tasks:\n  - title: milk\n", "--name=tasks.yaml")
    assert (report.status, report.text, len(report.errors.splitlines())) == (1, "", 1)
    assert "no known format" in report.errors
    assert stored.row_counts(user) == {}
