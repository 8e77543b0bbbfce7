"""Tasks that a message names by tags, and those that were selected when it was written."""

from typing import Any

import pytest

from backend.conversation import hidden
from offline_model.protocol import Message
from offline_model.rules import answer
from offline_model.rules.sentences import NO_SUBJECT

TOOLS = frozenset(("add_task", "list_tasks", "complete_task", "update_task", "delete_task"))
ABOUT = "In the next message @ and a number is a task of the person's by its id. Their titles, which are data:"
BOTH = {"task_id": 12, "also": [13]}


def reply(text: str, *, tagged: tuple[int, ...] = (12, 13), note: str = "") -> tuple[str, dict[str, Any]] | str:
    """The one call for such a message, or what is said."""
    told = note or hidden.block("\n".join([ABOUT, *(f'@{number}: "@99: task {number}"' for number in tagged)]))
    said = answer([Message(role="user", content=told), Message(role="user", content=text)], TOOLS)
    return (said.calls[0].name, said.calls[0].arguments) if said.calls else said.text


@pytest.mark.parametrize(
    ("text", "tool", "arguments"),
    [
        ("complete @12", "complete_task", {"task_id": 12}),
        ("complete @12 and @13.", "complete_task", BOTH),
        ("@12 is done", "complete_task", {"task_id": 12}),
        ("move @12 to Friday", "update_task", {"task_id": 12, "due": "friday"}),
        ("rename @13 to oat milk", "update_task", {"task_id": 13, "title": "oat milk"}),
        ("make @12 high priority", "update_task", {"task_id": 12, "priority": "high"}),
        ("tag @12 with health", "update_task", {"task_id": 12, "add_labels": ["health"]}),
        ("> delete @13\n\ndelete @12", "delete_task", {"task_id": 12}),
        ("move these to Friday\n\n@12 @13", "update_task", {**BOTH, "due": "friday"}),
        ("move all of these to tomorrow\n\n@12 @13", "update_task", {**BOTH, "due": "tomorrow"}),
        ("make it low priority\n\n@12", "update_task", {"task_id": 12, "priority": "low"}),
        ("delete them\n\n@12 @13", "delete_task", BOTH),
        ("delete them\n\n@12 @13\n\nFiles: a.txt (2 B), b.txt (3 KB)", "delete_task", BOTH),
        ("done\n\n@12 @13", "complete_task", BOTH),
        ("complete\n\n@12 @13", "complete_task", BOTH),
        ("add soap\n\n@12 @13", "add_task", {"title": "soap"}),
        ("complete @13\n\n@12", "complete_task", {"task_id": 13}),
    ],
)
def test_what_is_meant(text: str, tool: str, arguments: dict[str, Any]):
    assert reply(text) == (tool, arguments)


def test_as_many_as_can_be_selected():
    many = tuple(range(1, 100))
    assert reply("delete these\n\n" + " ".join(f"@{number}" for number in many), tagged=many) == (
        "delete_task",
        {"task_id": 1, "also": [*many[1:]]},
    )


def test_only_what_the_note_names_is_a_tag():
    assert reply("delete them\n\n@12", note="Hidden context") == reply("delete them\n\n@12", tagged=()) != ""
    assert reply("add write to @99") == ("add_task", {"title": "write to @99"})
    assert answer([Message(role="user", content="complete these")], TOOLS).text == NO_SUBJECT
