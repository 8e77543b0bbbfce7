"""The page's list of tasks: views, changes, undo, and what is rejected."""

import asyncio
import itertools
import os
import random
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from datetime import date, datetime, timedelta
from typing import Any
from urllib.parse import urlencode

import pytest

from tests.chatkit_client import ChatKit
from tests.scripted_model import ScriptedModel
from tests.support.backends import local_backend
from tests.support.script import add_task, says
from tests.support.stack import NOW, Services, Stack
from tests.support.stored import Stored
from tests.support.task_list import ZONE, TaskListClient
from tests.support.users import User

pytestmark = pytest.mark.long

NewClient = Callable[..., Awaitable[TaskListClient]]

_numbers = itertools.count(1)


@pytest.fixture
async def new_client(stack: Stack) -> AsyncIterator[NewClient]:
    """Creates clients of new users, at the stack or at another backend."""
    async with AsyncExitStack() as clients:

        async def make(url: str = stack.url) -> TaskListClient:
            chat = await clients.enter_async_context(ChatKit(url))
            return TaskListClient(chat, f"person-{os.getpid()}-{next(_numbers)}")

        yield make


@pytest.fixture
async def alice(new_client: NewClient) -> TaskListClient:
    return await new_client()


@pytest.fixture
async def bob(new_client: NewClient) -> TaskListClient:
    return await new_client()


VIEWS = ("today", "upcoming", "all", "done", "deleted")
READS = [*(f"/tasks?view={view}" for view in VIEWS), "/tasks/changes", "/tasks/changes?after=0", "/tasks/1"]


def day(ahead: int) -> str:
    return (date.fromisoformat(NOW[:10]) + timedelta(days=ahead)).isoformat()


@pytest.mark.parametrize("path", [*READS, "/tasks/preview?text=x"])
async def test_who_is_nobody_sees_nothing(alice: TaskListClient, path: str) -> None:
    for headers in ({"Authorization": ""}, {"Authorization": "Bearer garbage"}):
        assert await alice.get_error(401, "GET", path, **headers)
    assert (await alice.request("GET", path, Origin="https://evil.example")).status_code == 403
    assert (await alice.request("GET", path, Host="evil.example")).status_code == 421


async def test_a_person_sees_their_own_only(alice: TaskListClient, bob: TaskListClient) -> None:
    await alice.add("alice's", due="today")
    assert await alice.titles("all") == ["alice's"]
    for view in VIEWS:
        seen = await bob.get_view(view)
        assert (seen["tasks"], seen["total"], seen["last"]) == ([], 0, 0)
    assert await bob.get_changes(0) == {"last": 0, "task_ids": [], "more": False}


async def test_a_task_as_it_is_shown(alice: TaskListClient) -> None:
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
    assert (await alice.get_view("all"))["tasks"] == [task, plain]


async def test_one_task_whatever_its_state(alice: TaskListClient, bob: TaskListClient) -> None:
    task = await alice.add("water", due="2030-11-27 15:00", labels=["home"])
    path = f"/tasks/{task['id']}"
    assert (await alice.request("GET", path)).json() == task
    (done,) = (await alice.change("PATCH", path, {"status": "completed"}))["tasks"]
    assert (await alice.request("GET", path)).json() == done
    (gone,) = (await alice.change("DELETE", path))["tasks"]
    seen = (await alice.request("GET", path)).json()
    assert seen == gone | {"deleted": seen["deleted"]}
    assert seen["deleted"] is not None
    for person, other in ((alice, "/tasks/2"), (bob, path)):
        assert await person.get_error(404, "GET", other)
    for odd in ("0", "-1", "x", "1.5", str(2**63)):
        assert await alice.get_error(400, "GET", f"/tasks/{odd}")


