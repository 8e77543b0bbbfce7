"""What a person changes by hand in their list: once for each key, taken back by its batch, and never another's."""

from typing import Any

import pytest

from tests.backend.conftest import Backend, Rows
from tests.backend.doors.tasks.person import Person

CHANGES: list[tuple[str, str, Any]] = [
    ("POST", "/tasks", {"title": "x"}),
    ("PATCH", "/tasks/1", {"title": "x"}),
    ("PATCH", "/tasks/1", {"status": "completed"}),
    ("DELETE", "/tasks/1", None),
    ("POST", "/tasks/undo", {"batch": "batch"}),
]
STORED = "SELECT user_id, id, title, status, due_on, labels FROM tasks ORDER BY user_id, id"
LOG = "SELECT actor, operation, batch, idempotency_key FROM task_calls ORDER BY id"


@pytest.mark.parametrize(("method", "path", "body"), CHANGES)
class TestStrangers:
    async def test_who_is_nobody_changes_nothing(
        self, alice: Person, rows: Rows, method: str, path: str, body: Any
    ) -> None:
        await alice.add("milk")
        before = rows(STORED)
        assert await alice.sentence(401, method, path, body, Authorization="")
        assert await alice.sentence(401, method, path, body, Authorization="Bearer garbage")
        for origin in ("https://evil.example", "null"):
            assert (await alice.ask(method, path, body, Origin=origin)).status_code == 403
        assert rows(STORED) == before

    async def test_a_page_of_another_site_cannot_use_the_cookie(
        self, alice: Person, rows: Rows, method: str, path: str, body: Any
    ) -> None:
        await alice.add("milk")
        session = await alice.chat.http.post("/session", headers=alice.headers)
        cookie = {"Cookie": session.headers["set-cookie"].partition(";")[0]}
        alice.chat.http.cookies.clear()
        before = rows(STORED)
        for foreign in ({}, {"Sec-Fetch-Site": "cross-site"}, {"Origin": "https://evil.example"}):
            answer = await alice.chat.http.request(method, path, json=body, headers=cookie | foreign)
            assert answer.status_code == 403
        assert rows(STORED) == before
        own = cookie | {"Origin": alice.chat.base_url}
        answer = await alice.chat.http.request(method, path, json=body, headers=own)
        assert answer.status_code in (200, 201, 409), "a batch that is none is a conflict"


async def test_another_person_s_tasks_are_not_there(alice: Person, bob: Person, rows: Rows) -> None:
    added = await alice.done("POST", "/tasks", {"title": "alice's"}, key="same")
    await alice.add("alice's second")
    await bob.done("POST", "/tasks", {"title": "bob's"}, key="same")
    before = rows("SELECT * FROM tasks WHERE user_id = 'alice' ORDER BY id")
    for method, body in (("PATCH", {"title": "mine"}), ("PATCH", {"status": "completed"}), ("DELETE", None)):
        sentence = await bob.sentence(404, method, "/tasks/2", body)
        assert sentence == "There is no task 2: call list_tasks to see the numbers of your tasks."
    assert await bob.sentence(409, "POST", "/tasks/undo", {"batch": added["batch"]})
    changed = await bob.done("PATCH", "/tasks/1", {"priority": "low", "also": [2, 3]})
    assert ([task["title"] for task in changed["tasks"]], changed["not_found"]) == (["bob's"], [2, 3])
    assert rows("SELECT * FROM tasks WHERE user_id = 'alice' ORDER BY id") == before


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
    alice: Person, rows: Rows, method: str, path: str, body: Any
) -> None:
    await alice.add("milk")
    before = rows(STORED), rows(LOG)
    sentence = await alice.sentence(400, method, path, body)
    assert 20 < len(sentence) < 500
    assert (rows(STORED), rows(LOG)) == before


