from typing import Any

import pytest

from tests.mcp_server.imports.read import tasks_and_problems, told

NOON = "2026-11-20T11:00:00+00:00"
DONE = {"status": "completed"}


@pytest.mark.parametrize(
    ("line", "title", "fields"),
    [
        ("buy milk", "buy milk", {}),
        ("(A) pay rent", "pay rent", {"priority": "high"}),
        ("(B) pay rent", "pay rent", {"priority": "medium"}),
        ("(C) pay rent", "pay rent", {"priority": "low"}),
        ("(D) pay rent", "pay rent", {}),
        ("(a) pay rent", "(a) pay rent", {}),
        ("2026-11-01 pay rent", "pay rent", {}),
        ("pay rent +home @desk", "pay rent", {"labels": ("desk", "home")}),
        ("@phone call @mum about +xmas gifts", "call @mum about +xmas gifts", {"labels": ("mum", "phone", "xmas")}),
        ("mail me@example.com 1 + 1", "mail me@example.com 1 + 1", {}),
        ("pay rent due:2026-11-27 +home", "pay rent", {"due": "Fri 2026-11-27", "labels": ("home",)}),
        ("dentist due:2026-11-27T15:00", "dentist", {"due": "Fri 2026-11-27 15:00"}),
        ("plants t:2026-11-25 see https://example.com", "plants t:2026-11-25 see https://example.com", {}),
        ("due: nothing", "due: nothing", {}),
        ("xylophone", "xylophone", {}),
        ("X not done", "X not done", {}),
        ("x 2026-11-20 2026-11-01 (A) a", "(A) a", DONE | {"completed_at": NOON}),
        ("x (B) 2026-11-20 2026-11-01 a", "a", DONE | {"completed_at": NOON, "priority": "medium"}),
        ("x 2026-11-20 a pri:C rec:1w", "a", DONE | {"completed_at": NOON, "priority": "low"}),
        ("x done once", "done once", DONE | {"completed_at": "2026-11-22T09:30:00+00:00"}),
        ("\tx   spaced \t out ", "spaced out", DONE | {"completed_at": "2026-11-22T09:30:00+00:00"}),
        ("größer 日本 🚀", "größer 日本 🚀", {}),
    ],
)
def test_a_line_is_a_task(line: str, title: str, fields: dict[str, Any]) -> None:
    [task], problems = tasks_and_problems(line, "todo.txt")
    assert (task.title, told(task), problems) == (title, fields, {})


@pytest.mark.parametrize(
    ("rec", "repeat"),
    [
        ("1d", "FREQ=DAILY;FROM=DONE"),
        ("+1d", "FREQ=DAILY"),
        ("2w", "FREQ=WEEKLY;INTERVAL=2;FROM=DONE"),
        ("+2w", "FREQ=WEEKLY;INTERVAL=2;BYDAY=FR"),
        ("+1m", "FREQ=MONTHLY;BYMONTHDAY=27"),
        ("1y", "FREQ=YEARLY;FROM=DONE"),
        ("1b", "FREQ=WEEKLY;BYDAY=MO,TU,WE,TH,FR"),
    ],
)
def test_a_task_repeats(rec: str, repeat: str) -> None:
    [task], _ = tasks_and_problems(f"water due:2026-11-27 rec:{rec}", "todo.txt")
    assert told(task) == {"due": "Fri 2026-11-27", "repeat": repeat}


def test_days_without_a_time_are_noon_where_the_person_is() -> None:
    tasks, _ = tasks_and_problems("2026-07-01 summer\nx 2026-11-20 2026-07-01 both\nx 2026-11-20 one", "todo.txt")
    assert [task.created_at.isoformat() for task in tasks] == [
        "2026-07-01T10:00:00+00:00",
        "2026-07-01T10:00:00+00:00",
        NOON,
    ]


def test_what_cannot_be_read_is_told_by_its_line_and_the_rest_is_read() -> None:
    text = "\n".join(
        [
            "one",
            "two due:2026-02-30",
            "",
            "three due:2026-11-27 rec:2b",
            "four rec:1w",
            "+only @labels",
            "2026-13-01 five",
            "x 9999-12-31 six",
            "seven " + "@" + "l" * 41,
            "eight" * 41,
            "nine" * 10_000,
            "ten due:2026-11-27 rec:0d",
            "last",
        ]
    )
    tasks, problems = tasks_and_problems(text, "todo.txt")
    assert [task.title for task in tasks] == ["one", "last"]
    assert {place: why.partition(":")[0] for place, why in problems.items()} == {
        "line 2": "2026-02-30 is no day of the calendar",
        "line 4": "rec",
        "line 5": "A task that repeats needs a date",
        "line 6": "title must be 1 to 200 characters on one line, not counting spaces around it.",
        "line 7": "2026-13-01 is no day of the calendar",
        "line 8": "9999-12-31 lies outside the years 1970 to 2998",
        "line 9": "A label must have 1 to 40 characters, not counting a # or @ before it.",
        "line 10": "title must be 1 to 200 characters on one line, not counting spaces around it.",
        "line 11": "It is longer than 10,000 characters",
        "line 12": "rec",
    }


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_lines_end_as_they_do_anywhere(end: str) -> None:
    tasks, _ = tasks_and_problems(end.join(["one", "", "two", ""]), "todo.txt")
    assert [task.title for task in tasks] == ["one", "two"]