async def test_the_views(alice: TaskListClient) -> None:
    for title, due in (("later", day(9)), ("late", day(-1)), ("soon", day(1)), ("now", day(0)), ("some day", None)):
        await alice.add(title, **({"due": due} if due else {}))
    for title in ("first", "second", "third"):
        task = await alice.add(title)
        await alice.change("PATCH", f"/tasks/{task['id']}", {"status": "completed"})
    for number in (6, 7):
        await alice.change("DELETE", f"/tasks/{number}")
    assert await alice.titles("today") == ["late", "now"]
    assert await alice.titles("upcoming") == ["soon", "later"]
    assert await alice.titles("all") == ["late", "now", "soon", "later", "some day"]
    assert await alice.titles("done") == ["third"]
    assert await alice.titles("deleted") == ["second", "first"]
    gone = (await alice.get_view("deleted"))["tasks"][0]
    assert gone["status"] == "deleted"
    assert datetime.fromisoformat(gone["deleted"]) >= datetime.fromisoformat(gone["completed"])
    page = await alice.get_view("today")
    assert (page["view"], page["time_zone"], page["total"], page["next_cursor"]) == ("today", ZONE, 2, None)
    assert page["now"].startswith(NOW[:10])
    assert "days" in page
    assert page["days"] is None


async def test_done_by_day(alice: TaskListClient, stored: Stored) -> None:
    for title in "abcde":
        task = await alice.add(title)
        await alice.change("PATCH", f"/tasks/{task['id']}", {"status": "completed"})
    stored.spread_completions(alice.name, days=10)
    page = await alice.get_view("done", limit=2)
    assert [one["day"] for one in page["days"]] == [day(ahead) for ahead in range(-27, 1)]
    done = {one["day"]: one["done"] for one in page["days"] if one["done"]}
    assert sum(done.values()) == 2
    titles = [task["title"] for task in page["tasks"]]
    while page["next_cursor"]:
        page = await alice.get_view("done", limit=2, cursor=page["next_cursor"])
        assert page["days"] is None
        titles += [task["title"] for task in page["tasks"]]
    assert titles == list("abcde"), "the newest completion first"


async def test_filters(alice: TaskListClient) -> None:
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
async def test_what_cannot_be_asked(alice: TaskListClient, asked: str) -> None:
    assert len(await alice.get_error(400, "GET", f"/tasks{asked}")) < 400


@pytest.mark.parametrize("after", ["-1", "x", "", "1.5", str(2**63)])
async def test_numbers_that_are_none(alice: TaskListClient, after: str) -> None:
    assert await alice.get_error(400, "GET", f"/tasks/changes?after={after}")


async def test_what_is_changed_anywhere_is_heard_of(
    alice: TaskListClient, bob: TaskListClient, stack: Stack, model: ScriptedModel
) -> None:
    seen = (await alice.get_view("all"))["last"]
    assert await alice.get_changes() == {"last": seen, "task_ids": [], "more": False}
    await alice.add("here")
    await model.script(add_task("elsewhere"), says("Added."))
    async with User(stack, alice.name) as user:
        await user.chatkit.say("add it")
    await bob.add("nobody's business")
    news = await alice.get_changes(seen)
    assert news["task_ids"] == [1, 2]
    assert (await alice.get_view("all"))["last"] == news["last"]
    assert await alice.get_changes(news["last"]) == {"last": news["last"], "task_ids": [], "more": False}


async def test_time_zone_of_the_request_or_the_last(alice: TaskListClient) -> None:
    await alice.get_view("all")
    for zone, expected in (("", ZONE), ("Asia/Tokyo", "Asia/Tokyo"), ("", "Asia/Tokyo")):
        answer = await alice.request("GET", "/tasks?view=all", **{"X-Time-Zone": zone})
        assert answer.json()["time_zone"] == expected


