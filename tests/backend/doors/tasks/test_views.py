"""What a person sees of their list: five views, filters, pages, and what was changed since."""

from datetime import datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from tests.backend.conftest import Backend, Rows
from tests.backend.doors.tasks.person import ZONE, Person
from tests.processes import ServiceProcess

VIEWS = ("today", "upcoming", "all", "done", "deleted")
READS = [*(f"/tasks?view={view}" for view in VIEWS), "/tasks/changes", "/tasks/changes?after=0", "/tasks/1"]


def day(ahead: int) -> str:
    return (datetime.now(ZoneInfo(ZONE)).date() + timedelta(days=ahead)).isoformat()


@pytest.mark.parametrize("path", READS)
async def test_who_is_nobody_sees_nothing(alice: Person, path: str) -> None:
    for headers in ({"Authorization": ""}, {"Authorization": "Bearer garbage"}):
        assert await alice.sentence(401, "GET", path, **headers)
    assert (await alice.ask("GET", path, Origin="https://evil.example")).status_code == 403
    assert (await alice.ask("GET", path, Host="evil.example")).status_code == 421


async def test_a_person_sees_their_own_only(alice: Person, bob: Person) -> None:
    await alice.add("alice's", due="today")
    assert await alice.titles("all") == ["alice's"]
    for view in VIEWS:
        seen = await bob.view(view)
        assert (seen["tasks"], seen["total"], seen["last"]) == ([], 0, 0)
    assert await bob.news(0) == {"last": 0, "task_ids": [], "more": False}


async def test_a_task_as_it_is_shown(alice: Person) -> None:
    details: dict[str, Any] = {
        "due": "2030-11-27 15:00",
        "priority": "high",
        "labels": ["home"],
        "repeat": "FREQ=DAILY",
    }
    task = await alice.add("water", description="the plants", **details)
    assert task == {
        "id": 1,
        "title": "water",
        "description": "the plants",
        "status": "pending",
        "due": "2030-11-27",
        "time": "15:00",
        "priority": "high",
        "labels": ["home"],
        "repeat": "FREQ=DAILY",
        "completed": None,
        "deleted": None,
    }
    plain = await alice.add("milk")
    assert [plain[name] for name in ("due", "time", "priority", "labels", "repeat", "description")] == [
        *(None, None, None, [], None, "")
    ]
    assert (await alice.view("all"))["tasks"] == [task, plain]


async def test_one_task_whatever_its_state(alice: Person, bob: Person) -> None:
    task = await alice.add("water", due="2030-11-27 15:00", labels=["home"])
    path = f"/tasks/{task['id']}"
    assert (await alice.ask("GET", path)).json() == task
    (done,) = (await alice.done("PATCH", path, {"status": "completed"}))["tasks"]
    assert (await alice.ask("GET", path)).json() == done
    (gone,) = (await alice.done("DELETE", path))["tasks"]
    seen = (await alice.ask("GET", path)).json()
    assert seen == gone | {"deleted": seen["deleted"]}
    assert seen["deleted"] is not None
    for person, other in ((alice, "/tasks/2"), (bob, path)):
        assert "There is no task" in await person.sentence(404, "GET", other)
    for odd in ("0", "-1", "x", "1.5", str(2**63)):
        assert await alice.sentence(400, "GET", f"/tasks/{odd}")


async def test_the_views(alice: Person) -> None:
    for title, due in (("later", day(9)), ("late", day(-1)), ("soon", day(1)), ("now", day(0)), ("some day", None)):
        await alice.add(title, **({"due": due} if due else {}))
    for title in ("first", "second", "third"):
        task = await alice.add(title)
        await alice.done("PATCH", f"/tasks/{task['id']}", {"status": "completed"})
    for number in (6, 7):
        await alice.done("DELETE", f"/tasks/{number}")
    assert await alice.titles("today") == ["late", "now"]
    assert await alice.titles("upcoming") == ["soon", "later"]
    assert await alice.titles("all") == ["late", "now", "soon", "later", "some day"]
    assert await alice.titles("done") == ["third"]
    assert await alice.titles("deleted") == ["second", "first"]
    gone = (await alice.view("deleted"))["tasks"][0]
    assert gone["status"] == "deleted"
    assert datetime.fromisoformat(gone["deleted"]) >= datetime.fromisoformat(gone["completed"])
    page = await alice.view("today")
    assert (page["view"], page["time_zone"], page["total"], page["next_cursor"]) == ("today", ZONE, 2, None)
    assert abs(datetime.fromisoformat(page["now"]) - datetime.now(ZoneInfo(ZONE)).replace(tzinfo=None)) < timedelta(
        minutes=2
    )
    assert "days" in page
    assert page["days"] is None


