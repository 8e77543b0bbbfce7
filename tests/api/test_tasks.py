"""The page's list of tasks: views, changes, undo, and what is rejected."""

from datetime import date, datetime, timedelta
from typing import Any
from urllib.parse import urlencode

import pytest

from tests.scripted_model import ScriptedModel
from tests.support.backends import user_at
from tests.support.fixtures import NewUser
from tests.support.script import add_task, says
from tests.support.stack import NOW, Services
from tests.support.stored import Stored
from tests.support.task_list import ZONE, TaskListClient


@pytest.fixture
def alice(new_user: NewUser) -> TaskListClient:
    return TaskListClient(new_user())


@pytest.fixture
def bob(new_user: NewUser) -> TaskListClient:
    return TaskListClient(new_user())


READ = {"snoozed_until": None}
"""What a task has when it is read, besides what the response to a change has."""
VIEWS = ("today", "upcoming", "all", "done", "deleted")
READS = [
    *(f"/tasks?view={view}" for view in VIEWS),
    *("/tasks/changes", "/tasks/changes?after=0", "/tasks/1", "/tasks/counts", "/tasks/batches"),
]


def day(ahead: int) -> str:
    return (date.fromisoformat(NOW[:10]) + timedelta(days=ahead)).isoformat()


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
    shown = {"title": "water", "description": "the plants", **details, "due": "2030-11-27", "time": "15:00"}
    assert task == task | shown | {"id": 1, "status": "pending", "completed": None, "deleted": None}
    plain = await alice.add("milk")
    assert [plain[name] for name in ("due", "time", "priority", "labels", "repeat", "description")] == [
        *(None, None, None, [], None, "")
    ]
    assert (await alice.get_view("all"))["tasks"] == [task | READ, plain | READ]


async def test_one_task_whatever_its_state(alice: TaskListClient, bob: TaskListClient) -> None:
    task = await alice.add("water", due="2030-11-27 15:00", labels=["home"])
    path = f"/tasks/{task['id']}"
    assert (await alice.request("GET", path)).json() == task | READ
    (done,) = (await alice.change("PATCH", path, {"status": "completed"}))["tasks"]
    assert (await alice.request("GET", path)).json() == done | READ
    (gone,) = (await alice.change("DELETE", path))["tasks"]
    seen = (await alice.request("GET", path)).json()
    assert seen == gone | READ | {"deleted": seen["deleted"]}
    assert seen["deleted"] is not None
    for user, other in ((alice, "/tasks/2"), (bob, path)):
        assert await user.get_error(404, "GET", other)
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


async def test_sections_sorts_and_offsets(alice: TaskListClient) -> None:
    for title, due, priority in (("b", day(0), "low"), ("a", day(-1), None), ("c", day(0), "high"), ("d", None, None)):
        await alice.add(title, due=due, priority=priority)
    page = await alice.get_view("all", offset=1, limit=2)
    assert [task["title"] for task in page["tasks"]] == ["c", "b"]
    sections = {section["key"]: section["count"] for section in page["sections"]}
    assert (sections, page["total"]) == ({"overdue": 1, "today": 2, "undated": 1}, 4)
    rest = await alice.get_view("all", limit=2, cursor=page["next_cursor"])
    assert ([task["title"] for task in rest["tasks"]], rest["next_cursor"]) == (["d"], None)
    orders = {sort: "".join(await alice.titles("all", sort=sort)) for sort in ("date", "priority", "title", "added")}
    assert orders == {"date": "acbd", "priority": "cbad", "title": "abcd", "added": "dcab"}
    assert (await alice.get_view("all", sort="title"))["sections"] == [{"key": "all", "count": 4}]