async def test_task_server_is_away(services: Services, new_client: NewClient) -> None:
    away = {"MCP_INTERNAL_URL": "http://127.0.0.1:9/mcp", "MCP_RESEND_SECONDS": "0.1"}
    async with local_backend(services, **away) as backend:
        alice = await new_client(backend.url)
        for path in READS:
            assert await alice.get_error(503, "GET", path)
        assert await alice.get_error(503, "POST", "/tasks", {"title": "bread"})
        assert await alice.get_error(503, "DELETE", "/tasks/1")


CHANGES: list[tuple[str, str, Any]] = [
    ("POST", "/tasks", {"title": "x"}),
    ("PATCH", "/tasks/1", {"title": "x"}),
    ("PATCH", "/tasks/1", {"status": "completed"}),
    ("DELETE", "/tasks/1", None),
    ("POST", "/tasks/undo", {"batch": "batch"}),
]


@pytest.mark.parametrize(("method", "path", "body"), CHANGES)
class TestStrangers:
    async def test_who_is_nobody_changes_nothing(
        self, alice: TaskListClient, stored: Stored, method: str, path: str, body: Any
    ) -> None:
        await alice.add("milk")
        before = stored.tasks(alice.name)
        assert await alice.get_error(401, method, path, body, Authorization="")
        assert await alice.get_error(401, method, path, body, Authorization="Bearer garbage")
        for origin in ("https://evil.example", "null"):
            assert (await alice.request(method, path, body, Origin=origin)).status_code == 403
        assert stored.tasks(alice.name) == before

    async def test_a_page_of_another_site_cannot_use_the_cookie(
        self, alice: TaskListClient, stored: Stored, method: str, path: str, body: Any
    ) -> None:
        await alice.add("milk")
        session = await alice.chat.http.post("/session", headers=alice.headers)
        cookie = {"Cookie": session.headers["set-cookie"].partition(";")[0]}
        alice.chat.http.cookies.clear()
        before = stored.tasks(alice.name)
        for foreign in ({}, {"Sec-Fetch-Site": "cross-site"}, {"Origin": "https://evil.example"}):
            answer = await alice.chat.http.request(method, path, json=body, headers=cookie | foreign)
            assert answer.status_code == 403
        assert stored.tasks(alice.name) == before
        own = cookie | {"Origin": alice.chat.base_url}
        answer = await alice.chat.http.request(method, path, json=body, headers=own)
        assert answer.status_code in (200, 201, 409), "a batch that is none is a conflict"


async def test_another_person_s_tasks_are_not_there(alice: TaskListClient, bob: TaskListClient, stored: Stored) -> None:
    added = await alice.change("POST", "/tasks", {"title": "alice's"}, key="same")
    await alice.add("alice's second")
    await bob.change("POST", "/tasks", {"title": "bob's"}, key="same")
    before = stored.tasks(alice.name)
    for method, body in (("PATCH", {"title": "mine"}), ("PATCH", {"status": "completed"}), ("DELETE", None)):
        assert await bob.get_error(404, method, "/tasks/2", body)
    assert await bob.get_error(409, "POST", "/tasks/undo", {"batch": added["batch"]})
    changed = await bob.change("PATCH", "/tasks/1", {"priority": "low", "also": [2, 3]})
    assert ([task["title"] for task in changed["tasks"]], changed["not_found"]) == (["bob's"], [2, 3])
    assert stored.tasks(alice.name) == before


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        *[("POST", "/tasks", body) for body in (None, [], "x", {}, {"title": ""}, {"title": 5}, {"title": "a\nb"})],
        *[("POST", "/tasks", {"title": "x", **more}) for more in ({"id": 1}, {"user_id": "bob"}, {"also": ["y"]})],
        *[("POST", "/tasks", {"title": "x", "due": due}) for due in ("whenever", "2026-02-30", "Mon 2026-11-24", 5)],
        *[("POST", "/tasks", {"title": "x", **more}) for more in ({"labels": "home"}, {"repeat": "FREQ=DAILY"})],
        *[("PATCH", "/tasks/1", body) for body in ({}, {"status": "deleted"}, {"undo": False}, {"priority": "urgent"})],
        ("PATCH", "/tasks/1", {"undo": True, "title": "x"}),
        *[("PATCH", "/tasks/1", {"status": "completed", "also": also}) for also in ([0], ["x"], [*range(2, 102)])],
        ("PATCH", "/tasks/1", {"title": "x", "also": [2]}),
        *[("PATCH", f"/tasks/{odd}", {"title": "x"}) for odd in ("0", "-1", "x", str(2**63))],
        *[("DELETE", f"/tasks/{odd}", None) for odd in ("0", "x", "1?also=x", "1?also=1,,2", "1?also=-1")],
        ("DELETE", f"/tasks/1?also={','.join(map(str, range(2, 102)))}", None),
        *[("POST", "/tasks/undo", body) for body in ({}, {"batch": ""}, {"batch": 5}, {"batch": "x" * 201})],
        ("POST", "/tasks/undo", {"batch": "a b"}),
    ],
)
async def test_what_cannot_be_done_gets_a_sentence(
    alice: TaskListClient, stored: Stored, method: str, path: str, body: Any
) -> None:
    await alice.add("milk")
    before = stored.tasks(alice.name), stored.task_calls(alice.name)
    sentence = await alice.get_error(400, method, path, body)
    assert 20 < len(sentence) < 500
    assert (stored.tasks(alice.name), stored.task_calls(alice.name)) == before


