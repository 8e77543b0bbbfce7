"""What the tools refuse and how, then what they take for what."""

import time
from typing import Any

import pytest

from tests.mcp_server.calls import Tools
from tests.mcp_server.conftest import Rows

TITLE = "title must be 1 to 200 characters on one line, not counting spaces around it."
DESCRIPTION = (
    "description must be text of at most 4,000 characters without control characters other than line breaks and tabs."
)
TASK_ID = "task_id must be the whole number of a task, as list_tasks shows it."
USER_ID = "user_id must be text of 1 to 200 characters without control characters, or left out."
STATUS = "status must be pending, completed, all or deleted."
LIMIT = "limit must be a whole number from 1 to 100."
CURSOR = "cursor must be the next_cursor of the page before, or left out."
CURSOR_UNKNOWN = "cursor is none that list_tasks has returned: call list_tasks without cursor to get the first page."
NOTHING = "Nothing was given to change: give update_task what is to be new, such as a title, a due date or a status."
NO_TASK_1 = "There is no task 1: call list_tasks to see the numbers of your tasks."

REFUSED: list[tuple[str, dict[str, Any], str]] = [
    ("add_task", {}, TITLE.replace("must be", "is missing, it must be")),
    ("add_task", {"title": ""}, TITLE),
    ("add_task", {"title": " \t\n "}, TITLE),
    *[("add_task", {"title": blank}, TITLE) for blank in ("\u200b", "\u3164", "\u2800", "\U000e0041", "\u202e")],
    ("add_task", {"title": None}, TITLE),
    ("add_task", {"title": 5}, TITLE),
    ("add_task", {"title": ["buy milk"]}, TITLE),
    ("add_task", {"title": "x" * 201}, TITLE),
    ("add_task", {"title": "buy\0milk"}, TITLE),
    ("add_task", {"title": "buy\nmilk"}, TITLE),
    ("add_task", {"title": "buy\x1b[31mmilk"}, TITLE),
    ("add_task", {"title": "milk", "description": "x" * 4001}, DESCRIPTION),
    ("add_task", {"title": "milk" + " " * 16_000}, TITLE),
    ("add_task", {"title": "milk", "description": "\u200b" * 16_001}, DESCRIPTION),
    ("add_task", {"title": "milk", "description": "\0"}, DESCRIPTION),
    ("add_task", {"title": "milk", "description": {}}, DESCRIPTION),
    ("add_task", {"title": "milk", "user_id": " "}, USER_ID),
    ("add_task", {"title": "milk", "user_id": "x" * 201}, USER_ID),
    ("add_task", {"title": "milk", "user_id": "a\nb"}, USER_ID),
    ("add_task", {"title": "milk", "user_id": 7}, USER_ID),
    ("add_task", {"title": "", "description": 5}, f"{TITLE[:-1]}; {DESCRIPTION}"),
    ("list_tasks", {"status": "done"}, STATUS),
    ("list_tasks", {"status": ["pending"]}, STATUS),
    ("list_tasks", {"limit": 0}, LIMIT),
    ("list_tasks", {"limit": 101}, LIMIT),
    ("list_tasks", {"limit": "many"}, LIMIT),
    ("list_tasks", {"limit": True}, LIMIT),
    ("list_tasks", {"cursor": 3}, CURSOR),
    ("list_tasks", {"cursor": "x" * 2001}, CURSOR),
    ("list_tasks", {"cursor": "!"}, CURSOR_UNKNOWN),
    ("list_tasks", {"cursor": "bm90IGpzb24"}, CURSOR_UNKNOWN),
    ("list_tasks", {"cursor": "eyJ2IjoyLCJhZnRlciI6NSwic3RhdHVzIjoiYWxsIn0"}, CURSOR_UNKNOWN),
    ("complete_task", {}, TASK_ID.replace("must be", "is missing, it must be")),
    ("complete_task", {"task_id": None}, TASK_ID),
    ("complete_task", {"task_id": "one"}, TASK_ID),
    ("complete_task", {"task_id": 1.5}, TASK_ID),
    ("complete_task", {"task_id": True}, TASK_ID),
    ("complete_task", {"task_id": 0}, TASK_ID),
    ("complete_task", {"task_id": -1}, TASK_ID),
    ("complete_task", {"task_id": 2**63}, TASK_ID),
    ("complete_task", {"task_id": "9" * 30}, TASK_ID),
    ("complete_task", {"task_id": 1}, NO_TASK_1),
    ("complete_task", {"task_id": 2**63 - 1}, NO_TASK_1.replace("1", str(2**63 - 1))),
    ("update_task", {"task_id": 1, "title": "milk"}, NO_TASK_1),
    ("update_task", {"task_id": 1}, NOTHING),
    ("update_task", {"task_id": 1, "title": "", "description": None}, NOTHING),
    ("update_task", {"task_id": 1, "title": "null", "description": "null"}, NOTHING),
    ("update_task", {"task_id": 1, "title": "  "}, TITLE),
    ("delete_task", {"task_id": 1}, NO_TASK_1),
    ("delete_task", {"id": 1, "task_id": 1}, "delete_task has no argument 'id', it takes user_id, task_id, also."),
    (
        "list_tasks",
        {"caller": "x", "status": "done"},
        f"{STATUS[:-1]}; list_tasks has no argument 'caller', "
        "it takes user_id, status, query, due, done, label, priority, order, cursor, limit.",
    ),
    (
        "erase_all",
        {},
        "There is no tool erase_all: the tools are add_task, list_tasks, complete_task, update_task, delete_task.",
    ),
]


