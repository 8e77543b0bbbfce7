import csv
import io
from typing import Any

import pytest

from mcp_server.imports.found import FileUnread
from tests.mcp_server.imports.read import tasks_and_problems, told

COLUMNS = (
    *("TYPE", "CONTENT", "DESCRIPTION", "PRIORITY", "INDENT", "AUTHOR", "RESPONSIBLE", "DATE", "DATE_LANG"),
    *("TIMEZONE", "DURATION", "DURATION_UNIT", "DEADLINE", "DEADLINE_LANG"),
)


def project(*rows: dict[str, str], delimiter: str = ",") -> str:
    file = io.StringIO()
    writer = csv.DictWriter(file, COLUMNS, delimiter=delimiter)
    writer.writeheader()
    writer.writerows(rows)
    return file.getvalue()


def task(content: str, **cells: str) -> dict[str, str]:
    return {"TYPE": "task", "CONTENT": content, "PRIORITY": "4", "INDENT": "1", "DATE_LANG": "en"} | cells


@pytest.mark.parametrize(
    ("row", "title", "fields"),
    [
        (task("buy milk"), "buy milk", {}),
        (task("a", PRIORITY="1"), "a", {"priority": "high"}),
        (task("a", PRIORITY="2"), "a", {"priority": "medium"}),
        (task("a", PRIORITY="3"), "a", {"priority": "low"}),
        (task("a", PRIORITY=""), "a", {}),
        (task("basil @garden @Weekend"), "basil", {"labels": ("garden", "weekend")}),
        (task("ask @mum first"), "ask @mum first", {"labels": ("mum",)}),
        (task("a", DESCRIPTION="two\nlines"), "a", {"description": "two\nlines"}),
        (task("a", DESCRIPTION="d", DEADLINE="Oct 9 2026"), "a", {"description": "d\nDeadline: Oct 9 2026"}),
        (task("a", INDENT="3", AUTHOR="Kai (1)", DURATION="30"), "a", {}),
        (task('5" nails, "long"'), '5" nails, "long"', {}),
        (task("a", DATE="27 Nov 2026 15:00"), "a", {"due": "Fri 2026-11-27 15:00"}),
        (task("a", DATE="2026-11-27", DATE_LANG="de"), "a", {"due": "Fri 2026-11-27"}),
    ],
)
@pytest.mark.parametrize("delimiter", [",", ";"])
def test_a_row_is_a_task(row: dict[str, str], title: str, fields: dict[str, Any], delimiter: str) -> None:
    [found], problems = tasks_and_problems(project(row, delimiter=delimiter), "todoist")
    assert (found.title, told(found), problems) == (title, fields, {})


def test_notes_belong_to_the_task_above_and_a_section_is_a_label() -> None:
    tasks, problems = tasks_and_problems(
        project(
            {"TYPE": "meta", "CONTENT": "view_style=list"},
            task("first", DESCRIPTION="d"),
            {"TYPE": "note", "CONTENT": "one"},
            {"TYPE": "note", "CONTENT": "two"},
            {},
            {"TYPE": "section", "CONTENT": "This Week"},
            task("second @home"),
            {"TYPE": "section", "CONTENT": "s" * 41},
            {"TYPE": "note", "CONTENT": "of nothing"},
            task("third"),
        ),
        "todoist",
    )
    assert [(found.title, told(found)) for found in tasks] == [
        ("first", {"description": "d\none\ntwo"}),
        ("second", {"labels": ("home", "this week")}),
        ("third", {}),
    ]
    assert problems == {
        "line 9": "Its name cannot be a label, so its tasks have none of it.",
        "line 10": "It is a note with no task above it: move it below one.",
    }


def test_what_cannot_be_read_is_told_by_its_first_line_and_is_not_half_done() -> None:
    good = project(task("one", DESCRIPTION="two\nlines"), task("a", DATE="jeden Montag", DATE_LANG="de"))
    broken = 'task,"x"y,,4,1\r\nnote,of nobody,,,\r\ntask,last,,4,1\r\n'
    rows = project(
        task("a", PRIORITY="5"),
        task("b", DATE="soon"),
        {"TYPE": "note", "CONTENT": "waits"},
        {"TYPE": "Task"},
        task(""),
    )
    text = good + broken + rows.partition("\r\n")[2] + 'task,"never closed\r\ntask,lost\r\n'
    tasks, problems = tasks_and_problems(text, "todoist")
    assert [(found.title, found.description) for found in tasks] == [("one", "two\nlines"), ("last", "")]
    assert {place: why[:30] for place, why in problems.items()} == {
        "line 4": "DATE is in another language th",
        "line 5": "A quotation mark opens or clos",
        "line 8": 'PRIORITY is "5": write 1, the ',
        "line 9": 'DATE "soon" is not understood:',
        "line 11": 'TYPE is "Task": write task, se',
        "line 12": "title must be 1 to 200 charact",
        "lines 13 to 14": "A quotation mark opens or clos",
    }


def test_without_its_first_line_it_is_no_project() -> None:
    with pytest.raises(FileUnread, match="its first line begins with TYPE,CONTENT"):
        tasks_and_problems("task,milk,,4\n", "todoist")