@pytest.mark.parametrize("key", ["", "a b", "x" * 256])
async def test_keys_that_are_none(alice: TaskListClient, stored: Stored, key: str) -> None:
    assert await alice.get_error(400, "POST", "/tasks", {"title": "x"}, **{"Idempotency-Key": key})
    assert stored.tasks(alice.name) == []


async def test_bodies_that_are_no_json_or_too_large(alice: TaskListClient, stored: Stored) -> None:
    await alice.add("milk")
    http, headers = alice.chat.http, alice.headers
    for method, path in (("POST", "/tasks"), ("PATCH", "/tasks/1")):
        for content, kind, status in (
            (b"title=x", "application/x-www-form-urlencoded", 415),
            (b'{"title": "x"', "application/json", 400),
            (b'{"title": "\\u0000"}', "application/json", 400),
            (b'{"title": "\\ud800"}', "application/json", 400),
            (b"[" * 5_000, "application/json", 400),
            (b'{"title": "' + b"x" * 2**21 + b'"}', "application/json", 413),
        ):
            given = headers | {"Content-Type": kind}
            answer = await http.request(method, path, content=content, headers=given)
            assert (answer.status_code, set(answer.json())) == (status, {"error"}), (content[:20], answer.text)
    assert len(stored.tasks(alice.name)) == 1


async def test_the_same_key_twice_is_done_once(alice: TaskListClient, stored: Stored) -> None:
    steps: list[tuple[str, str, Any]] = [
        ("POST", "/tasks", {"title": "milk"}),
        ("POST", "/tasks", {"title": "water", "due": "2030-01-01", "repeat": "FREQ=DAILY"}),
        ("PATCH", "/tasks/1", {"due": "tomorrow", "labels": ["shop"]}),
        ("PATCH", "/tasks/2", {"status": "completed"}),
        ("DELETE", "/tasks/1?also=99", None),
    ]
    answers: list[dict[str, Any]] = []
    for number, (method, path, body) in enumerate(steps):
        answers.append(await alice.change(method, path, body, key=f"key-{number}"))
        before = stored.tasks(alice.name), stored.task_calls(alice.name)
        assert await alice.change(method, path, body, key=f"key-{number}") == answers[-1]
        assert (stored.tasks(alice.name), stored.task_calls(alice.name)) == before
    undone = await alice.change("POST", "/tasks/undo", {"batch": answers[-1]["batch"]}, key="undo")
    assert await alice.change("POST", "/tasks/undo", {"batch": answers[-1]["batch"]}, key="undo") == undone
    assert [task["status"] for task in undone["tasks"]] == ["pending"]
    for method, path, body in (("POST", "/tasks", {"title": "bread"}), ("DELETE", "/tasks/1", None)):
        assert await alice.get_error(409, method, path, body, key="key-0")
    assert {actor for _, actor in stored.task_calls(alice.name)} == {"person"}


