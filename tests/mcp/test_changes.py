"""`GET /batch`, `GET /changes`, `GET /done` and `GET /tasks`: what is read of one's own tasks without a tool."""

import asyncio
import logging
from typing import Any

import httpx2
import pytest

from mcp_server.tasks.lists import reads
from tests.mcp.calls import Tools
from tests.mcp.conftest import Limited, NewTools
from tests.mcp.servers import own
from tests.mcp.wire import call, result, send
from tests.support.stored import Stored

PATHS = ["/batch?id=run", "/changes", "/done", "/tasks?ids=1"]


def signed(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


async def test_a_user_reads_their_own_tasks_only(tools: Tools, new_tools: NewTools) -> None:
    other, nobody = new_tools(), new_tools()
    await tools.add("a", also=["b"])
    await tools.complete(1)
    await other.add("c")
    assert sorted((await tools.changes())["task_ids"]) == [1, 2]
    assert (await other.changes())["task_ids"] == [1]
    assert await nobody.changes() == {"last": 0, "task_ids": [], "more": False}
    for each, done in ((tools, 1), (other, 0), (nobody, 0)):
        days = (await each.http.get("/done", headers=signed(each.token))).json()["days"]
        assert sum(day["done"] for day in days) == done
    found = (await nobody.http.get("/tasks?ids=1,2", headers=signed(nobody.token))).json()["tasks"]
    assert found == []


async def test_descriptions_of_several_tasks(tools: Tools) -> None:
    """Only their beginnings, as 1,000 of them could be 12 MB."""
    text = "description" * 300
    await tools.add("a", description=text)
    await tools.add("b", description=text)
    await tools.delete(2)

    async def read(ids: str) -> list[str]:
        found = await tools.http.get(f"/tasks?ids={ids}", headers=signed(tools.token))
        return [task["description"] for task in found.json()["tasks"]]

    assert await read("1") == [text]
    assert await read("1,2") == [text[:200]] * 2


@pytest.mark.parametrize("path", PATHS)
async def test_foreign_hosts_pages_and_methods(http: httpx2.AsyncClient, path: str) -> None:
    assert (await http.get(path, headers={"host": "evil.example"})).status_code == 421
    assert (await http.get(path, headers={"origin": "https://evil.example"})).status_code == 403
    assert (await http.post(path, json={})).status_code == 405


REFUSED = [
    *[(f"/batch{odd}", "id") for odd in ("", "?id=", "?id=" + "x" * 201, "?id=%00", "?id=%0A")],
    *[(f"/changes?after={odd}", "after") for odd in ("", "-1", "x", "1.5", "٣", "9" * 30, "1e3")],
    *[(f"/done?days={odd}", "days") for odd in ("0", "-1", "367", "x", "")],
    *[(f"/tasks{odd}", "ids") for odd in ("", "?ids=", "?ids=1,", "?ids=x", "?ids=-1", "?ids=1 2")],
    *[(f"/tasks?ids={odd}", "ids") for odd in ("1," * 1000 + "1", "9" * 19, "٣")],
    *[(f"/done?time_zone={odd}", "time_zone") for odd in ("Nowhere/At_All", "../../etc/passwd")],
]


async def test_parameters_that_cannot_be_read(http: httpx2.AsyncClient) -> None:
    for path, named in REFUSED:
        answer = await http.get(path)
        assert answer.status_code == 400, path
        assert answer.json()["error"].startswith(named), path


async def test_every_kind_of_change_is_listed_once(tools: Tools) -> None:
    seen = 0
    calls: list[tuple[str, dict[str, Any], list[int]]] = [
        ("add_task", {"title": "a", "also": ["b", "c"]}, [1, 2, 3]),
        ("update_task", {"task_id": 2, "due": "2030-01-01", "repeat": "FREQ=DAILY", "also": [1]}, [1, 2]),
        ("complete_task", {"task_id": 2}, [2, 4]),
        ("delete_task", {"task_id": 3}, [3]),
        ("update_task", {"task_id": 3, "undo": True}, [3]),
    ]
    for tool, arguments, ids in calls:
        await tools.call(tool, **arguments)
        changes = await tools.changes(seen)
        assert (sorted(changes["task_ids"]), changes["more"]) == (ids, False)
        assert changes["last"] > seen
        seen = changes["last"]
        assert await tools.changes(seen) == {"last": seen, "task_ids": [], "more": False}
    without_after = await tools.http.get("/changes", headers=signed(tools.token))
    assert without_after.json() == {"last": seen, "task_ids": [], "more": False}
    assert sorted((await tools.changes())["task_ids"]) == [1, 2, 3, 4], "each once"


async def test_a_client_that_was_away_for_long_reads_anew(tools: Tools) -> None:
    for _ in range(20):
        await tools.add("a", also=["a"] * 49)
    assert (len((await tools.changes())["task_ids"]), (await tools.changes())["more"]) == (1_000, False)
    await tools.add("a")
    changes = await tools.changes()
    assert (changes["task_ids"], changes["more"]) == ([], True)
    assert await tools.changes(changes["last"]) == {"last": changes["last"], "task_ids": [], "more": False}
    assert await tools.changes(changes["last"] + 5) == changes, "of a log that is not there any more"


async def test_no_change_is_missed_while_many_are_made(tools: Tools) -> None:
    await tools.add("1", also=[str(number) for number in range(2, 41)])
    last = (await tools.changes())["last"]
    found: list[int] = []
    calls = [tools.add("new") if number % 4 == 0 else tools.complete(number) for number in range(1, 41)]
    making = asyncio.gather(*calls)
    ended = False
    while not ended:
        ended = making.done()
        changes = await tools.changes(last)
        found, last = found + changes["task_ids"], changes["last"]
    await making
    assert sorted(found) == sorted([*[n for n in range(1, 41) if n % 4], *range(41, 51)])


async def test_polls_are_limited_but_neither_logged_nor_counted_as_calls(
    limited: Limited, user: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    async with limited(auth_mode="jwt", limit_tool_calls_per_minute=3) as tools:
        http = tools.http
        caplog.clear()
        answers = [await http.get("/changes?after=0", headers=signed(own(sub=user))) for _ in range(4)]
        assert [answer.status_code for answer in answers] == [200, 200, 200, 429]
        assert int(answers[-1].headers["retry-after"]) > 0
        assert (await http.get("/changes", headers=signed(own(sub=f"{user}-b")))).status_code == 200
        result(await send(http, call("list_tasks", {}, token=own(sub=user))))
        lines = [record for record in caplog.records if record.name.startswith(("mcp_server", "common", "uvicorn"))]
        assert [record.getMessage() for record in lines] == ["tool call"]


async def test_done_by_day(limited: Limited, stored: Stored) -> None:
    """In Berlin 25 October 2026 has 25 hours; the clock stands in the night after it."""
    async with limited(now="2026-10-26T00:30:00+01:00", time_zone="Europe/Berlin") as tools:
        moments = [
            *("2026-10-23T21:59:59Z", "2026-10-23T22:00:00Z", "2026-10-24T21:59:59Z"),
            *("2026-10-24T22:00:00Z", "2026-10-25T22:59:59Z", "2026-10-25T23:00:00Z"),
        ]
        await tools.add("x", also=["x"] * 6)
        await tools.complete(*range(1, 7))
        for number, moment in enumerate(moments, start=1):
            stored.set_completion(tools.user, number, moment)

        async def done(query: str) -> list[tuple[str, int]]:
            days = (await tools.http.get(f"/done?{query}", headers=signed(tools.token))).json()["days"]
            return [(day["day"], day["done"]) for day in days]

        assert await done("days=3") == [("2026-10-24", 2), ("2026-10-25", 2), ("2026-10-26", 1)]
        month = await done("")
        assert (len(month), month[0][0], sum(number for _, number in month)) == (28, "2026-09-29", 6)
        assert await tools.ids(done="2026-10-25") == [4, 5]
        assert await tools.ids(done="..2026-10-24", status="completed") == [1, 2, 3]
        assert await done("days=2&time_zone=UTC") == [("2026-10-24", 2), ("2026-10-25", 2)]
        assert [day for day, _ in await done("days=1")] == ["2026-10-26"], "the zone that was named is stored nowhere"


async def test_tasks_by_their_ids(tools: Tools) -> None:
    async def read(ids: str) -> list[tuple[int, str, bool]]:
        answer = await tools.http.get("/tasks", params={"ids": ids}, headers=signed(tools.token))
        assert answer.status_code == 200, answer.text
        return [(task["id"], task["status"], bool(task["deleted_at"])) for task in answer.json()["tasks"]]

    await tools.add("a", also=["b", "c", "d"], labels=["home"])
    await tools.complete(2)
    await tools.delete(3, 4)
    await tools.undo(4)
    assert await read("3,2,1,4,2,9") == [
        (1, "pending", False),
        (2, "completed", False),
        (3, "pending", True),
        (4, "pending", False),
    ]
    assert await read("0,9223372036854775807") == []


async def test_last_change_of_each_task(tools: Tools, stored: Stored) -> None:
    """Its batch, as long as that can be undone, and whether it was undone."""

    async def read() -> dict[int, tuple[str, bool]]:
        answer = await tools.http.get("/tasks", params={"ids": "1,2,3,4"}, headers=signed(tools.token))
        return {one["task_id"]: (one["batch"], one["is_undone"]) for one in answer.json()["last_changes"]}

    first, second = {"todo/batch": "first"}, {"todo/batch": "second"}
    await tools.add("a", also=["b", "c"], meta=first)
    await tools.add("d")
    assert await read() == {1: ("first", False), 2: ("first", False), 3: ("first", False)}
    await tools.complete(1, meta=second)
    await tools.complete(1, meta=first)  # changes nothing
    await tools.delete(2)
    assert await read() == {1: ("second", False), 3: ("first", False)}
    await tools.undo_batch("second", **{"todo/batch": "click"})
    await tools.undo(2)
    assert await read() == {1: ("second", True), 3: ("first", False)}
    await tools.undo(1)
    assert await read() == {1: ("first", True), 3: ("first", False)}, "a task that is gone"
    stored.age_task_changes(tools.user, days=31)
    assert await read() == {1: ("first", True)}


RUN = {"todo/batch": "run"}


async def read_batch(tools: Tools, batch: str = "run") -> list[tuple[int, str, str]]:
    answer = await tools.http.get("/batch", params={"id": batch}, headers=signed(tools.token))
    assert answer.status_code == 200, answer.text
    assert answer.json()["more"] is False
    return [(one["task_id"], one["title"], one["change"]) for one in answer.json()["changes"]]


async def test_changes_of_a_batch(tools: Tools, new_tools: NewTools) -> None:
    """One for each task, from before the first change of the batch to after the last one."""
    await tools.add("a", also=["b", "c", "d", "e", "f", "g"], due="2030-01-01")
    await tools.complete(3)
    await tools.delete(4)
    await tools.add("h", meta=RUN)
    await tools.update(1, title="A", due="2030-02-01", meta=RUN)
    await tools.complete(1, meta=RUN)
    await tools.update(2, due="2030-01-01 10:00", priority="high", meta=RUN)
    await tools.update(3, status="pending", meta=RUN)
    await tools.undo(4, meta=RUN)
    await tools.update(5, labels=["x"], meta=RUN)
    await tools.delete(6, 7, meta=RUN)
    assert await read_batch(tools) == [
        (8, "h", "added"),
        (1, "A", "completed"),
        (2, "b", "moved"),
        (3, "c", "reopened"),
        (4, "d", "restored"),
        (5, "e", "changed"),
        (6, "f", "deleted"),
        (7, "g", "deleted"),
    ]
    await tools.complete(8, meta={"todo/batch": "other"})
    await tools.undo_batch("other")
    assert len(await read_batch(tools)) == 8, "it is what the batch did, whatever came later"
    assert await read_batch(new_tools()) == [], "of another user"
    assert await read_batch(tools, "nothing") == []


async def test_what_a_batch_undoes_itself_is_no_change_of_it(tools: Tools) -> None:
    await tools.add("a", also=["b", "c", "d"])
    await tools.add("e", meta=RUN)
    await tools.delete(5, meta=RUN)
    await tools.delete(1, meta=RUN)
    await tools.undo(1, meta=RUN)
    await tools.complete(2, meta=RUN)
    await tools.update(2, status="pending", meta=RUN)
    await tools.update(3, due="2030-01-01", meta=RUN)
    await tools.update(3, due="none", meta=RUN)
    await tools.update(4, title="d", meta=RUN)
    assert await read_batch(tools) == []


async def test_next_task_of_a_repeat_is_no_change_of_its_own(tools: Tools) -> None:
    for nth, title in enumerate("abcd"):
        await tools.add(title, due="2030-01-01", repeat="FREQ=DAILY", meta={"todo/batch": "first"})
        await tools.complete(2 * nth + 1, meta={"todo/batch": title})
        assert await read_batch(tools, title) == [(2 * nth + 1, title, "completed")]
    assert [change for _, _, change in await read_batch(tools, "first")] == ["added"] * 4
    await tools.update(2, due="2030-02-01", meta={"todo/batch": "a"})
    assert await read_batch(tools, "a") == [(1, "a", "completed"), (2, "a", "moved")]
    await tools.undo(3, meta={"todo/batch": "undo"})
    assert await read_batch(tools, "undo") == [(3, "b", "reopened")], "also its removal is none"
    await tools.undo(6, meta={"todo/batch": "removal"})
    assert await read_batch(tools, "removal") == [(6, "c", "deleted")], "unless it is removed alone"
    await tools.undo(7, meta={"todo/batch": "d"})
    assert await read_batch(tools, "d") == [], "completed and undone"


async def test_a_batch_with_many_tasks_is_cut_off(limited: Limited, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reads, "MAX_LOGGED", 3)
    async with limited() as tools:
        await tools.add("a", also=["b", "c"], meta=RUN)
        assert len(await read_batch(tools)) == 3
        await tools.add("d", meta=RUN)
        answer = (await tools.http.get("/batch?id=run", headers=signed(tools.token))).json()
        assert ([one["title"] for one in answer["changes"]], answer["more"]) == (["a", "b", "c"], True)
