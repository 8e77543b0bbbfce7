"""The list of what was deleted and can be brought back."""

from datetime import datetime, timedelta
from typing import Any

import pytest

from mcp_server.errors import CursorUnknown
from tests.mcp_server.calls import Tools
from tests.mcp_server.clock import Clocked
from tests.mcp_server.conftest import Rows
from tests.mcp_server.tasks.states import forged, position_of

DAY = timedelta(days=1)


def pass_by(sunday: Clocked, time: timedelta) -> None:
    sunday.now = (datetime.fromisoformat(sunday.now) + time).isoformat()


async def ids(sunday: Clocked, **wish: Any) -> list[int]:
    page = await sunday.page(status="deleted", **wish)
    assert page.total == len(page.tasks)
    return [task.id for task in page.tasks]


async def test_they_are_shown_as_they_were_the_last_first(sunday: Clocked) -> None:
    full: dict[str, Any] = {"due": "2026-11-28 09:00", "repeat": "FREQ=DAILY", "labels": ["home", "plants"]}
    water = await sunday.add("water", description="all", priority="high", **full)
    await sunday.add("milk", also=["bread", "eggs"])
    await sunday.complete(4)
    for id in (2, 1, 4):
        pass_by(sunday, timedelta(hours=1))
        await sunday.delete(id)
    page = await sunday.page(status="deleted")
    assert [(task.id, task.status, task.deleted) for task in page.tasks] == [
        (4, "completed", True),
        (1, "pending", True),
        (2, "pending", True),
    ]
    shown = page.tasks[1].model_dump()
    gone = {"deleted": True, "deleted_at": datetime.fromisoformat(sunday.now) - timedelta(hours=1)}
    assert shown == {name: value for name, value in water.model_dump().items() if name in shown} | gone
    assert [task.deleted for task in (await sunday.page()).tasks] == [None]


async def test_what_comes_back_or_was_never_wanted_is_not_among_them(sunday: Clocked) -> None:
    await sunday.add("a", also=["b", "c", "d"])
    await sunday.delete(1, 2)
    await sunday.undo(1)
    assert await ids(sunday) == [2]
    await sunday.delete(1)
    assert await ids(sunday) == [1, 2]
    sunday.batch = "run"
    await sunday.delete(3)
    await sunday.undo_batch("run")
    await sunday.undo(4)  # its adding
    assert await ids(sunday) == [1, 2]


async def test_for_thirty_days(sunday: Clocked) -> None:
    await sunday.add("a")
    await sunday.delete(1)
    pass_by(sunday, 30 * DAY - timedelta(seconds=1))
    assert await ids(sunday) == [1]
    pass_by(sunday, timedelta(seconds=1))
    assert await ids(sunday) == []


async def test_filters_hold_for_them_too(sunday: Clocked) -> None:
    await sunday.add("Müllers dentist", due="2026-11-20", labels=["health", "büro"], priority="low")
    await sunday.add("dentist", due="2026-11-29")
    await sunday.add("milk")
    await sunday.complete(3)
    await sunday.delete(1)
    await sunday.delete(2, 3)
    expected: list[tuple[dict[str, Any], list[int]]] = [
        ({"query": "muller DENTIST"}, [1]),
        ({"query": "buro"}, [1]),
        ({"query": "dentist"}, [2, 1]),
        ({"query": "[]"}, []),
        ({"due": "overdue"}, [1]),
        ({"due": "none"}, [3]),
        ({"label": "Büro"}, [1]),
        ({"priority": "low"}, [1]),
        ({"priority": "none", "order": "due"}, [2, 3]),
        ({"done": "today"}, [3]),
        ({"order": "due"}, [1, 2, 3]),
        ({"order": "priority"}, [1, 2, 3]),
    ]
    assert [(wish, await ids(sunday, **wish)) for wish, _ in expected] == expected


@pytest.mark.parametrize("order", ["created", "due", "priority"])
async def test_all_pages_together_are_the_list(sunday: Clocked, order: str) -> None:
    await sunday.add("0", also=[f"{n}" for n in range(1, 40)], due="today")
    for first in (21, 1, 11):
        pass_by(sunday, timedelta(seconds=1))
        await sunday.delete(*range(first, first + 10))
    seen: list[int] = []
    cursor = None
    while cursor or not seen:
        page = await sunday.page(status="deleted", order=order, limit=7, cursor=cursor)
        assert page.total == 30
        seen += [task.id for task in page.tasks]
        cursor = page.next_cursor
    newest = [*range(20, 10, -1), *range(10, 0, -1), *range(30, 20, -1)]
    assert seen == (newest if order == "created" else [*range(1, 31)])


async def test_a_forged_cursor(sunday: Clocked) -> None:
    await sunday.add("a", also=["b"])
    await sunday.delete(1, 2)
    cursor = (await sunday.page(status="deleted", limit=1)).next_cursor
    position = position_of(cursor)
    for moment in (None, "", 5, "today", "2026-11-22T10:00:00", "infinity"):
        with pytest.raises(CursorUnknown):
            await sunday.page(status="deleted", cursor=forged(position | {"moment": moment}))
    for moment in ("0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00"):
        await sunday.page(status="deleted", cursor=forged(position | {"moment": moment}))


async def test_of_a_log_before_tasks_had_labels(tools: Tools, rows: Rows) -> None:
    await tools.call("add_task", title="a")
    await tools.call("delete_task", task_id=1)
    newer = "'{due_on,due_time,priority,labels,repeat,series}'::text[]"
    rows(f"UPDATE task_changes SET before = before - {newer} RETURNING id")
    (task,) = (await tools.call("list_tasks", status="deleted", query="a"))["tasks"]
    assert (task["title"], task["labels"], task["due"], task["deleted"]) == ("a", [], None, True)
    await tools.call("update_task", task_id=1, undo=True)
    assert (await tools.call("list_tasks", status="deleted"))["tasks"] == []


async def test_nobody_else_s(tools: Tools) -> None:
    await tools.call("add_task", user_id="alice", title="hers")
    await tools.call("delete_task", user_id="alice", task_id=1)
    assert await tools.titles(user_id="bob", status="deleted") == []
    assert await tools.titles(user_id="alice", status="deleted") == ["hers"]
