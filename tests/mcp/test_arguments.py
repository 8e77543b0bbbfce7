"""What the tools reject: the sentence names the argument, and nothing changes; then what they take for what."""

from typing import Any

import pytest

from tests.mcp.calls import Tools, ids_and_titles

REFUSED: list[tuple[str, dict[str, Any], str]] = [
    ("add_task", {}, "title"),
    *[
        ("add_task", {"title": wrong}, "title")
        for wrong in ("", " \t\n ", None, 5, ["milk"], "x" * 201, "milk" + " " * 16_000, "a\0b", "a\nb", "a\x1b[31mb")
    ],
    *[("add_task", {"title": blank}, "title") for blank in ("\u200b", "\u3164", "\u2800", "\U000e0041", "\u202e")],
    *[
        ("add_task", {"title": "milk", "description": wrong}, "description")
        for wrong in ("x" * 4001, "\u200b" * 16_001, "\0", {})
    ],
    ("add_task", {"title": "", "description": 5}, "title"),
    ("add_task", {"title": "", "description": 5}, "description"),
    *[("list_tasks", {"status": wrong}, "status") for wrong in ("done", ["pending"])],
    *[("list_tasks", {"limit": wrong}, "limit") for wrong in (0, 101, "many", True)],
    *[("list_tasks", {"cursor": wrong}, "cursor") for wrong in (3, "x" * 2001, "!", "bm90IGpzb24", "[[[[" * 100)],
    *[("list_tasks", {"cursor": wrong}, "cursor") for wrong in ("W10", "Ingi", "e30", "e30=", "\u00e9", "%00")],
    *[("list_tasks", {"due": wrong}, "due") for wrong in ("soon", "..", "+1w", 5, "x" * 301)],
    *[("list_tasks", {"done": wrong}, "done") for wrong in ("any", "none", "overdue", "15:00")],
    *[("list_tasks", {"due": wrong}, "2026") for wrong in ("2026-11-29..2026-11-23", "Mon 2026-11-22", "2026-02-30")],
    *[("list_tasks", {"label": wrong}, "label") for wrong in ("x" * 41, "#", ["work"])],
    ("list_tasks", {"priority": "urgent"}, "priority"),
    ("list_tasks", {"order": "title"}, "order"),
    *[("list_tasks", {"query": wrong}, "query") for wrong in (" ", "x" * 201, "a " * 21, "a\0b", 5, ["milk"])],
    ("complete_task", {}, "task_id"),
    *[("complete_task", {"task_id": wrong}, "task_id") for wrong in (None, "one", 1.5, True, 0, -1, 2**63, "9" * 30)],
    ("complete_task", {"task_id": 9}, "no task 9"),
    ("complete_task", {"task_id": 2**63 - 1}, f"no task {2**63 - 1}"),
    ("update_task", {"task_id": 9, "title": "milk"}, "no task 9"),
    ("update_task", {"task_id": 1}, "Nothing to change"),
    ("update_task", {"task_id": 1, "title": "null", "description": None}, "Nothing to change"),
    ("update_task", {"task_id": 1, "title": "  "}, "title"),
    *[("update_task", {"task_id": 1, "priority": wrong}, "priority") for wrong in ("urgent", 1, ["high"])],
    *[("update_task", {"task_id": 1, "undo": wrong}, "undo") for wrong in (2, "yes please", [], {})],
    *[
        ("update_task", {"task_id": 1, "undo": True, **other}, "undo")
        for other in ({"title": "x"}, {"due": "today"}, {"labels": ["x"]}, {"status": "pending"})
    ],
    ("update_task", {"task_id": 1, "also": [2], "title": "c"}, "title"),
    *[
        ("update_task", {"task_id": 1, "labels": wrong}, "label")
        for wrong in (["x" * 41], ["#"], ["\u200b"], [f"{n}" for n in range(11)], [5], ["\0"], "[" * 5000, {"a": "b"})
    ],
    ("update_task", {"task_id": 1, "add_labels": ["#" + "x" * 41]}, "label"),
    ("update_task", {"task_id": 1, "add_labels": ["eleventh"]}, "label"),
    ("delete_task", {"task_id": 9}, "no task 9"),
    ("delete_task", {"id": 1, "task_id": 1}, "'id'"),
    *[("list_tasks", {name: "mallory"}, f"'{name}'") for name in ("owner", "caller", "session", "context")],
    ("erase_all", {}, "erase_all"),
    *[
        ("add_task", {"title": "milk", "also": wrong}, "also")
        for wrong in (["x"] * 51, ["a\nb"], ["x" * 201], [""], [5], "milk, eggs", {"a": 1}, [["a"]], "[" * 100_000)
    ],
    *[
        (tool, {"task_id": 2, "also": wrong, **more}, "also")
        for tool, more in (("complete_task", {}), ("update_task", {"priority": "high"}), ("delete_task", {}))
        for wrong in ([*range(1, 101)], [True], [0], [-1], [1.5], ["one"], [2**63], "[true]", "2,3", 2, [None], "[NaN]")
    ],
]