@pytest.mark.parametrize("key", ["", "a b", "x" * 256])
async def test_keys_that_are_none(alice: Person, rows: Rows, key: str) -> None:
    sentence = await alice.sentence(400, "POST", "/tasks", {"title": "x"}, **{"Idempotency-Key": key})
    assert sentence == "An Idempotency-Key has 1 to 255 visible characters of ASCII: send another."
    assert rows(STORED) == []


async def test_bodies_that_are_no_json_or_too_large(alice: Person, rows: Rows) -> None:
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
    assert len(rows(STORED)) == 1


async def test_the_same_key_twice_is_done_once(alice: Person, rows: Rows) -> None:
    steps: list[tuple[str, str, Any]] = [
        ("POST", "/tasks", {"title": "milk"}),
        ("POST", "/tasks", {"title": "water", "due": "2030-01-01", "repeat": "FREQ=DAILY"}),
        ("PATCH", "/tasks/1", {"due": "tomorrow", "labels": ["shop"]}),
        ("PATCH", "/tasks/2", {"status": "completed"}),
        ("DELETE", "/tasks/1?also=99", None),
    ]
    answers: list[dict[str, Any]] = []
    for number, (method, path, body) in enumerate(steps):
        answers.append(await alice.done(method, path, body, key=f"key-{number}"))
        stored = rows(STORED), rows(LOG)
        assert await alice.done(method, path, body, key=f"key-{number}") == answers[-1]
        assert (rows(STORED), rows(LOG)) == stored
    undone = await alice.done("POST", "/tasks/undo", {"batch": answers[-1]["batch"]}, key="undo")
    assert await alice.done("POST", "/tasks/undo", {"batch": answers[-1]["batch"]}, key="undo") == undone
    assert [task["status"] for task in undone["tasks"]] == ["pending"]
    for method, path, body in (("POST", "/tasks", {"title": "bread"}), ("DELETE", "/tasks/1", None)):
        assert "idempotency key" in await alice.sentence(409, method, path, body, key="key-0")
    told = rows(LOG)
    assert {row["actor"] for row in told} == {"person"}
    assert all(row["batch"] == row["idempotency_key"] != "key-0" for row in told)


async def test_a_task_is_changed(alice: Person) -> None:
    full: dict[str, Any] = {"due": "2030-11-27 15:00", "priority": "high", "labels": ["home", "plants"]}
    await alice.add("water", description="all", repeat="FREQ=DAILY", **full)

    async def changed(**wanted: Any) -> dict[str, Any]:
        (task,) = (await alice.done("PATCH", "/tasks/1", wanted))["tasks"]
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
    assert (await alice.view("all"))["tasks"][0]["title"] == "Done"


async def test_a_repeating_task_leaves_its_next(alice: Person) -> None:
    rule = {"due": "2030-11-27 15:00", "repeat": "FREQ=DAILY;COUNT=3", "labels": ["home"]}
    await alice.add("water", description="all", **rule)
    await alice.add("milk")
    done = await alice.done("PATCH", "/tasks/1", {"status": "completed", "also": [2]})
    ticked, milk, following = done["tasks"]
    assert [(task["id"], task["status"]) for task in done["tasks"]] == [
        (1, "completed"),
        (2, "completed"),
        (3, "pending"),
    ]
    assert ticked["completed"]
    assert milk["title"] == "milk"
    assert following == (await alice.view("all"))["tasks"][0]
    assert (following["due"], following["time"], following["labels"]) == ("2030-11-28", "15:00", ["home"])
    assert following["repeat"] != ticked["repeat"], "one of three is gone"
    undone = await alice.done("POST", "/tasks/undo", {"batch": done["batch"]})
    assert [(task["id"], task["status"]) for task in undone["tasks"]] == [(1, "pending"), (2, "pending")]
    assert await alice.titles("all") == ["water", "milk"]