async def test_a_task_is_changed(alice: TaskListClient) -> None:
    full: dict[str, Any] = {"due": "2030-11-27 15:00", "priority": "high", "labels": ["home", "plants"]}
    await alice.add("water", description="all", repeat="FREQ=DAILY", **full)

    async def changed(**wanted: Any) -> dict[str, Any]:
        (task,) = (await alice.change("PATCH", "/tasks/1", wanted))["tasks"]
        return task

    assert (await changed(title="Water"))["title"] == "Water"
    assert (await changed(description=None))["description"] == ""
    assert (await changed(add_labels=["out"], remove_labels=["home"]))["labels"] == ["out", "plants"]
    assert (await changed(labels=["one"]))["labels"] == ["one"]
    assert (await changed(labels=[]))["labels"] == []
    assert (await changed(labels=[], add_labels=["two"]))["labels"] == ["two"]
    assert (await changed(priority=None))["priority"] is None
    assert (await changed(due="+1d"))["due"] == "2030-11-28"
    assert (await changed(due="2030-12-01 all day"))["time"] is None
    assert (await changed(repeat=""))["repeat"] is None
    assert (await changed(due=""))["due"] is None
    assert (await changed(due="2030-12-24"))["due"] == "2030-12-24"
    assert (await changed(due=None))["due"] is None
    assert (await changed(status="completed", title="Done"))["status"] == "completed"
    assert (await changed(status="pending"))["completed"] is None
    assert (await alice.get_view("all"))["tasks"][0]["title"] == "Done"


async def test_a_repeating_task_leaves_its_next(alice: TaskListClient) -> None:
    rule = {"due": "2030-11-27 15:00", "repeat": "FREQ=DAILY;COUNT=3", "labels": ["home"]}
    await alice.add("water", description="all", **rule)
    await alice.add("milk")
    done = await alice.change("PATCH", "/tasks/1", {"status": "completed", "also": [2]})
    ticked, milk, following = done["tasks"]
    assert [(task["id"], task["status"]) for task in done["tasks"]] == [
        (1, "completed"),
        (2, "completed"),
        (3, "pending"),
    ]
    assert ticked["completed"]
    assert milk["title"] == "milk"
    assert following == (await alice.get_view("all"))["tasks"][0]
    assert (following["due"], following["time"], following["labels"]) == ("2030-11-28", "15:00", ["home"])
    assert following["repeat"] != ticked["repeat"], "one of three is gone"
    undone = await alice.change("POST", "/tasks/undo", {"batch": done["batch"]})
    assert [(task["id"], task["status"]) for task in undone["tasks"]] == [(1, "pending"), (2, "pending")]
    assert await alice.titles("all") == ["water", "milk"]


async def test_a_hundred_tasks_at_once_and_back(alice: TaskListClient) -> None:
    await asyncio.gather(*(alice.add(f"task {number}") for number in range(100)))
    others = [*range(2, 101)]
    moved = await alice.change("PATCH", "/tasks/1", {"due": "2030-01-01", "also": others})
    assert [task["id"] for task in moved["tasks"]] == [1, *others]
    gone = await alice.change("DELETE", f"/tasks/1?also={','.join(map(str, others))}")
    assert {(task["status"], task["due"], task["title"] != "") for task in gone["tasks"]} == {
        ("deleted", "2030-01-01", True)
    }
    assert (await alice.get_view("all"))["total"] == 0
    back = await alice.change("POST", "/tasks/undo", {"batch": gone["batch"]})
    assert len(back["tasks"]) == 100
    assert (await alice.get_view("all", limit=1))["total"] == 100