async def test_counts_of_views(alice: TaskListClient, bob: TaskListClient) -> None:
    await bob.add("bob's", labels=["work"])
    for title, due in (("late", day(-1)), ("now", day(0)), ("soon", day(1)), ("some day", None)):
        await alice.add(title, due=due, labels=["home"] if due else [])
    await alice.change("PATCH", "/tasks/4", {"status": "completed"})
    await alice.change("DELETE", "/tasks/3")
    counts = {"today": 2, "overdue": 1, "upcoming": 0, "all": 2, "done": 1, "deleted": 1}
    assert (await alice.request("GET", "/tasks/counts")).json() == counts | {"labels": [{"label": "home", "count": 2}]}


async def test_what_an_answer_changed_is_undone_and_made_again(alice: TaskListClient, model: ScriptedModel) -> None:
    await model.script(add_task("milk"), says("Fine."))
    await alice.user.chatkit.say("add milk")
    await alice.change("PATCH", "/tasks/1", {"status": "completed"})

    async def list_batches() -> list[dict[str, Any]]:
        return (await alice.request("GET", "/tasks/batches?limit=3")).json()["batches"]

    by_hand, answer = await list_batches()
    assert [one["actor"] for one in (by_hand, answer)] == ["person", "assistant"]
    expected = {"kind": "change", "undoes": None, "undone": False, "titles": ["milk"], "count": 1}
    assert answer == answer | expected
    for one in (by_hand, answer):
        await alice.change("POST", "/tasks/undo", {"batch": one["batch"]})
    assert await alice.titles("all") == []
    undo_of_answer, undo_by_hand, _ = await list_batches()
    assert (undo_of_answer["kind"], undo_of_answer["undoes"]) == ("undo", answer["batch"])
    for one in (undo_of_answer, undo_by_hand):
        (task,) = (await alice.change("POST", "/tasks/undo", {"batch": one["batch"]}))["tasks"]
    assert (task["title"], task["status"]) == ("milk", "completed")
    assert [one["kind"] for one in await list_batches()] == ["redo", "redo", "undo"]
    assert await alice.get_error(409, "POST", "/tasks/undo", {"batch": undo_by_hand["batch"]})


async def test_all_overdue_tasks_are_moved_to_today(alice: TaskListClient, bob: TaskListClient) -> None:
    async def move(key: str) -> dict[str, Any]:
        return await alice.change("POST", "/tasks/move-overdue", key=key)

    nothing = await move("first")
    assert nothing == {"tasks": [], "not_found": [], "batch": nothing["batch"], "count": 0, "not_understood": []}
    await bob.add("bob's", due=day(-1))
    for ahead in (-3, -2, -1, 1):
        await alice.add(f"{ahead}", due=day(ahead))
    moved = await move("second")
    assert ([task["due"] for task in moved["tasks"]], moved["count"]) == ([day(0)] * 3, 3)
    await alice.add("later", due=day(-1))
    assert await move("second") == moved, "sent again, it moves nothing else"
    assert await alice.titles("today") == ["later", "-3", "-2", "-1"]
    assert await alice.get_error(409, "POST", "/tasks", {"title": "x"}, key="second")
    await alice.change("POST", "/tasks/undo", {"batch": moved["batch"]})
    assert [task["due"] for task in (await alice.get_view("today"))["tasks"]] == [day(-3), day(-2), day(-1), day(-1)]
    assert await bob.titles("today") == ["bob's"]


@pytest.mark.long
async def test_many_overdue_tasks_are_moved_in_one_batch(alice: TaskListClient, stored: Stored) -> None:
    await alice.add("first")
    stored.add_overdue_tasks(alice.name, 250)
    moved = await alice.change("POST", "/tasks/move-overdue")
    assert (moved["count"], len(moved["tasks"])) == (250, 100)
    assert (await alice.request("GET", "/tasks/counts")).json()["overdue"] == 0
    [batch, _] = (await alice.request("GET", "/tasks/batches")).json()["batches"]
    assert (batch["count"], batch["titles"]) == (250, ["task 2", "task 3", "task 4"])
    await alice.change("POST", "/tasks/undo", {"batch": batch["batch"]})
    assert (await alice.request("GET", "/tasks/counts")).json()["overdue"] == 250


