"""The batches that a user can undo and redo, and overdue tasks that are moved in one."""

from typing import Any

import pytest

from tests.mcp.calls import KEY, Tools
from tests.mcp.conftest import NewTools
from tests.support.stored import Stored

DAILY: dict[str, Any] = {"title": "water", "due": "2996-11-28 09:00", "repeat": "FREQ=DAILY"}
KINDS = ("batch", "kind", "undoes", "undone", "titles", "count")


def batch(name: str) -> dict[str, str]:
    return {"todo/batch": name, "todo/actor": "person"}


async def undo(tools: Tools, of: str, name: str) -> None:
    await tools.undo_batch(of, **batch(name))


async def cannot_undo(tools: Tools, name: str) -> str:
    return await tools.error("update_task", task_id=1, meta={"todo/undo_batch": name})


async def read(tools: Tools, limit: int = 20) -> list[dict[str, Any]]:
    headers = {"Authorization": f"Bearer {tools.token}"}
    answer = await tools.http.get("/batches", params={"limit": limit}, headers=headers)
    assert answer.status_code == 200, answer.text
    return answer.json()["batches"]


async def list_batches(tools: Tools) -> list[tuple[Any, ...]]:
    return [tuple(one[name] for name in KINDS) for one in await read(tools)]


async def test_batches_the_newest_first(tools: Tools, new_tools: NewTools) -> None:
    other = new_tools()
    await other.add("his", meta=batch("his"))
    await tools.add("a", also=["b", "c", "d"], meta=batch("add"))
    await tools.update(1, title="A", meta=batch("run"))
    await tools.complete(1, 2, meta=batch("run"))
    await tools.complete(1, 2, meta=batch("nothing"))
    await tools.add("without a batch")
    assert await list_batches(tools) == [
        ("run", "change", None, False, ["A", "b"], 2),
        ("add", "change", None, False, ["a", "b", "c"], 4),
    ]
    made = await read(tools, limit=1)
    assert [(one["batch"], one["actor"], one["made"][:10]) for one in made] == [("run", "person", "2026-11-22")]
    assert await list_batches(new_tools()) == []


async def test_undo_and_redo_over_several_steps(tools: Tools) -> None:
    states = [await tools.comparable()]
    await tools.add("a", due="2030-01-01", meta=batch("1"))
    states.append(await tools.comparable())
    await tools.update(1, title="b", meta=batch("2"))
    states.append(await tools.comparable())
    await tools.delete(1, meta=batch("3"))
    states.append(await tools.comparable())
    for _ in range(2):
        for step in (3, 2, 1):
            await undo_newest(tools, kinds=("change", "redo"))
            assert await tools.comparable() == states[step - 1], step
        for step in (1, 2, 3):
            await undo_newest(tools, kinds=("undo",))
            assert await tools.comparable() == states[step], step
    assert await tools.ids(status="deleted") == [1], "a deletion that was made again can be restored, too"


async def undo_newest(tools: Tools, *, kinds: tuple[str, ...]) -> None:
    """Undoes what Ctrl+Z undoes, or with "undo" what Ctrl+Shift+Z does."""
    listed = await read(tools, limit=100)
    found = next(one for one in listed if one["kind"] in kinds and not one["undone"])
    await undo(tools, found["batch"], f"{len(listed) + 1}")


async def test_batches_name_what_they_undo(tools: Tools) -> None:
    await tools.add("a", also=["b"], meta=batch("add"))
    await undo(tools, "add", "undo")
    undone = ("add", "change", None, True, ["a", "b"], 2)
    assert await list_batches(tools) == [("undo", "undo", "add", False, ["a", "b"], 2), undone]
    await undo(tools, "undo", "redo")
    assert await list_batches(tools) == [
        ("redo", "redo", "undo", False, ["a", "b"], 2),
        ("undo", "undo", "add", True, ["a", "b"], 2),
        undone,
    ]
    assert await tools.titles() == ["a", "b"]
    assert "nothing left to undo" in await cannot_undo(tools, "undo"), "it was redone"
    assert "nothing left to undo" in await cannot_undo(tools, "add"), "it was undone, and made again by another batch"
    await undo(tools, "redo", "again")
    assert await tools.titles() == []


