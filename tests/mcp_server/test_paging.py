import asyncio
from collections.abc import AsyncIterator
from typing import Any

import psycopg
import pytest

from mcp_server.tasks.lists.statements import PAGE_BYTES
from tests.logins import as_admin
from tests.mcp_server.calls import Tools


@pytest.fixture
def many(database_url: str) -> None:
    """120 tasks of alice with the same title and moment, every third completed, beside 120 of bob."""
    with psycopg.connect(as_admin(database_url)) as connection:
        connection.execute(
            "INSERT INTO tasks (user_id, id, title, status, created_at, completed_at)"
            " SELECT owner, n, 'same', CASE WHEN n % 3 = 0 THEN 'completed' ELSE 'pending' END, '2026-01-01', NULL"
            " FROM generate_series(1, 120) AS n, (VALUES ('alice'), ('bob')) AS people (owner)"
        )
        connection.execute("INSERT INTO people (user_id, last_task_id) VALUES ('alice', 120), ('bob', 120)")


async def pages(tools: Tools, **arguments: Any) -> AsyncIterator[list[int]]:
    cursor = None
    while True:
        page = await tools.call("list_tasks", user_id="alice", cursor=cursor, **arguments)
        yield [task["id"] for task in page["tasks"]]
        if (cursor := page["next_cursor"]) is None:
            return


@pytest.mark.usefixtures("many")
@pytest.mark.parametrize(
    ("arguments", "sizes"),
    [
        ({}, [50, 50, 20]),
        ({"limit": 100}, [100, 20]),
        ({"limit": 40}, [40, 40, 40]),
        ({"status": "completed", "limit": 39}, [39, 1]),
        ({"status": "pending", "limit": 80}, [80]),
    ],
)
async def test_pages_hold_every_task_once_and_in_order(
    tools: Tools, arguments: dict[str, Any], sizes: list[int]
) -> None:
    seen = [page async for page in pages(tools, **arguments)]
    ids = [number for page in seen for number in page]
    assert [len(page) for page in seen] == sizes
    assert ids == sorted(set(ids))


@pytest.mark.parametrize("letter", ["x", "\U0001f95b"])
async def test_a_page_has_no_more_bytes_than_can_be_read_at_once(tools: Tools, database_url: str, letter: str) -> None:
    with psycopg.connect(as_admin(database_url)) as connection:
        connection.execute(
            "INSERT INTO tasks (user_id, id, title, description) "
            "SELECT 'alice', n, 'full', repeat(%s, 4000) FROM generate_series(1, 100) AS n",
            [letter],
        )
    seen = [page async for page in pages(tools, limit=100)]
    full = 4 + 4000 * len(letter.encode())
    assert {len(page) for page in seen[:-1]} == {-(-PAGE_BYTES // full)}
    assert [number for page in seen for number in page] == list(range(1, 101))


@pytest.mark.usefixtures("many")
async def test_changes_between_pages_move_no_other_task(tools: Tools, database_url: str) -> None:
    everything = [number async for page in pages(tools, limit=100) for number in page]
    seen: list[int] = []
    async for page in pages(tools, limit=25):
        seen += page
        if len(seen) == 50:
            for number in (everything[0], everything[49], everything[50], everything[119]):
                await tools.call("delete_task", user_id="alice", task_id=number)
            await tools.call("add_task", user_id="alice", title="new")
    assert seen[:-1] == [number for number in everything if number not in (everything[50], everything[119])]
    assert seen[-1] > everything[-1]


@pytest.mark.usefixtures("many")
async def test_a_cursor_belongs_to_its_filter_and_to_nobody(tools: Tools) -> None:
    page = await tools.call("list_tasks", user_id="alice", status="pending", limit=10)
    other_status = await tools.refusal("list_tasks", user_id="alice", cursor=page["next_cursor"])
    assert other_status == (
        "cursor belongs to a list with status pending: call list_tasks with that and nothing else, or without cursor."
    )
    stranger = await tools.call("list_tasks", user_id="carol", status="pending", cursor=page["next_cursor"])
    assert (stranger["tasks"], stranger["next_cursor"], stranger["total"]) == ([], None, 0)


@pytest.mark.usefixtures("many")
async def test_readers_do_not_wait_for_each_other(tools: Tools) -> None:
    lists = await asyncio.gather(*(tools.call("list_tasks", user_id="alice", limit=5) for _ in range(20)))
    assert all(page["tasks"] == lists[0]["tasks"] for page in lists)
