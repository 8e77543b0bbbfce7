"""What is shown of calls for one task and for several, from their arguments and results."""

import json
from typing import Any

import pytest

from backend.conversation.items import Json
from backend.tools import progress, widgets
from backend.tools.progress import TaskViews
from backend.tools.task import Task
from tests.backend.tools.drawn import drawn, words


def a_task(number: int, title: str, **fields: Any) -> Json:
    return {"id": number, "title": title, "status": "pending", **fields}


def result(*tasks: Json, not_found: tuple[int, ...] = ()) -> str:
    """As a tool tells of it, where what says nothing is left out."""
    first, *others = tasks
    return json.dumps(
        {**first, **({"also": others} if others else {}), **({"not_found": not_found} if not_found else {})}
    )


def cards(tool: str, arguments: Json, output: str) -> list[list[str]]:
    return [words(drawn(root)) for root in TaskViews().cards(tool, json.dumps(arguments), output)]


def lines(tool: str, arguments: Json, output: str) -> list[str | None]:
    given = json.dumps(arguments)
    return [progress.running(tool, given), progress.done(tool, given, output)]


MILK, BREAD, EGGS, SOAP = (a_task(number, title) for number, title in enumerate(("milk", "bread", "eggs", "soap"), 1))
NEXT = {"id": 9, "due": "Mon 2026-11-30"}


@pytest.mark.parametrize(
    ("tool", "arguments", "output", "running", "done"),
    [
        ("add_task", {"title": "milk"}, result(MILK), "Adding “milk”…", "Added “milk”"),
        ("add_task", {"title": "milk", "also": []}, result(MILK), "Adding “milk”…", "Added “milk”"),
        ("add_task", {"title": "milk", "also": ["bread"]}, result(MILK, BREAD), "Adding 2 tasks…", "Added 2 tasks"),
        ("complete_task", {"task_id": 1}, result(MILK), "Completing task 1…", "Completed “milk”"),
        (
            "complete_task",
            {"task_id": 1, "also": [2, 7]},
            result(MILK, BREAD, not_found=(7,)),
            "Completing 3 tasks…",
            "Completed 2 tasks",
        ),
        (
            "complete_task",
            {"task_id": 1, "also": [7]},
            result(MILK, not_found=(7,)),
            "Completing 2 tasks…",
            "Completed “milk”",
        ),
        ("delete_task", {"task_id": 1, "also": [2]}, result(MILK, BREAD), "Deleting 2 tasks…", "Deleted 2 tasks"),
        ("update_task", {"task_id": 1, "title": "oat"}, result(MILK), "Changing task 1…", "Changed “milk”"),
        ("update_task", {"task_id": 1, "status": "pending"}, result(MILK), "Reopening task 1…", "Reopened “milk”"),
        (
            "update_task",
            {"task_id": 1, "undo": True},
            result(MILK),
            "Undoing the last change of task 1…",
            "Undone: the last change of “milk”",
        ),
        (
            "list_tasks",
            {},
            json.dumps({"tasks": [], "next_cursor": None}),
            "Looking at your list…",
            "Looked at your list",
        ),
        ("complete_task", {"task_id": 1}, "There is no task 1.", "Completing task 1…", None),
        ("fetch", {"url": "x"}, json.dumps({"title": "x"}), None, None),
    ],
)
def test_lines_name_one_task_and_count_several(
    tool: str, arguments: Json, output: str, running: str, done: str | None
) -> None:
    assert lines(tool, arguments, output) == [running, done]


def test_up_to_three_tasks_of_a_call_have_a_card_each() -> None:
    shown = cards("add_task", {"title": "milk", "also": ["bread", "eggs"]}, result(MILK, BREAD, EGGS))
    assert shown == [["milk", "", "Added"], ["bread", "", "Added"], ["eggs", "", "Added"]]


def test_one_call_for_many_tasks_is_one_list_that_says_what_was_done() -> None:
    done = [{**task, "status": "completed"} for task in (MILK, BREAD, EGGS, SOAP)]
    arguments = {"task_id": 1, "also": [2, 3, 4, 7]}
    [root] = TaskViews().cards("complete_task", json.dumps(arguments), result(*done, not_found=(7,)))
    shown = drawn(root)
    assert shown.root["status"] == {"text": "4 tasks completed"}
    assert words(shown) == ["milk", "bread", "eggs", "soap"]
    assert shown.copy_text == "- [x] milk\n- [x] bread\n- [x] eggs\n- [x] soap"
    after = widgets.redrawn(shown, [Task.model_validate(MILK)])
    assert after is not None
    assert after.root["status"] == {"text": "4 tasks completed"}
    assert after.copy_text == "- [ ] milk\n- [x] bread\n- [x] eggs\n- [x] soap"


def test_the_card_of_a_completed_task_tells_what_takes_its_place() -> None:
    done = {**MILK, "status": "completed", "due": "Mon 2026-11-23", "repeat": "FREQ=WEEKLY;BYDAY=MO"}
    [last] = cards("complete_task", {"task_id": 1}, result(done))
    assert last == ["milk", "", "Completed", "Mon 23 Nov", "reload", "every Monday"]
    [shown] = cards("complete_task", {"task_id": 1}, result({**done, "next": NEXT}))
    assert shown == ["milk", "", "Completed", "Mon 23 Nov", "reload", "every Monday", "next on Mon 30 Nov"]


def test_what_was_taken_back_is_shown_as_it_is_again() -> None:
    assert cards("update_task", {"task_id": 1, "undo": True}, result(MILK)) == [["milk", "", "Undone"]]
    added = {**MILK, "deleted": True}
    assert cards("update_task", {"task_id": 1, "undo": True}, result(added)) == [["milk (deleted)", "", "Undone"]]
    assert cards("update_task", {"task_id": 1, "status": "pending"}, result(MILK)) == [["milk", "", "Reopened"]]
    assert cards("update_task", {"task_id": 1, "due": "today"}, result(MILK)) == [["milk", "", "Changed"]]


def test_deleted_tasks_are_shown() -> None:
    gone = [{"id": number, "title": title, "deleted": True} for number, title in ((1, "milk"), (2, "bread"))]
    assert cards("delete_task", {"task_id": 1}, result(gone[0])) == [["milk (deleted)", "", "Deleted"]]
    shown = cards("delete_task", {"task_id": 1, "also": [2]}, result(*gone))
    assert shown == [["milk (deleted)", "", "Deleted"], ["bread (deleted)", "", "Deleted"]]


def test_every_task_of_a_call_is_redrawn() -> None:
    assert [task.id for task in progress.changed_tasks("complete_task", result(MILK, BREAD, not_found=(7,)))] == [1, 2]
    assert progress.changed_tasks("complete_task", "There is no task 1.") == []
    assert progress.changed_tasks("add_task", result(MILK)) == []


@pytest.mark.parametrize("title", [None, "milk"])
def test_an_answer_that_lists_none_of_the_tasks_found_shows_no_list(title: str | None) -> None:
    views = TaskViews()
    page = {"tasks": [a_task(1, title)] if title else [], "next_cursor": None}
    views.take_in("list_tasks", '{"query": "piano"}', json.dumps(page))
    assert views.final("I found no piano. You can say:\n\n- show all") is None