async def test_no_redo_of_what_was_changed_since(tools: Tools) -> None:
    await tools.add("a", also=["b"])
    await tools.update(1, 2, priority="high", meta=batch("change"))
    await undo(tools, "change", "undo")
    await tools.update(2, labels=["x"])
    before = await tools.state()
    assert "task 2 (b)" in await cannot_undo(tools, "undo")
    assert await tools.state() == before
    await tools.undo(2)
    await undo(tools, "undo", "redo")
    assert [task["priority"] for task in await tools.tasks()] == ["high", "high"]


async def test_no_redo_beyond_an_older_undo(tools: Tools) -> None:
    await tools.add("a")
    await tools.update(1, title="b", meta=batch("first"))
    await tools.update(1, priority="high", meta=batch("second"))
    await undo(tools, "second", "undo second")
    await undo(tools, "first", "undo first")
    assert "Nothing was undone" in await cannot_undo(tools, "undo second")
    await undo(tools, "undo first", "redo first")
    await undo(tools, "undo second", "redo second")
    assert [(task["title"], task["priority"]) for task in await tools.tasks()] == [("b", "high")]


async def test_redo_of_a_completed_repeat(tools: Tools) -> None:
    await tools.add(**DAILY, meta=batch("add"))
    await tools.complete(1, meta=batch("complete"))
    completed = await tools.comparable()
    await undo(tools, "complete", "undo")
    await undo(tools, "undo", "redo")
    assert await tools.comparable() == completed
    assert [one[4:] for one in await list_batches(tools)] == [(["water"], 1)] * 4, "without the task that follows"
    await undo(tools, "redo", "again")
    assert [(task["id"], task["status"]) for task in await tools.tasks()] == [(1, "pending")]


async def test_a_redo_sent_again(tools: Tools) -> None:
    await tools.add("a", meta=batch("add"))
    await undo(tools, "add", "undo")
    first = await tools.undo_batch("undo", **KEY)
    before = await tools.state()
    assert await tools.undo_batch("undo", **KEY) == first
    assert await tools.state() == before


async def test_what_cannot_be_undone_is_not_listed(tools: Tools, stored: Stored) -> None:
    await tools.add("a", meta=batch("add"))
    await undo(tools, "add", "undo")
    await tools.add("b")
    await tools.delete(2)
    await tools.undo(2, meta=batch("run"))
    assert [one["batch"] for one in await read(tools)] == ["undo", "add"]
    stored.age_task_changes(tools.user, days=31)
    assert await read(tools) == []
    await cannot_undo(tools, "undo")


@pytest.mark.parametrize("limit", ["0", "101", "x", "-1"])
async def test_an_invalid_limit(tools: Tools, limit: str) -> None:
    answer = await tools.http.get("/batches", params={"limit": limit})
    assert (answer.status_code, "limit must be" in answer.json()["error"]) == (400, True)


async def move(tools: Tools, part: str = "0", **meta: str) -> dict[str, Any]:
    return await tools.call("update_task", task_id=1, meta={"todo/overdue_part": part, **batch("move"), **meta})


async def test_overdue_tasks_are_moved_to_today(tools: Tools) -> None:
    dues = ["2026-11-21", "2026-11-20 09:00", "2026-11-20 23:00", "2026-11-22 09:00", "2026-11-22 11:00", "2026-11-23"]
    for due in [*dues, "none"]:
        await tools.add(due, due=due)
    await tools.add("done", due="2026-11-20")
    await tools.complete(8)
    before = await tools.comparable()
    moved = await move(tools, **KEY)
    assert [task["id"] for task in (moved, *moved["also"])] == [1, 2, 3, 4]
    shown = {task["id"]: task["due"] for task in await tools.tasks(due="today")}
    assert shown == {
        **{id: {"date": "2026-11-22", "time": None} for id in (1, 2, 4)},
        3: {"date": "2026-11-22", "time": "23:00"},
        5: {"date": "2026-11-22", "time": "11:00"},
    }
    assert await move(tools, **KEY) == moved
    sentence = await tools.error("update_task", task_id=1, meta={"todo/overdue_part": "1"})
    assert sentence == "No task is overdue, so nothing was moved."
    await undo(tools, "move", "undo")
    assert await tools.comparable() == before
