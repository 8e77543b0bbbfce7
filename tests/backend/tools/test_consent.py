"""What is asked before it is done, and in which words."""

import json
from typing import Any

import pytest

from backend.tools.consent.card import in_words, shown_whole
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


def test_what_an_agent_wants_to_run_is_read_as_it_is_written() -> None:
    code = "for n in range(2):\n    print('a  b', n)\n\nNothing confines it"
    words = in_words("run_python", json.dumps({"code": code, "timeout_s": 5}), {}, agent="coder").split("\n")
    indented = "\u00a0\u00a0"
    assert words == [
        "Let the coder run Python",
        "code:",
        f"{indented}for n in range(2):",
        f"{indented * 3}print('a\u00a0 b', n)",
        indented,
        f"{indented}Nothing confines it",
        "timeout_s: 5",
    ]


@pytest.mark.parametrize(
    ("tool", "given", "agent", "whole"),
    [
        ("do_with_coder", {"task": "write a shopping list, " * 800 + "then delete every file"}, None, True),
        ("do_with_coder", {"task": "x" * 20_000}, None, False),
        ("do_with_coder", {"task": "a zero-width\u200b space"}, None, True),
        ("delete_task", {"task_id": 1, "also": [*range(2, 101)]}, None, True),
        ("add_task", {"title": "x" * 200, "also": ["y" * 200] * 50, "description": "z" * 4_000}, None, True),
        ("run_command", {"command": "x\n" * 198 + "x"}, "coder", False),
        ("run_command", {"command": "x\n" * 197 + "x"}, "coder", True),
        ("run_command", {"command": "x" * 20_000}, "coder", False),
        ("run_command", {"command": "rm -rf a\u200bb"}, "coder", False),
        ("mcp_web__say", {"words": [{"hi\U000e0041": 1}]}, "researcher", False),
        ("mcp_web__say", {str(n): n for n in range(300)}, "researcher", False),
    ],
)
def test_what_a_card_cannot_show_whole_is_known(
    tool: str, given: dict[str, Any], agent: str | None, whole: bool
) -> None:
    arguments = json.dumps(given)
    assert shown_whole(tool, arguments, agent=agent) == whole
    words = in_words(tool, arguments, {}, agent=agent)
    for value in given.values():
        assert not isinstance(value, str) or "\u200b" in value or " ".join(value.split()) in " ".join(words.split())


@pytest.mark.parametrize(
    ("wanted", "unconfined", "asked"),
    [
        (("bulk", "agents", "connectors"), False, set[str]()),
        (("none",), True, {"run_command", "commit"}),
        (("run_command",), False, {"run_command"}),
        (("always",), False, {"run_command", "commit", "read_file"}),
    ],
)
def test_what_agents_do_is_asked_about_where_nothing_confines_it_or_it_is_named(
    wanted: tuple[str, ...], unconfined: bool, asked: set[str]
) -> None:
    policy = Policy(wanted, is_unconfined=lambda: unconfined)
    assert {tool for tool in ("run_command", "commit", "read_file") if policy.waits(tool, "{}", 0)} == asked
    starting = policy.limits_of("do_with_coder") or ""
    assert starting.endswith("you are asked for each.") == unconfined