@pytest.mark.long
async def test_a_thousand_moved_tasks_are_undone_and_redone(alice: TaskListClient, stored: Stored) -> None:
    await alice.add("first")
    stored.add_overdue_tasks(alice.name, 1000)
    moved = await alice.change("POST", "/tasks/move-overdue")
    undone = await alice.change("POST", "/tasks/undo", {"batch": moved["batch"]})
    assert (await alice.request("GET", "/tasks/counts")).json()["overdue"] == 1000
    await alice.change("POST", "/tasks/undo", {"batch": undone["batch"]})
    assert (await alice.request("GET", "/tasks/counts")).json()["overdue"] == 0


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


async def test_what_cannot_be_asked(alice: TaskListClient) -> None:
    for asked in (
        *("", "?view=", "?view=tomorrow", "?view=all&limit=0", "?view=all&limit=101", "?view=all&limit=x"),
        *(
            "?view=all&sort=due",
            "?view=all&offset=-1",
            "?view=all&offset=10001",
            "/batches?limit=0",
            "/batches?limit=x",
        ),
        *("?view=all&priority=urgent", "?view=all&cursor=garbage", f"?view=all&query={'x' * 201}"),
        *(f"?view=all&label={'x' * 41}", "?view=all&query=%00", f"?view=all&cursor={'x' * 3_000}"),
        *(f"/changes?after={after}" for after in ("-1", "x", "", "1.5", str(2**63))),
    ):
        assert len(await alice.get_error(400, "GET", f"/tasks{asked}")) < 400


async def test_what_is_changed_anywhere_is_heard_of(
    alice: TaskListClient, bob: TaskListClient, model: ScriptedModel
) -> None:
    seen = (await alice.get_view("all"))["last"]
    assert await alice.get_changes() == {"last": seen, "task_ids": [], "more": False}
    await alice.add("here")
    await model.script(add_task("elsewhere"), says("Added."))
    await alice.user.chatkit.say("add it")
    await bob.add("nobody's business")
    news = await alice.get_changes(seen)
    assert news["task_ids"] == [1, 2]
    assert (await alice.get_view("all"))["last"] == news["last"]
    assert await alice.get_changes(news["last"]) == {"last": news["last"], "task_ids": [], "more": False}


async def test_task_server_is_away(services: Services) -> None:
    away = {"MCP_INTERNAL_URL": "http://127.0.0.1:9/mcp", "MCP_RESEND_SECONDS": "0.1"}
    async with user_at(services, **away) as user:
        alice = TaskListClient(user)
        for path in READS:
            assert await alice.get_error(503, "GET", path)
        assert await alice.get_error(503, "POST", "/tasks", {"title": "bread"})
        assert await alice.get_error(503, "DELETE", "/tasks/1")


async def test_another_person_s_tasks_are_not_there(alice: TaskListClient, bob: TaskListClient, stored: Stored) -> None:
    added = await alice.change("POST", "/tasks", {"title": "alice's"}, key="same")
    await alice.add("alice's second")
    await bob.change("POST", "/tasks", {"title": "bob's"}, key="another")
    before = stored.tasks(alice.name)
    for method, body in (("PATCH", {"title": "mine"}), ("PATCH", {"status": "completed"}), ("DELETE", None)):
        assert await bob.get_error(404, method, "/tasks/2", body)
    assert await bob.get_error(409, "POST", "/tasks/undo", {"batch": added["batch"]})
    changed = await bob.change("PATCH", "/tasks/1", {"priority": "low", "also": [2, 3]})
    assert ([task["title"] for task in changed["tasks"]], changed["not_found"]) == (["bob's"], [2, 3])
    assert stored.tasks(alice.name) == before


REJECTED: list[tuple[str, str, Any]] = [
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
    ("POST", "/tasks/undo", {"batch": "a\nb"}),
    *[("POST", "/tasks", {"text": text}) for text in ("", 5, None, "x" * 1001)],
    *[("POST", "/tasks", {"text": "x", **more}) for more in ({"title": "y"}, {"dates": "maybe"})],
    *[("POST", "/tasks", {"text": "x", **more}) for more in ({"written": "now"}, {"due": "today"})],
]


