"""How much a user may ask, change and keep: off without a setting where nobody is checked, on with sign-in."""

import asyncio
from typing import Any

import pytest

from tests.mcp.calls import KEY, Tools
from tests.mcp.conftest import Limited, new_user
from tests.mcp.servers import own
from tests.mcp.wire import LEGACY, MODERN, request, send
from tests.support.stored import Stored
from tests.waiting import until

HELLO = {"protocolVersion": LEGACY, "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
DAILY: dict[str, Any] = {"due": "2996-11-28", "repeat": "FREQ=DAILY"}


async def test_calls_that_come_too_fast(limited: Limited) -> None:
    async with limited(limit_tool_calls_per_minute=3) as tools:
        for title in ("milk", "bread"):
            await tools.add(title)
        assert await tools.titles() == ["milk", "bread"]
        assert "Try again in" in await tools.error("add_task", title="eggs")
        await Tools(tools.http, new_user()).add("his")


async def test_requests_that_come_too_fast_whatever_they_ask(limited: Limited) -> None:
    async with limited(auth_mode="jwt", limit_tool_calls_per_minute=1) as tools:
        for method, params, version in [
            ("initialize", HELLO, LEGACY),
            ("ping", {}, LEGACY),
            ("tools/list", {}, LEGACY),
            ("tools/list", {}, MODERN),
            ("server/discover", {}, MODERN),
        ]:
            mine, others = (request(method, params, version=version, token=own(sub=new_user())) for _ in range(2))
            assert [(await send(tools.http, mine)).status_code for _ in range(5)] == [200] * 4 + [429]
            rejected = await send(tools.http, mine)
            assert 1 <= int(rejected.headers["retry-after"]) <= 15
            assert rejected.json()["error"]["code"] == -32000
            assert (await send(tools.http, others)).status_code == 200


async def test_bodies_that_come_too_fast_are_not_parsed(limited: Limited) -> None:
    async with limited(auth_mode="jwt", limit_tool_calls_per_minute=1) as tools:
        headers = {"authorization": f"Bearer {own(sub=new_user())}", "content-type": "application/json"}
        statuses = [(await tools.http.post("/mcp", content=b"[]", headers=headers)).status_code for _ in range(5)]
        assert statuses == [400] * 4 + [429]


async def test_the_most_tasks(limited: Limited) -> None:
    async with limited(limit_tasks=3) as tools:
        first = await tools.add("milk", meta=KEY)
        await tools.add("bread", **DAILY)
        for arguments in ({"title": "c", "also": ["d"]}, {"title": "c", "also": ["d"] * 50}):
            assert "limit" in await tools.error("add_task", **arguments)
        await tools.add("c")
        assert "limit" in await tools.error("add_task", title="eggs")
        assert "limit" in await tools.error("complete_task", task_id=2)  # which would leave another
        assert await tools.add("milk", meta=KEY) == first  # one that was made is only told again
        await tools.update(3, title="rye bread")
        await tools.delete(1, 3)
        await tools.complete(2)
        await tools.add("tea")
        before = await tools.state()
        assert "limit" in await tools.error("update_task", task_id=1, also=[3], undo=True)
        assert await tools.state() == before
        await Tools(tools.http, new_user()).add("his")


async def test_the_most_changes_of_a_day(limited: Limited, stored: Stored) -> None:
    async with limited(limit_changes_per_day=4) as tools:
        await tools.add("a", also=["b", "c"])
        before = await tools.state()
        assert "limit" in await tools.error("add_task", title="d", also=["e"])
        assert "limit" in await tools.error("complete_task", task_id=1, also=[2])
        assert await tools.state() == before
        await tools.complete(1, meta={"todo/batch": "complete"})
        assert "limit" in await tools.error("complete_task", task_id=2)
        await Tools(tools.http, new_user()).add("his")
        stored.age_task_changes(tools.user, days=1.05)
        await tools.complete(2)


async def test_an_undo_is_not_counted_as_a_change_of_the_day(limited: Limited) -> None:
    async with limited(limit_changes_per_day=4) as tools:
        await tools.add("a", also=["b"])
        await tools.update(1, 2, priority="high", meta={"todo/batch": "change"})
        await tools.undo_batch("change", **{"todo/batch": "undo"})
        sentence = await tools.error("update_task", task_id=1, meta={"todo/undo_batch": "undo"})
        assert "Tasks were changed 4 times" in sentence, "what is redone is changed once more"
        await tools.undo(1, 2)
        assert await tools.tasks() == []


async def test_the_most_changes_of_a_day_after_many(limited: Limited) -> None:
    async with limited(limit_changes_per_day=1_600) as tools:
        await tools.add("a", also=["a"] * 49)
        for number in range(31):
            await tools.update(*range(1, 51), priority=("high", "low")[number % 2])
        assert "limit" in await tools.error("add_task", title="eggs")


async def test_calls_at_the_same_time_get_no_more_together(limited: Limited) -> None:
    async with limited(limit_tasks=2, limit_changes_per_day=5) as tools:
        await asyncio.gather(*(tools.result("add_task", {"title": f"{n}"}) for n in range(12)))
        assert len(await tools.tasks()) == 2
        updates = [tools.result("update_task", {"task_id": 1, "title": f"new {n}"}) for n in range(12)]
        assert sum(not result["isError"] for result in await asyncio.gather(*updates)) == 3


async def test_near_the_most_tasks_calls_do_not_wait_in_a_circle(limited: Limited) -> None:
    """A completion of a repeat leaves a task, and an addition makes one; calls come from two zones."""
    async with limited(limit_tasks=1_000) as tools:
        for number in range(20):
            await tools.add(str(number), due="2030-01-01", repeat="FREQ=DAILY")
        zones = [{"todo/time_zone": zone} for zone in ("Europe/Berlin", "Asia/Tokyo")]
        calls = [tools.add("new", meta=zones[n % 2], due="tomorrow" if n % 3 else None) for n in range(20)]
        calls += [tools.complete(number) for number in range(1, 21)]
        await asyncio.gather(*calls)
        assert len(await tools.tasks(status="pending")) == 40


@pytest.mark.parametrize(("days", "swept"), [(31, True), (29, False)])
async def test_old_changes_are_deleted_at_a_start(limited: Limited, stored: Stored, days: int, swept: bool) -> None:
    async with limited() as tools:
        await tools.add("milk")
        user, other = tools.user, Tools(tools.http, new_user())
        await other.add("bread")
    stored.age_task_changes(user, days=days)
    stored.age_task_changes(other.user, days=40)
    async with limited(keep_changes_days=30):
        await until(lambda: stored.task_calls(other.user) == [])
    assert (stored.task_calls(user) == []) == swept
    assert stored.titles(user) == ["milk"]
