"""The log of changes, and calls that are sent again."""

import asyncio
from typing import Any, Literal

import pytest
from mcp_types import Implementation

from mcp_server.tasks.task import Task
from tests.mcp_server.calls import Tools, client_of
from tests.mcp_server.conftest import Rows

KEY = {"todo/idempotency_key": "key-1"}

AGAIN: list[tuple[str, dict[str, Any]]] = [
    ("add_task", {"title": "bread", "description": "rye"}),
    ("complete_task", {"task_id": 1}),
    ("update_task", {"task_id": 1, "title": "oat milk"}),
    ("delete_task", {"task_id": 1}),
]


@pytest.mark.parametrize(("tool", "arguments"), AGAIN)
async def test_a_failed_call_claims_no_key(tools: Tools, rows: Rows, tool: str, arguments: dict[str, Any]) -> None:
    missing = {"task_id": 99} if "task_id" in arguments else {"title": ""}
    await tools.refusal(tool, **arguments | missing, meta=KEY)
    assert rows.changes() == []
    await tools.call("add_task", title="milk")
    await tools.call(tool, **arguments, meta=KEY)
    assert [change["idempotency_key"] for change in rows.changes()] == [None, "key-1"]


@pytest.mark.parametrize(("tool", "arguments"), AGAIN)
async def test_a_key_with_other_arguments_is_refused(
    tools: Tools, rows: Rows, tool: str, arguments: dict[str, Any]
) -> None:
    await tools.call("add_task", title="milk")
    await tools.call("add_task", title="first", meta=KEY)
    before = rows.tasks()
    assert await tools.refusal(tool, **arguments, meta=KEY) == (
        "This idempotency key belongs to an earlier call with other arguments: send each new call with a new key."
    )
    assert rows.tasks() == before
    assert len(rows.changes()) == 2


@pytest.mark.parametrize(("tool", "arguments"), AGAIN)
async def test_a_call_sent_again_is_answered_and_not_done_again(
    tools: Tools, rows: Rows, tool: str, arguments: dict[str, Any]
) -> None:
    await tools.call("add_task", title="milk")
    first = await tools.call(tool, **arguments, meta=KEY)
    before = rows.tasks(), rows.changes()
    for _ in range(3):
        assert await tools.call(tool, **arguments, meta=KEY) == first
    assert (rows.tasks(), rows.changes()) == before


async def test_the_answer_is_the_recorded_one_whatever_happened_since(tools: Tools) -> None:
    added = await tools.call("add_task", title="milk", meta=KEY)
    await tools.call("update_task", task_id=1, title="oat milk")
    await tools.call("delete_task", task_id=1)
    assert await tools.call("add_task", title="milk", meta=KEY) == added


@pytest.mark.parametrize(("tool", "arguments"), AGAIN)
async def test_twenty_at_once_act_once(tools: Tools, rows: Rows, tool: str, arguments: dict[str, Any]) -> None:
    await tools.call("add_task", title="milk")
    answers = await asyncio.gather(*(tools.call(tool, **arguments, meta=KEY) for _ in range(20)))
    assert all(answer == answers[0] for answer in answers)
    assert len(rows.changes()) == 2


async def test_a_key_is_its_person_s(tools: Tools, rows: Rows) -> None:
    for person in ("alice", "bob"):
        await tools.call("add_task", user_id=person, title=f"{person}'s", meta=KEY)
    assert [row["title"] for row in rows.tasks()] == ["alice's", "bob's"]


async def test_every_change_is_logged_with_both_sides(tools: Tools, rows: Rows) -> None:
    added = await tools.call("add_task", user_id="alice", title="milk")
    renamed = await tools.call("update_task", user_id="alice", task_id=1, title="oat milk")
    completed = await tools.call("complete_task", user_id="alice", task_id=1)
    await tools.call("complete_task", user_id="alice", task_id=1)
    await tools.call("delete_task", user_id="alice", task_id=1)
    changes = rows.changes()
    assert [(change["operation"], change["arguments"]) for change in changes] == [
        ("add", {"title": "milk", "description": ""}),
        ("update", {"task_id": 1, "title": "oat milk"}),
        ("complete", {"task_id": 1}),
        ("complete", {"task_id": 1}),
        ("delete", {"task_id": 1}),
    ]
    states = [None, added, renamed, completed, completed, None]
    assert [comparable(change["before"]) for change in changes] == [comparable(state) for state in states[:-1]]
    assert [comparable(change["after"]) for change in changes] == [comparable(state) for state in states[1:]]
    for change in changes:
        assert (change["user_id"], change["task_id"], change["actor"]) == ("alice", 1, "mcp")


def comparable(task: dict[str, Any] | None) -> Task | None:
    """PostgreSQL and the tools spell the same moment differently."""
    return Task.model_validate(task) if task else None


async def test_lists_are_not_logged(tools: Tools, rows: Rows) -> None:
    await tools.call("list_tasks", meta=KEY)
    assert rows.changes() == []


@pytest.mark.parametrize(("mode", "actor"), [("auto", "Inspector ?"), ("legacy", "mcp")])
async def test_who_gives_no_label_is_known_by_the_client_s_name(
    server_at: str, rows: Rows, mode: Literal["auto", "legacy"], actor: str
) -> None:
    """As far as a request says it: without sessions, the older protocol does not."""
    me = Implementation(name="Inspector \x07", version="1")
    async with client_of(server_at, mode=mode, client_info=me) as client:
        await Tools(client).call("add_task", title="milk")
    assert [change["actor"] for change in rows.changes()] == [actor]


async def test_changes_of_one_task_at_once_follow_each_other(tools: Tools, rows: Rows) -> None:
    await tools.call("add_task", title="0")
    await asyncio.gather(*(tools.call("update_task", task_id=1, title=f"{n}") for n in range(1, 21)))
    changes = {change["before"]["title"]: change["after"]["title"] for change in rows.changes()[1:]}
    title, steps = "0", 0
    while title in changes:
        title, steps = changes.pop(title), steps + 1
    assert steps == 20
    assert rows.tasks()[0]["title"] == title


async def test_each_person_counts_their_own_tasks(tools: Tools) -> None:
    async def add(person: str, meta: dict[str, str] | None = None) -> int:
        return (await tools.call("add_task", user_id=person, title="milk", meta=meta))["id"]

    numbers = await asyncio.gather(*(add(person) for _ in range(10) for person in ("alice", "bob")))
    assert sorted(numbers) == sorted([*range(1, 11)] * 2)
    await tools.call("delete_task", user_id="alice", task_id=10)
    assert await add("alice", meta=KEY) == 11, "the number of a deleted task is not given again"
    assert await add("alice", meta=KEY) == 11
    assert await add("alice") == 12, "a call that was sent again takes no number"