@pytest.mark.parametrize(("tool", "arguments", "sentence"), REFUSED)
async def test_what_cannot_be_done_is_refused_with_a_sentence_that_says_what_can(
    tools: Tools, rows: Rows, tool: str, arguments: dict[str, Any], sentence: str
) -> None:
    assert await tools.refusal(tool, **arguments) == sentence
    assert rows.tasks() == rows.changes() == []


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("todo/idempotency_key", ["k"]),
        ("todo/idempotency_key", ""),
        ("todo/idempotency_key", "x" * 201),
        ("todo/idempotency_key", "\0"),
    ],
)
async def test_odd_meta_is_refused(tools: Tools, rows: Rows, name: str, value: Any) -> None:
    sentence = await tools.refusal("add_task", title="milk", meta={name: value})
    assert sentence.startswith(f"{name} in _meta must be text of 1 to ")
    assert rows.changes() == []


async def test_a_dependency_is_no_argument(tools: Tools) -> None:
    for name in ("owner", "caller", "session", "context"):
        arguments: dict[str, Any] = {name: "mallory"}
        sentence = await tools.refusal("list_tasks", **arguments)
        assert sentence.startswith(f"list_tasks has no argument '{name}', ")


@pytest.mark.parametrize("nothing", [None, "", "null"])
async def test_spellings_of_nothing(tools: Tools, nothing: str | None) -> None:
    await tools.call("add_task", title="milk", user_id=nothing)
    page = await tools.call("list_tasks", user_id=nothing, status=nothing, cursor=nothing, limit=nothing)
    assert [task["title"] for task in page["tasks"]] == ["milk"]


@pytest.mark.parametrize("spelling", ["1", "1.0", 1.0, " 1 "])
async def test_numbers_spelled_as_models_do(tools: Tools, spelling: str | float) -> None:
    await tools.call("add_task", title="milk")
    assert (await tools.call("complete_task", task_id=spelling))["status"] == "completed"
    assert len((await tools.call("list_tasks", limit=spelling))["tasks"]) == 1


async def test_what_nobody_sees_is_taken_out(tools: Tools) -> None:
    task = await tools.call("add_task", title="mi\u200blk \U000e0041", description="\u202eone\ntwo\u2069")
    assert (task["title"], task["description"]) == ("milk", "one\ntwo")


async def test_no_text_keeps_the_database_busy(tools: Tools) -> None:
    heap = "\u0344" * 2000 + "\u05b0" * 1999  # accents that are to be put in order: it swaps each two
    began = time.monotonic()
    task = await tools.call("add_task", title="a" + heap[:199], also=["b"] * 50, description="a" + heap)
    assert time.monotonic() - began < 2
    assert (task["title"], task["description"]) == ("a" + "\u0344" * 30,) * 2


async def test_texts_are_kept_as_they_are_but_for_spaces_around_a_title(tools: Tools) -> None:
    for title in ("x" * 200, "👩‍👩‍👧 الحليب 牛乳", "'); DROP TABLE tasks; --", "null", "{task_id} %s"):
        task = await tools.call("add_task", title=f" \n{title}\t", description=f" {title}\r\n\t")
        assert (task["title"], task["description"]) == (title, f" {title}\r\n\t")
    assert (await tools.call("add_task", title="long", description="x" * 4000))["description"] == "x" * 4000
