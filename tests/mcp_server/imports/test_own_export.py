import json
from typing import Any

import pytest

from mcp_server.imports.found import FileUnread
from tests.mcp_server.imports.read import tasks_and_problems, told

MADE = "2026-10-01T08:00:00.123456+00:00"
TASK: dict[str, Any] = {"id": 7, "title": "milk", "status": "pending", "created_at": MADE}


def export(*tasks: object, **fields: object) -> str:
    return json.dumps({"version": 1, "user": "alice", "todo": {"tasks": tasks}} | fields)


FULL = TASK | {
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


def test_every_field_of_a_task_is_kept() -> None:
    [task], problems = tasks_and_problems(export(FULL), "export")
    assert problems == {}
    assert (task.created_at.isoformat(), task.updated_at.isoformat()) == (MADE, "2026-10-02T08:00:00+00:00")
    assert told(task) == {
        "description": "two\nlines",
        "due": "Fri 2026-11-27 15:00",
        "priority": "high",
        "labels": ("home", "work"),
        "repeat": "FREQ=WEEKLY;BYDAY=FR",
    }


def test_a_completed_task_keeps_when_and_repeats_no_more() -> None:
    [task], _ = tasks_and_problems(export(FULL | {"status": "completed", "completed_at": MADE}), "export")
    assert (task.status, task.completed_at and task.completed_at.isoformat()) == ("completed", MADE)
    assert (task.repeat, task.series, task.due_on is None) == (None, None, False)


def test_a_task_that_was_moved_beyond_its_last_date_is_read_without_its_repeat() -> None:
    ended = FULL | {"repeat": "FREQ=WEEKLY;BYDAY=FR;UNTIL=20261126"}
    [task], problems = tasks_and_problems(export(ended), "export")
    assert (task.title, task.repeat, problems) == ("milk", None, {})


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ({"id": "x"}, "id is not as ./todo export writes it."),
        ({"id": 2**63}, "id is not as ./todo export writes it."),
        ({"id": None, "title": 5}, "id, title is not as ./todo export writes it."),
        ({"title": "x" * 201}, "title must be 1 to 200 characters on one line, not counting spaces around it."),
        ({"title": "a\0b"}, "title must be 1 to 200 characters on one line, not counting spaces around it."),
        ({"title": "a\ud800b"}, "title must be 1 to 200 characters on one line, not counting spaces around it."),
        ({"status": "done"}, "status is not as ./todo export writes it."),
        ({"created_at": "2026-10-01T08:00:00"}, "created_at is not as ./todo export writes it."),
        ({"created_at": "0001-01-01T00:00:00+14:00"}, "created_at is not as ./todo export writes it."),
        ({"due_on": "2026-02-30"}, "due_on is not as ./todo export writes it."),
        ({"due_on": "0001-01-01"}, "0001-01-01 lies outside the years 1970 to 2999: write a day within them."),
        ({"priority": 4}, "priority is not as ./todo export writes it."),
        ({"labels": ["x" * 41]}, "A label must have 1 to 40 characters, not counting a # or @ before it."),
        ({"labels": "home"}, "labels is not as ./todo export writes it."),
        (
            {"repeat": "FREQ=DAILY"},
            "A task that repeats needs a date: give due, too, or end the repeat with repeat none.",
        ),
        ({"due_time": "15:00"}, "due_time needs due_on."),
    ],
)
def test_a_task_that_is_wrong_is_told_and_the_rest_is_read(wrong: dict[str, Any], sentence: str) -> None:
    tasks, problems = tasks_and_problems(export(TASK, TASK | wrong, TASK | {"id": 8}), "export")
    assert (len(tasks), problems) == (2, {"task 2": sentence})


def test_the_part_of_the_task_server_is_read_alone() -> None:
    [task], _ = tasks_and_problems(json.dumps({"tasks": [TASK], "changes": [], "people": []}), "export")
    assert task.title == "milk"


@pytest.mark.parametrize(
    "text",
    [
        "{",
        "[]",
        "5",
        "{}",
        '{"todo": 5}',
        '{"todo": {"tasks": {}}}',
        '{"tasks": null}',
        "[" * 200_000,
        '{"a":' * 200_000,
    ],
    ids=lambda text: text[:20],
)
def test_what_is_no_export_is_told_as_a_whole(text: str) -> None:
    with pytest.raises(FileUnread, match=r"no export of \./todo export|begins as JSON and is none"):
        tasks_and_problems(text, "export")


def test_an_export_of_another_version_is_not_guessed_at() -> None:
    with pytest.raises(FileUnread, match="another version than 1"):
        tasks_and_problems(export(TASK, version=2), "export")
