"""How much one person may ask, change and keep: off without a setting where nobody is checked, on with sign-in."""

import asyncio
from typing import Any

import httpx2
import psycopg
import pytest

from mcp_server.server import CANCELLED_CHANNEL, create_app
from mcp_server.settings import Settings
from mcp_server.tasks import quota
from service.database import create_engine
from tests.logins import as_admin
from tests.mcp_server.conftest import Limited, Rows
from tests.mcp_server.guarded import AUDIENCE, own
from tests.mcp_server.wire import LEGACY, MODERN, cancelled, request, send
from tests.serving import serve
from tests.tokens import MCP_TOKEN_SECRET
from tests.waiting import until

KEY = {"todo/idempotency_key": "key-1"}


async def test_calls_that_come_too_fast(limited: Limited, rows: Rows) -> None:
    async with limited(limit_tool_calls_per_minute=3) as tools:
        for title in ("milk", "bread"):
            await tools.call("add_task", title=title)
        assert await tools.titles() == ["milk", "bread"]
        sentence = await tools.refusal("add_task", title="eggs")
        assert sentence in (
            f"Calls come too fast, and this one was not made: go on in {seconds} seconds." for seconds in range(1, 21)
        )
    assert len(rows.tasks()) == 2


async def test_cancellations_that_come_too_fast_are_told_to_no_other_process(database_url: str) -> None:
    app = create_app(Settings.model_validate({"database_url": database_url, "limit_tool_calls_per_minute": 3}))
    async with (
        serve(app) as base,
        httpx2.AsyncClient(base_url=base, trust_env=False) as http,
        await psycopg.AsyncConnection.connect(as_admin(database_url), autocommit=True) as other,
    ):
        await other.execute(f"LISTEN {CANCELLED_CHANNEL}".encode())
        for number in range(6):
            assert (await send(http, cancelled(number))).status_code == 202
        heard = [notification async for notification in other.notifies(timeout=0.5)]
    assert len(heard) == 3


