"""The undo of the largest batches that a user can make, with the longest descriptions."""

from collections.abc import Callable
from typing import Any

import psycopg
import pytest

from bench.seed import add_tasks
from tests.logins import as_admin
from tests.mcp.conftest import NewTools
from tests.mcp.test_batches import batch, read

PART = 100  # tasks of a call, and of the result of an undo
LONG_DESCRIPTION = """
UPDATE tasks SET description = (SELECT string_agg(md5((id * 200 + n)::text), '') FROM generate_series(1, 125) n)
WHERE user_id = %s"""


@pytest.mark.parametrize(
    "tasks",
    [
        pytest.param(300, marks=pytest.mark.long),
        pytest.param(5_000, marks=pytest.mark.extended),  # the changes of a day
    ],
)
async def test_largest_batch_is_undone_and_redone(
    new_tools: NewTools, session_database_url: str, administrator: Callable[[str], psycopg.Connection[Any]], tasks: int
) -> None:
    tools = new_tools()
    add_tasks(as_admin(session_database_url), tools.user, tasks)
    administrator(session_database_url).execute(LONG_DESCRIPTION, [tools.user])
    before = await tools.comparable()
    for first in range(1, tasks, PART):
        await tools.update(*range(first, first + PART), due="2031-01-01", meta=batch("large"))
    moved = await tools.comparable()
    undone = await tools.undo_batch("large", **batch("undo"))
    assert await tools.comparable() == before
    assert len([undone, *undone["also"]]) == PART
    await tools.undo_batch("undo", **batch("redo"))
    assert await tools.comparable() == moved
    await tools.undo_batch("redo", **batch("last"))
    assert await tools.comparable() == before
    kinds = [(one["kind"], one["undone"], one["count"]) for one in await read(tools)]
    assert kinds == [("undo", False, tasks), ("redo", True, tasks), ("undo", True, tasks), ("change", True, tasks)]