async def test_what_cannot_be_done_gets_a_sentence(alice: TaskListClient, stored: Stored) -> None:
    await alice.add("milk")
    before = stored.tasks(alice.name), stored.task_calls(alice.name)
    for method, path, body in REJECTED:
        sentence = await alice.get_error(400, method, path, body)
        assert 20 < len(sentence) < 500, (method, path, body)
    for key in ("", "a b", "x" * 256):
        assert await alice.get_error(400, "POST", "/tasks", {"title": "x"}, **{"Idempotency-Key": key})
    assert (stored.tasks(alice.name), stored.task_calls(alice.name)) == before


async def test_bodies_that_are_no_json_or_too_large(alice: TaskListClient, stored: Stored) -> None:
    await alice.add("milk")
    for method, path in (("POST", "/tasks"), ("PATCH", "/tasks/1")):
        for content, kind, status in (
            (b"title=x", "application/x-www-form-urlencoded", 415),
            (b'{"title": "x"', "application/json", 400),
            (b'{"title": "\\u0000"}', "application/json", 400),
            (b'{"title": "\\ud800"}', "application/json", 400),
            (b"[" * 5_000, "application/json", 400),
            (b'{"title": "' + b"x" * 2**21 + b'"}', "application/json", 413),
        ):
            answer = await alice.http.request(method, path, content=content, headers={"Content-Type": kind})
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


async def test_a_change_sent_again_after_a_week(alice: TaskListClient, stored: Stored) -> None:
    """It gets the first response, although the task was changed since."""
    text = {"text": "water tomorrow", "written": "2026-11-23T10:40"}
    steps: list[tuple[str, str, Any]] = [
        ("POST", "/tasks", text),
        ("PATCH", "/tasks/1", {"due": "tomorrow"}),
        ("POST", "/tasks/undo", None),
        ("DELETE", "/tasks/1", None),
    ]
    answers: list[dict[str, Any]] = []
    for number, (method, path, body) in enumerate(steps):
        body = {"batch": answers[1]["batch"]} if path == "/tasks/undo" else body
        answers.append(await alice.change(method, path, body, key=f"key-{number}"))
        steps[number] = (method, path, body)
    await alice.change("POST", "/tasks/undo", {"batch": answers[3]["batch"]})
    await alice.change("PATCH", "/tasks/1", {"title": "the plants"})
    stored.age_task_changes(alice.name, days=7.5)
    before = stored.tasks(alice.name), stored.task_calls(alice.name)
    for number, (method, path, body) in enumerate(steps):
        assert await alice.change(method, path, body, key=f"key-{number}") == answers[number]
    assert (stored.tasks(alice.name), stored.task_calls(alice.name)) == before


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
    assert [(await changed(remind=value))["remind"] for value in (30, 0, "none", None)] == [30, 0, "none", None]
    assert (await changed(due="+1d"))["due"] == "2030-11-28"
    assert (await changed(due="2030-12-01 all day"))["time"] is None
    assert (await changed(repeat=""))["repeat"] is None
    assert (await changed(due=""))["due"] is None
    assert (await changed(due="2030-12-24"))["due"] == "2030-12-24"
    assert (await changed(due=None))["due"] is None
    assert (await changed(status="completed", title="Done"))["status"] == "completed"
    assert (await changed(status="pending"))["completed"] is None
    assert (await alice.get_view("all"))["tasks"][0]["title"] == "Done"