HELLO = {"protocolVersion": LEGACY, "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}


@pytest.mark.parametrize(
    ("method", "params", "version"),
    [
        ("initialize", HELLO, LEGACY),
        ("ping", {}, LEGACY),
        ("tools/list", {}, LEGACY),
        ("tools/list", {}, MODERN),
        ("server/discover", {}, MODERN),
    ],
)
async def test_requests_that_come_too_fast_whatever_they_ask(
    database_url: str, method: str, params: dict[str, Any], version: str
) -> None:
    identity = {"auth_mode": "jwt", "mcp_token_secret": MCP_TOKEN_SECRET, "mcp_url": AUDIENCE}
    app = create_app(
        Settings.model_validate({"database_url": database_url, **identity, "limit_tool_calls_per_minute": 1})
    )
    async with serve(app) as base, httpx2.AsyncClient(base_url=base, trust_env=False) as http:
        alices, bobs = (request(method, params, version=version, token=own(sub=sub)) for sub in ("alice", "bob"))
        assert [(await send(http, alices)).status_code for _ in range(5)] == [200] * 4 + [429]
        refused = await send(http, alices)
        seconds = int(refused.headers["retry-after"])
        assert 1 <= seconds <= 15
        sentence = f"Requests come too fast: go on in {seconds} seconds."
        assert refused.json() == {"jsonrpc": "2.0", "id": 1, "error": {"code": -32000, "message": sentence}}
        assert (await send(http, bobs)).status_code == 200


async def test_so_many_tasks_and_no_more(limited: Limited, rows: Rows) -> None:
    async with limited(limit_tasks=2) as tools:
        first = await tools.call("add_task", title="milk", meta=KEY)
        await tools.call("add_task", title="bread")
        assert await tools.refusal("add_task", title="eggs") == (
            "There are 2 tasks, which is the most: delete some with delete_task before you add another."
        )
        assert len(rows.changes()) == 2
        assert await tools.call("add_task", title="milk", meta=KEY) == first  # one that was made is only told again
        await tools.call("add_task", user_id="bob", title="his")
        await tools.call("update_task", task_id=2, title="rye bread")
        await tools.call("delete_task", task_id=1)
        await tools.call("add_task", title="eggs")


async def test_somebody_with_a_long_history_has_no_more_in_a_day_either(limited: Limited, rows: Rows) -> None:
    rows(
        "WITH calls AS (INSERT INTO task_calls (user_id, operation, arguments, actor) "
        "SELECT 'local', 'add', '{}', 'mcp' FROM generate_series(2998, 1, -1) RETURNING id) "
        "INSERT INTO task_changes (user_id, call_id, created_at) "
        "SELECT 'local', id, now() - row_number() OVER (ORDER BY id DESC) * interval '30 seconds' FROM calls "
        "ORDER BY id RETURNING id"
    )  # 2,879 of them within a day
    async with limited(limit_changes_per_day=2881) as tools:
        for title in ("milk", "bread"):
            await tools.call("add_task", title=title)
        assert "2,881 times in a day" in await tools.refusal("add_task", title="eggs")


async def test_a_person_far_from_the_limits_waits_for_nobody(limited: Limited, database_url: str) -> None:
    async with limited(limit_tasks=10_000, limit_changes_per_day=5_000) as tools:
        with psycopg.connect(database_url) as other:
            other.execute("SELECT pg_advisory_xact_lock(hashtextextended('local', 1))")
            await tools.call("add_task", title="milk")


async def test_an_addition_is_the_same_far_from_the_limits_and_near(limited: Limited, rows: Rows) -> None:
    """Far from them it is one statement with its claim, so that the lock of those who are near is not waited for."""
    details = {"also": ["eggs", "tea"], "due": "tomorrow", "repeat": "FREQ=DAILY", "labels": ["shop"], "meta": KEY}
    left: list[tuple[list[dict[str, Any]], ...]] = []
    for most, person in ((1_501, "far"), (1_500, "near")):
        async with limited(limit_changes_per_day=most) as tools:
            await tools.call("add_task", user_id=person, title="milk", **details)
            left.append(tuple(_of(person, stored) for stored in (rows.tasks(), rows.changes())))
    assert left[0] == left[1]
    assert [len(stored) for stored in left[0]] == [3, 3]


def _of(person: str, stored: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Without what is each one's own."""
    own = {"user_id", "id", "call_id", "created_at", "updated_at"}
    rows = [row | {"after": row.get("after") or {}} for row in stored if row["user_id"] == person]
    kept = [row | {name: value for name, value in row["after"].items() if name not in own} for row in rows]
    return [{name: value for name, value in row.items() if name not in {*own, "after"}} for row in kept]


async def test_somebody_near_the_most_tasks_waits_for_their_other_calls(limited: Limited, database_url: str) -> None:
    async with limited(limit_tasks=1_002) as tools:
        with psycopg.connect(database_url) as other:
            other.execute("SELECT pg_advisory_xact_lock(hashtextextended('local', 1))")
            for title in ("milk", "bread"):
                await tools.call("add_task", title=title)
            waiting = asyncio.create_task(tools.call("add_task", title="eggs"))
            await asyncio.sleep(0.3)
            assert not waiting.done()
        assert (await waiting)["id"] == 3


async def test_calls_of_an_answer_near_the_limit_wait_for_each_other_in_one_order(limited: Limited) -> None:
    """Their person has come to another zone, which a dated one keeps; of two orders one would be ended."""
    async with limited(limit_tasks=1_000) as tools:
        for number in range(6):
            zone = {"todo/time_zone": ("Europe/Berlin", "Asia/Tokyo")[number % 2]}
            dates: list[dict[str, str]] = [{}, {"due": "tomorrow"}, {}, {"due": "tomorrow"}]
            await asyncio.gather(*(tools.call("add_task", title="milk", meta=zone, **date) for date in dates))


async def test_calls_at_the_same_time_have_no_more_together(limited: Limited, rows: Rows) -> None:
    async with limited(limit_tasks=2, limit_changes_per_day=5) as tools:
        added = [tools.call("add_task", title=f"{number}") for number in range(12)]
        assert sum(isinstance(answer, Exception) for answer in await asyncio.gather(*added, return_exceptions=True))
        assert len(rows.tasks()) == 2
        changed = [tools.call("update_task", task_id=1, title=f"{number}") for number in range(12)]
        await asyncio.gather(*changed, return_exceptions=True)
        assert len(rows.changes()) == 5


async def test_so_many_changes_in_a_day_and_no_more(limited: Limited, rows: Rows) -> None:
    async with limited(limit_changes_per_day=3) as tools:
        for title in ("milk", "bread", "eggs"):
            await tools.call("add_task", title=title)
        before = rows.tasks(), rows.changes()
        refused = (await tools.refusal("add_task", title="tea"), await tools.refusal("complete_task", task_id=1))
        assert set(refused) == {
            "The list was changed 3 times in a day, which is the most, so nothing was changed: go on later."
        }
        assert (rows.tasks(), rows.changes()) == before
        await tools.call("add_task", user_id="bob", title="his")
        rows_older_than_a_day = "UPDATE task_changes SET created_at = now() - interval '25 hours' WHERE id = %s"
        rows(f"{rows_older_than_a_day} RETURNING id", before[1][0]["id"])
        await tools.call("complete_task", task_id=1)


async def test_old_changes_are_swept_and_nobody_elses_rights_are_needed(
    limited: Limited, rows: Rows, database_url: str
) -> None:
    async with limited() as tools:
        for title in ("a", "b", "c", "d", "e"):
            await tools.call("add_task", title=title)
    newest = "(SELECT max(id) FROM task_calls)"
    rows(f"UPDATE task_calls SET created_at = now() - interval '31 days' WHERE id < {newest} RETURNING id")
    engine = create_engine(database_url)
    try:
        assert await quota.sweep(engine, 40) == 0
        assert await quota.sweep(engine, 30, at_once=2) == 4
    finally:
        await engine.dispose()
    assert [change["after"]["title"] for change in rows.changes()] == ["e"]
    assert len(rows.tasks()) == 5


async def test_a_server_sweeps_at_its_start(limited: Limited, rows: Rows) -> None:
    async with limited() as tools:
        await tools.call("add_task", title="milk")
    rows("UPDATE task_calls SET created_at = now() - interval '31 days' RETURNING id")
    async with limited(keep_changes_days=30):
        await until(lambda: rows.changes() == [])
