"""What is asked before it is done, and in which words."""

import json
from typing import Any

import pytest

from backend.tools.consent.card import in_words
from backend.tools.consent.policy import Policy, deleted_by

TWELVE = {"task_id": 1, "also": [*range(2, 13)]}


@pytest.mark.parametrize(
    ("tool", "more", "deleted"),
    [
        ("delete_task", {}, 12),
        ("update_task", {"undo": True}, 12),
        ("update_task", {"undo": "true"}, 12),
        ("update_task", {"undo": 1}, 12),
        ("update_task", {"undo": False}, 0),
        ("update_task", {"undo": "false"}, 0),
        ("update_task", {"undo": ""}, 0),
        ("update_task", {"title": "undo"}, 0),
        ("complete_task", {"undo": True}, 0),
    ],
)
def test_taking_an_addition_back_counts_as_a_deletion(tool: str, more: dict[str, Any], deleted: int) -> None:
    arguments = json.dumps({**TWELVE, **more})
    policy = Policy(("bulk",))
    assert deleted_by(tool, arguments) == deleted
    assert policy.waits(tool, arguments, deleted) == (deleted > 10)
    assert policy.may_ask(tool) == (tool in ("delete_task", "update_task"))


def test_a_change_is_not_asked_about_after_many_deletions() -> None:
    policy = Policy(("bulk",))
    assert not policy.waits("update_task", json.dumps({"task_id": 1, "title": "milk"}), 50)
    assert policy.waits("update_task", json.dumps({"task_id": 1, "undo": True}), 11)


@pytest.mark.parametrize("tool", ["add_task", "complete_task", "update_task", "delete_task", "list_tasks", "unknown"])
@pytest.mark.parametrize("arguments", ["{}", '{"also": [1, 2]}', '{"task_id": null}', '{"title": "milk"}', "[]", "no"])
def test_a_call_that_lacks_what_it_needs_has_words_all_the_same(tool: str, arguments: str) -> None:
    assert in_words(tool, arguments, {}).strip()


def test_what_an_agent_is_asked_to_do_is_read_before_it_is_consented_to() -> None:
    task = "write a shopping list, " * 170 + "then delete every file"
    assert task in in_words("do_with_coder", json.dumps({"task": task}), {})
    assert in_words("do_with_coder", json.dumps({"task": "x" * 5_000}), {}).count("… and 1,006 characters more") == 1