async def test_what_was_changed_since_is_not_taken_back(alice: TaskListClient) -> None:
    await alice.add("milk")
    first = await alice.change("PATCH", "/tasks/1", {"title": "bread"})
    await alice.change("PATCH", "/tasks/1", {"title": "eggs"})
    sentence = await alice.get_error(409, "POST", "/tasks/undo", {"batch": first["batch"]})
    assert "eggs" in sentence
    assert await alice.titles("all") == ["eggs"]
    assert await alice.get_error(409, "POST", "/tasks/undo", {"batch": "never"})


async def test_an_added_task_is_taken_back(alice: TaskListClient) -> None:
    added = await alice.change("POST", "/tasks", {"title": "milk"})
    (task,) = (await alice.change("POST", "/tasks/undo", {"batch": added["batch"]}))["tasks"]
    assert (task["id"], task["status"]) == (1, "deleted")
    assert await alice.titles("all") == []


async def test_deleted_tasks_come_back(alice: TaskListClient) -> None:
    for title in ("milk", "bread"):
        await alice.add(title)
    await alice.change("DELETE", "/tasks/1?also=2")
    back = await alice.change("PATCH", "/tasks/1", {"undo": True, "also": [2]})
    assert [(task["id"], task["status"]) for task in back["tasks"]] == [(1, "pending"), (2, "pending")]
    assert await alice.titles("all") == ["milk", "bread"]


async def test_requests_per_minute(services: Services, new_client: NewClient) -> None:
    async with local_backend(services, LIMIT_REQUESTS_PER_MINUTE="3") as backend:
        alice, bob = await new_client(backend.url), await new_client(backend.url)
        for title in "abc":
            await alice.add(title)
        assert await alice.get_error(429, "POST", "/tasks", {"title": "d"})
        assert (await bob.add("e"))["id"] == 1


MANY = 200
FIELDS = [
    *("title", "description", "due", "priority", "labels", "add_labels", "remove_labels", "repeat", "status", "also"),
    *("batch", "user_id", "undo", "id"),
]
ODD: list[Any] = [
    *(None, True, 0, -1, 2**63, 1e308, [], {}, [[]], {"a": {}}, "", " ", "\x00", "x" * 5_000, "\u202e", "__proto__"),
    *("milk", "tomorrow", "none", "*", ["*"], ["x"] * 11, [1, 2], [0], "[1", "next", "+1d", "completed", "pending"),
    *("FREQ=DAILY", "high", "'; DROP TABLE tasks; --", "9999-12-31", "2026-02-30T25:61Z"),
]
PATHS = ["/tasks", "/tasks/1", "/tasks/2", "/tasks/0", "/tasks/x", "/tasks/undo", "/tasks/changes", "/tasks/9e9"]
QUERIES = [
    "",
    "?also=1,2",
    "?also=x",
    "?view=all",
    "?view=done&limit=3",
    "?after=-1",
    "?view=all&cursor=e30",
    "?after=1",
]


async def test_random_requests(alice: TaskListClient, bob: TaskListClient, stored: Stored) -> None:
    seed = secrets.randbelow(10**6)
    chance = random.Random(seed)
    await bob.add("bob's", due="tomorrow", labels=["home"])
    before = stored.tasks(bob.name)
    statuses: set[int] = set()
    for number in range(MANY):
        method, path = chance.choice(["GET", "POST", "PATCH", "DELETE"]), chance.choice(PATHS) + chance.choice(QUERIES)
        body = {name: chance.choice(ODD) for name in chance.sample(FIELDS, chance.randint(0, 3))}
        key = chance.choice([None, "a", "b", secrets.token_hex(4)])
        answer = await alice.request(method, path, None if method in ("GET", "DELETE") else body, key=key)
        place = f"seed {seed}, request {number}: {method} {path} {body}"[:600]
        assert answer.status_code < 500, f"{answer.status_code} {answer.text} at {place}"
        for secret in ("postgresql", "Traceback", "psycopg", "bob's"):
            assert secret not in answer.text, place
        statuses.add(answer.status_code)
    assert statuses >= {200, 400, 404}
    assert stored.tasks(bob.name) == before
    assert await bob.titles("upcoming") == ["bob's"]