async def test_rejected_with_a_sentence_that_names_what_is_wrong(tools: Tools) -> None:
    await tools.add("bread", also=["eggs"], labels=[f"{n}" for n in range(10)])
    before = await tools.state()
    for tool, arguments, named in REFUSED:
        assert named in await tools.error(tool, **arguments), (tool, arguments)
        assert await tools.changes() == before[-1], (tool, arguments)
    assert await tools.state() == before


async def test_several_problems_are_named_once(tools: Tools) -> None:
    names = "its arguments are task_id, also."
    task_id = "task_id is required and must be the whole number of a task from list_tasks"
    assert await tools.error("delete_task", id=1) == f"{task_id}; delete_task has no argument 'id'; {names}"
    assert await tools.error("delete_task", id=1, ids=[], all=True) == (
        f"{task_id}; delete_task has no arguments 'id', 'ids' and 'all'; {names}"
    )
    many: dict[str, Any] = {f"name{number}": number for number in range(40)}
    assert await tools.error("delete_task", task_id=1, **many) == (
        f"delete_task has no arguments 'name0', 'name1', 'name2', 'name3', 'name4' and 35 more; {names}"
    )


async def test_meta_that_is_rejected(tools: Tools) -> None:
    rejected: list[tuple[str, Any]] = [
        *[("todo/idempotency_key", wrong) for wrong in (["k"], "", "x" * 201, "\0")],
        *[("todo/actor", wrong) for wrong in (5, "", "x" * 61, "a\nb")],
        *[("todo/batch", wrong) for wrong in (5, "", "x" * 201, "a\nb")],
        *[("todo/undo_batch", wrong) for wrong in (5, "", "x" * 201, "a\nb")],
    ]
    for name, value in rejected:
        assert name in await tools.error("add_task", title="milk", meta={name: value}), (name, value)
    assert (await tools.changes())["last"] == 0


@pytest.mark.parametrize("nothing", [None, "", "null"])
async def test_spellings_of_nothing(tools: Tools, nothing: str | None) -> None:
    names = ("status", "query", "due", "done", "label", "priority", "order", "cursor", "limit", "user_id")
    await tools.add("milk", also=nothing, due=nothing, priority=nothing, repeat=nothing, user_id=nothing)
    assert await tools.titles(**dict.fromkeys(names, nothing)) == ["milk"]


@pytest.mark.parametrize("spelling", ["1", "1.0", 1.0, " 1 "])
async def test_spellings_of_numbers(tools: Tools, spelling: str | float) -> None:
    await tools.add("milk", also=["bread"])
    assert (await tools.call("complete_task", task_id=spelling))["status"] == "completed"
    assert len((await tools.call("list_tasks", limit=spelling))["tasks"]) == 1


@pytest.mark.parametrize("also", ["[2, 3]", " [2,3]", ["2", "3"], [2.0, 3]])
async def test_spellings_of_lists(tools: Tools, also: Any) -> None:
    await tools.call("add_task", title="a", also='["b", "c"]')
    assert ids_and_titles(await tools.call("complete_task", task_id="1", also=also)) == [(1, "a"), (2, "b"), (3, "c")]


@pytest.mark.parametrize("also", [None, "", "null", [], "[]"])
async def test_spellings_of_an_empty_list(tools: Tools, also: Any) -> None:
    assert (await tools.call("add_task", title="a", also=also))["also"] == []
    assert (await tools.call("complete_task", task_id=1, also=also))["also"] == []


@pytest.mark.parametrize(("undo", "undone"), [(True, True), ("true", True), (False, False), ("false", False)])
async def test_spellings_of_undo(tools: Tools, undo: Any, undone: bool) -> None:
    await tools.add("a")
    change: dict[str, Any] = {} if undone else {"title": "b"}
    assert (await tools.call("update_task", task_id=1, undo=undo, **change))["deleted"] == (undone or None)


async def test_text_is_kept_but_for_spaces_around_a_title(tools: Tools) -> None:
    for title in ("x" * 200, "👩‍👩‍👧 الحليب 牛乳", "'); DROP TABLE tasks; --", "null", "{task_id} %s"):
        task = await tools.add(f" \n{title}\t", description=f" {title}\r\n\t")
        assert (task["title"], task["description"]) == (title, f" {title}\r\n\t")
    assert (await tools.add("long", description="x" * 4000))["description"] == "x" * 4000


async def test_invisible_characters_are_removed(tools: Tools) -> None:
    task = await tools.add("mi\u200blk \U000e0041", description="\u202eone\ntwo\u2069")
    assert (task["title"], task["description"]) == ("milk", "one\ntwo")


async def test_heaps_of_accents_are_shortened(tools: Tools) -> None:
    """PostgreSQL takes seconds to normalise a long one."""
    heap = "\u0344" * 2000 + "\u05b0" * 1999
    task = await tools.add("a" + heap[:199], description="a" + heap)
    assert (task["title"], task["description"]) == ("a" + "\u0344" * 30,) * 2
