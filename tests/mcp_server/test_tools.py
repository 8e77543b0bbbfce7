"""Each tool as its caller sees it; strangers first."""

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from tests.mcp_server.calls import Tools, text
from tests.mcp_server.conftest import Rows

CALLS: list[tuple[str, dict[str, Any]]] = [
    ("complete_task", {}),
    ("update_task", {"title": "mine now"}),
    ("delete_task", {}),
]


@pytest.mark.parametrize(("tool", "arguments"), CALLS)
async def test_a_stranger_s_task_and_a_missing_one_are_the_same(
    tools: Tools, rows: Rows, tool: str, arguments: dict[str, Any]
) -> None:
    task = await tools.call("add_task", user_id="alice", title="milk")
    before = rows.tasks()
    foreign = await tools.refusal(tool, user_id="bob", task_id=task["id"], **arguments)
    missing = await tools.refusal(tool, user_id="bob", task_id=task["id"] + 1, **arguments)
    assert foreign.replace(str(task["id"]), "N") == missing.replace(str(task["id"] + 1), "N")
    assert rows.tasks() == before
    assert len(rows.changes()) == 1


async def test_two_people_side_by_side(tools: Tools) -> None:
    for person in ("alice", "bob"):
        for title in ("milk", f"{person}'s own"):
            await tools.call("add_task", user_id=person, title=title)
    assert await tools.titles(user_id="alice") == ["milk", "alice's own"]
    assert await tools.titles(user_id="bob") == ["milk", "bob's own"]
    assert await tools.titles() == []


async def test_who_names_nobody_is_local(tools: Tools, rows: Rows) -> None:
    await tools.call("add_task", title="milk")
    assert [row["user_id"] for row in rows.tasks()] == ["local"]
    assert await tools.titles(user_id="local") == ["milk"]


RESULT = ("next", "also", "not_found")  # beside a task
NOTHING_MORE = {
    **dict.fromkeys(("due", "priority", "repeat", "series", "next", "deleted", "deleted_at")),
    **{name: [] for name in ("labels", "also", "not_found")},
}


@pytest.mark.parametrize("owner", [{}, {"user_id": "alice"}])
async def test_the_life_of_a_task(tools: Tools, rows: Rows, owner: dict[str, Any]) -> None:
    started = datetime.now(UTC)
    added = await tools.call("add_task", **owner, title="call mum", description="about sunday")
    assert added == {
        "id": 1,
        "title": "call mum",
        "description": "about sunday",
        "status": "pending",
        "created_at": added["created_at"],
        "updated_at": added["created_at"],
        "completed_at": None,
        **NOTHING_MORE,
    }
    created_at = datetime.fromisoformat(added["created_at"])
    assert created_at.utcoffset() == UTC.utcoffset(None)
    assert started <= created_at <= datetime.now(UTC)

    renamed = await tools.call("update_task", **owner, task_id=1, title="call mum at six")
    assert renamed == added | {"title": "call mum at six", "updated_at": renamed["updated_at"]}
    assert renamed["updated_at"] > added["updated_at"]

    completed = await tools.call("complete_task", **owner, task_id=1)
    times = {"updated_at": completed["updated_at"], "completed_at": completed["updated_at"]}
    assert completed == renamed | {"status": "completed"} | times
    assert completed["updated_at"] > renamed["updated_at"]

    assert await tools.call("delete_task", **owner, task_id=1) == {
        "id": 1,
        "title": "call mum at six",
        "deleted": True,
        "task": {name: value for name, value in completed.items() if name not in ("deleted", "deleted_at", *RESULT)},
        "also": [],
        "not_found": [],
    }
    assert rows.tasks() == []


async def test_an_update_changes_only_what_it_is_given(tools: Tools) -> None:
    await tools.call("add_task", title="milk", description="2 litres")
    task = await tools.call("update_task", task_id=1, description="3 litres", title=None)
    assert (task["title"], task["description"]) == ("milk", "3 litres")
    task = await tools.call("update_task", task_id=1, title="oat milk", description=None)
    assert (task["title"], task["description"]) == ("oat milk", "3 litres")
    task = await tools.call("update_task", task_id=1, description="")
    assert (task["title"], task["description"]) == ("oat milk", "")


async def test_completing_twice_changes_nothing(tools: Tools) -> None:
    await tools.call("add_task", title="milk")
    completed = await tools.call("complete_task", task_id=1)
    assert await tools.call("complete_task", task_id=1) == completed


async def test_a_completed_task_can_be_renamed_and_stays_completed(tools: Tools) -> None:
    await tools.call("add_task", title="milk")
    completed = await tools.call("complete_task", task_id=1)
    renamed = await tools.call("update_task", task_id=1, title="oat milk")
    assert renamed["status"] == "completed"
    assert renamed["completed_at"] == completed["completed_at"]


async def test_list_by_status(tools: Tools) -> None:
    for title in ("milk", "bread", "eggs"):
        await tools.call("add_task", title=title)
    await tools.call("complete_task", task_id=2)
    assert await tools.titles() == ["milk", "bread", "eggs"]
    assert await tools.titles(status="all") == ["milk", "bread", "eggs"]
    assert await tools.titles(status="pending") == ["milk", "eggs"]
    assert await tools.titles(status="completed") == ["bread"]


async def test_the_text_leaves_out_what_says_nothing(tools: Tools) -> None:
    await tools.call("add_task", title="crème brûlée", labels=["sweet"])
    task = {"id": 1, "title": "crème brûlée", "status": "pending", "labels": ["sweet"]}
    for name, arguments, said in [
        ("list_tasks", {}, {"tasks": [task], "next_cursor": None, "total": 1}),
        ("update_task", {"task_id": 1, "priority": "low"}, task | {"priority": "low"}),
        ("delete_task", {"task_id": 1}, {"id": 1, "title": "crème brûlée", "deleted": True}),
    ]:
        result = await tools.client.call_tool_mcp(name, arguments)
        told = json.loads(text(result))
        now = {key: told.pop(key) for key in ("now", "time_zone") if key in told}
        assert told == said
        assert result.structured_content is not None
        assert result.structured_content.items() >= now.items()
        assert result.structured_content.keys() > said.keys()