async def test_a_text_becomes_a_task(alice: TaskListClient) -> None:
    written = "2026-11-23T10:40"
    text = "call mum every friday at 3pm #family !high"
    preview = (await alice.request("GET", f"/tasks/preview?{urlencode({'text': text, 'written': written})}")).json()
    spans = [(span["kind"], text[span["start"] : span["end"]]) for span in preview.pop("spans")]
    assert spans == [("repeat", "every friday"), ("time", "at 3pm"), ("label", "#family"), ("priority", "!high")]
    fields = {"title": "call mum", "due": "2026-11-27", "time": "15:00", "repeat": "FREQ=WEEKLY;BYDAY=FR"}
    assert preview == fields | {"priority": "high", "labels": ["family"]}
    added = await alice.change("POST", "/tasks", {"text": text, "written": written, "default_due": "2026-12-24"})
    assert added["tasks"][0].items() >= preview.items()
    assert added["not_understood"] == []


async def test_a_text_without_a_date(alice: TaskListClient) -> None:
    added = await alice.change("POST", "/tasks", {"text": "dentist 12/05 #health", "default_due": "2030-11-27"})
    (task,) = added["tasks"]
    assert (task["title"], task["due"], task["labels"]) == ("dentist 12/05", "2030-11-27", ["health"])
    assert added["not_understood"] == ["12/05"]
    added = await alice.change("POST", "/tasks", {"text": "see the day after tomorrow !low", "dates": False})
    (task,) = added["tasks"]
    assert (task["title"], task["due"], task["priority"]) == ("see the day after tomorrow", None, "low")


async def test_a_text_that_is_a_date(alice: TaskListClient) -> None:
    async def preview(text: str) -> tuple[str, str | None, str | None]:
        asked = urlencode({"text": text, "mode": "date", "written": "2026-11-23T10:40"})
        found = (await alice.request("GET", f"/tasks/preview?{asked}")).json()
        return found["title"], found["due"], found["time"]

    assert await preview("friday at 3pm") == ("", "2026-11-27", "15:00")
    assert await preview("friday or saturday") == ("friday or saturday", None, None)


async def test_a_text_is_read_by_the_users_clock(alice: TaskListClient) -> None:
    shown = (await alice.get_view("all"))["now"]
    preview = (await alice.request("GET", "/tasks/preview?text=call+mum+in+1+minute")).json()
    now, then = (datetime.fromisoformat(moment) for moment in (shown, f"{preview['due']}T{preview['time']}"))
    assert timedelta(0) <= then - now <= timedelta(minutes=2)


async def test_order_of_day_and_month_is_a_setting(services: Services, new_client: NewClient) -> None:
    async with local_backend(services, DATE_ORDER="day-first") as backend:
        person = await new_client(backend.url)
        preview = (await person.request("GET", "/tasks/preview?text=dentist+12/05/2030")).json()
    assert (preview["title"], preview["due"]) == ("dentist", "2030-05-12")


@pytest.mark.parametrize(
    "body",
    [
        *({"text": text} for text in ("", 5, None, "x" * 1001)),
        *({"text": "x", **more} for more in ({"title": "y"}, {"dates": "maybe"}, {"written": "now"}, {"due": "today"})),
    ],
)
async def test_a_text_that_is_rejected(alice: TaskListClient, body: dict[str, Any]) -> None:
    assert await alice.get_error(400, "POST", "/tasks", body)
    assert await alice.titles("all") == []