async def test_a_text_becomes_a_task(alice: TaskListClient) -> None:
    written = "2026-11-23T10:40"
    text = "call mum every friday at 3pm #family !high"
    preview = (await alice.request("GET", f"/tasks/preview?{urlencode({'text': text, 'written': written})}")).json()
    spans = [(span["kind"], text[span["start"] : span["end"]]) for span in preview.pop("spans")]
    assert spans == [("repeat", "every friday"), ("time", "at 3pm"), ("label", "#family"), ("priority", "!high")]
    fields = {
        "title": "call mum",
        "due": "2026-11-27",
        "time": "15:00",
        "repeat": "FREQ=WEEKLY;BYDAY=FR",
        "remind": None,
    }
    assert preview == fields | {"priority": "high", "labels": ["family"]}
    added = await alice.change("POST", "/tasks", {"text": text, "written": written, "default_due": "2026-12-24"})
    assert added["tasks"][0].items() >= preview.items()
    assert added["not_understood"] == []


@pytest.mark.parametrize(
    ("text", "remind", "left"),
    [
        ("call mum friday at 3pm, remind me 10 minutes before", 10, []),
        ("call mum friday at 3pm with no reminder", "none", []),
        ("call mum friday, remind me a day before", None, ["remind me a day before"]),
    ],
)
async def test_text_with_a_reminder(
    alice: TaskListClient, text: str, remind: int | str | None, left: list[str]
) -> None:
    preview = (await alice.request("GET", f"/tasks/preview?{urlencode({'text': text})}")).json()
    assert preview["remind"] == remind
    assert [span["text"] for span in preview["spans"] if span["kind"] == "unread"] == left
    added = await alice.change("POST", "/tasks", {"text": text})
    assert (added["tasks"][0]["remind"], added["not_understood"]) == (remind, left)
    assert (added["tasks"][0]["title"] == "call mum") == (not left)


async def test_reminder_needs_a_time(alice: TaskListClient) -> None:
    await alice.add("rent", due="2030-11-27")
    rejected = await alice.request("PATCH", "/tasks/1", {"remind": 10})
    assert (rejected.status_code, "has none. Give a due time" in rejected.text) == (400, True)
    assert (await alice.get_view("all"))["tasks"][0]["remind"] is None


async def test_an_hour_while_the_clock_changes(alice: TaskListClient) -> None:
    query = urlencode({"text": "call in 1 hour", "written": "2027-03-28T01:30"})
    preview = (await alice.request("GET", f"/tasks/preview?{query}")).json()
    assert (preview["title"], preview["due"], preview["time"]) == ("call", "2027-03-28", "03:30")


async def test_labels_are_typed_as_they_are_stored(alice: TaskListClient) -> None:
    labels = ["1on1", "a/b", "c++", "\U0001f389"]
    added = await alice.change("POST", "/tasks", {"text": "read " + " ".join(f"#{label}" for label in labels)})
    (task,) = added["tasks"]
    assert (task["title"], task["labels"]) == ("read", labels)
    for label in labels:
        query = urlencode({"view": "all", "query": f"#{label}"})
        assert (await alice.request("GET", f"/tasks?{query}")).json()["total"] == 1, label


async def test_a_text_in_another_language_is_left_whole(alice: TaskListClient) -> None:
    added = await alice.change("POST", "/tasks", {"text": "Rendez-vous demain \u00e0 15h"})
    assert (added["tasks"][0]["title"], added["tasks"][0]["due"]) == ("Rendez-vous demain \u00e0 15h", None)
    assert added["not_understood"] == ["demain \u00e0 15h"]


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
    too_long = f"friday {' ' * 100}at 3pm"
    assert await preview(too_long) == (too_long, None, None)


async def test_a_text_is_read_by_the_users_clock(alice: TaskListClient) -> None:
    shown = (await alice.get_view("all"))["now"]
    preview = (await alice.request("GET", "/tasks/preview?text=call+mum+in+1+minute")).json()
    now, then = (datetime.fromisoformat(moment) for moment in (shown, f"{preview['due']}T{preview['time']}"))
    assert timedelta(0) <= then - now <= timedelta(minutes=2)


async def test_order_of_day_and_month_is_a_setting(services: Services) -> None:
    async with user_at(services, DATE_ORDER="day-first") as user:
        preview = (await user.chatkit.http.get("/tasks/preview?text=dentist+12/05/2030")).json()
    assert (preview["title"], preview["due"]) == ("dentist", "2030-05-12")