async def test_done_by_day(alice: Person, rows: Rows) -> None:
    for title in "abcde":
        task = await alice.add(title)
        await alice.done("PATCH", f"/tasks/{task['id']}", {"status": "completed"})
    rows("UPDATE tasks SET completed_at = now() - id * interval '10 days'")
    page = await alice.view("done", limit=2)
    assert [one["day"] for one in page["days"]] == [day(ahead) for ahead in range(-27, 1)]
    done = {one["day"]: one["done"] for one in page["days"] if one["done"]}
    assert sum(done.values()) == 2
    titles = [task["title"] for task in page["tasks"]]
    while page["next_cursor"]:
        page = await alice.view("done", limit=2, cursor=page["next_cursor"])
        assert page["days"] is None
        titles += [task["title"] for task in page["tasks"]]
    assert titles == list("abcde"), "the newest completion first"


async def test_filters(alice: Person) -> None:
    await alice.add("buy milk", labels=["shop"], priority="high")
    await alice.add("buy bread", labels=["shop"])
    await alice.add("call mum")
    assert await alice.titles("all", query="buy") == ["buy milk", "buy bread"]
    assert await alice.titles("all", query="") == await alice.titles("all")
    assert await alice.titles("all", label="shop", priority="none") == ["buy bread"]
    assert await alice.titles("all", priority="high") == ["buy milk"]


@pytest.mark.parametrize(
    "asked",
    [
        *("", "?view=", "?view=tomorrow", "?view=all&limit=0", "?view=all&limit=101", "?view=all&limit=x"),
        *("?view=all&priority=urgent", "?view=all&cursor=garbage", f"?view=all&query={'x' * 201}"),
        *(f"?view=all&label={'x' * 41}", "?view=all&query=%00", f"?view=all&cursor={'x' * 3_000}"),
    ],
)
async def test_what_cannot_be_asked(alice: Person, asked: str) -> None:
    assert len(await alice.sentence(400, "GET", f"/tasks{asked}")) < 400


@pytest.mark.parametrize("after", ["-1", "x", "", "1.5", str(2**63)])
async def test_numbers_that_are_none(alice: Person, after: str) -> None:
    assert await alice.sentence(400, "GET", f"/tasks/changes?after={after}")


async def test_what_is_changed_anywhere_is_heard_of(alice: Person, bob: Person) -> None:
    seen = (await alice.view("all"))["last"]
    assert await alice.news() == {"last": seen, "task_ids": [], "more": False}
    await alice.add("here")
    tools = alice.chat.app.state.parts.tools  # pyright: ignore[reportAttributeAccessIssue]
    await tools.change("add_task", {"title": "elsewhere"}, user_id="alice", key="elsewhere")
    await bob.add("nobody's business")
    news = await alice.news(seen)
    assert news["task_ids"] == [1, 2]
    assert (await alice.view("all"))["last"] == news["last"]
    assert await alice.news(news["last"]) == {"last": news["last"], "task_ids": [], "more": False}


async def test_polls_use_up_nothing_else(backend: Backend, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    async with backend(limit_requests_per_minute=5) as chat:
        alice = Person(chat, "alice")
        caplog.clear()
        for _ in range(5):
            await alice.news(0)
        assert "too fast" in await alice.sentence(429, "GET", "/tasks/changes")
        assert await alice.titles("all") == []
        assert not [record for record in caplog.records if record.name.startswith("backend")]
        await Person(chat, "bob").news(0)


async def test_the_zone_is_the_request_s_else_the_last(alice: Person, rows: Rows) -> None:
    await alice.view("all")
    assert rows("SELECT user_id, time_zone FROM profiles") == [{"user_id": "alice", "time_zone": ZONE}]
    other = await alice.ask("GET", "/tasks?view=all", **{"X-Time-Zone": ""})
    assert other.json()["time_zone"] == ZONE
    assert (await alice.ask("GET", "/tasks?view=all", **{"X-Time-Zone": "Asia/Tokyo"})).json()[
        "time_zone"
    ] == "Asia/Tokyo"
    assert rows("SELECT time_zone FROM profiles") == [{"time_zone": "Asia/Tokyo"}]


async def test_a_task_service_that_is_away(backend: Backend, mcp: ServiceProcess) -> None:
    async with backend(mcp_internal_url=f"{mcp.url}/mcp", mcp_resend_seconds=0.1) as chat:
        alice = Person(chat, "alice")
        await alice.add("milk")
        mcp.end()
        for path in READS:
            assert (await alice.sentence(503, "GET", path)).startswith("The task service cannot be reached right now")
        assert await alice.sentence(503, "POST", "/tasks", {"title": "bread"})
        assert await alice.sentence(503, "DELETE", "/tasks/1")
        mcp.start()
        mcp.wait_until_ready()
        assert await alice.titles("all") == ["milk"]