async def test_a_hundred_tasks_at_once_and_back(alice: Person) -> None:
    tools = alice.chat.app.state.parts.tools  # pyright: ignore[reportAttributeAccessIssue]
    for half in range(2):
        titles = [f"{half} {number}" for number in range(50)]
        await tools.change("add_task", {"title": titles[0], "also": titles[1:]}, user_id="alice", key=f"half {half}")
    others = [*range(2, 101)]
    moved = await alice.done("PATCH", "/tasks/1", {"due": "2030-01-01", "also": others})
    assert [task["id"] for task in moved["tasks"]] == [1, *others]
    gone = await alice.done("DELETE", f"/tasks/1?also={','.join(map(str, others))}")
    assert {(task["status"], task["due"], task["title"] != "") for task in gone["tasks"]} == {
        ("deleted", "2030-01-01", True)
    }
    assert (await alice.view("all"))["total"] == 0
    back = await alice.done("POST", "/tasks/undo", {"batch": gone["batch"]})
    assert len(back["tasks"]) == 100
    assert (await alice.view("all", limit=1))["total"] == 100


async def test_what_was_changed_since_is_not_taken_back(alice: Person) -> None:
    await alice.add("milk")
    first = await alice.done("PATCH", "/tasks/1", {"title": "bread"})
    await alice.done("PATCH", "/tasks/1", {"title": "eggs"})
    sentence = await alice.sentence(409, "POST", "/tasks/undo", {"batch": first["batch"]})
    assert sentence.startswith("Nothing was taken back, because it was changed since: task 1 (eggs).")
    assert await alice.titles("all") == ["eggs"]
    assert "nothing to take back" in await alice.sentence(409, "POST", "/tasks/undo", {"batch": "never"})


async def test_an_added_task_is_taken_back(alice: Person) -> None:
    added = await alice.done("POST", "/tasks", {"title": "milk"})
    (task,) = (await alice.done("POST", "/tasks/undo", {"batch": added["batch"]}))["tasks"]
    assert (task["id"], task["status"]) == (1, "deleted")
    assert await alice.titles("all") == []


async def test_deleted_tasks_come_back(alice: Person) -> None:
    for title in ("milk", "bread"):
        await alice.add(title)
    await alice.done("DELETE", "/tasks/1?also=2")
    back = await alice.done("PATCH", "/tasks/1", {"undo": True, "also": [2]})
    assert [(task["id"], task["status"]) for task in back["tasks"]] == [(1, "pending"), (2, "pending")]
    assert await alice.titles("all") == ["milk", "bread"]


async def test_limits(backend: Backend) -> None:
    async with backend(limit_requests_per_minute=3) as chat:
        alice = Person(chat, "alice")
        for title in "abc":
            await alice.add(title)
        assert "too fast" in await alice.sentence(429, "POST", "/tasks", {"title": "d"})
        assert (await Person(chat, "bob").add("e"))["id"] == 1


async def test_one_line_for_each_change_and_no_text_in_it(alice: Person, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    await alice.add("a secret title")
    await alice.view("all", query="secret")
    await alice.sentence(404, "DELETE", "/tasks/9")
    lines = [record for record in caplog.records if record.name == "backend.doors.tasks.reports"]
    assert [record.getMessage() for record in lines] == ["tasks changed by hand"] * 2
    assert not any("secret" in str(vars(line)) for line in lines)
    metrics = (await alice.chat.http.get("/metrics")).text
    for labels in (
        'method="POST",outcome="ok",route="/tasks"',
        'method="DELETE",outcome="refused",route="/tasks/{id}"',
        'method="GET",outcome="ok",route="/tasks"',
    ):
        assert f"todo_list_seconds_count{{{labels}}}" in metrics


async def test_where_nobody_signs_calls_all_but_undo_is_served(backend: Backend) -> None:
    async with backend(auth_mode="none") as chat:
        local = Person(chat, "nobody looks")
        done = await local.done("POST", "/tasks", {"title": "milk"})
        assert (await local.view("all"))["tasks"] == done["tasks"]
        assert (await local.news(0))["task_ids"] == [1]
        await local.done("POST", "/tasks/undo", {"batch": done["batch"]})
