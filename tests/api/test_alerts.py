"""Notifications from outside: settings, channels, what is sent when, and what devices and the page say about it."""

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx2
import pytest

from tests.alerts.receiver import Receiver, run_receiver, status
from tests.alerts.rows import AlertRows
from tests.conftest import find_free_port
from tests.serving import http_client
from tests.support.fixtures import NewUser
from tests.support.stack import Services, Stack, StackSettings, run_stack
from tests.support.stored import Stored
from tests.support.users import User
from tests.waiting import until

pytestmark = pytest.mark.long(seconds=45)

PORT = find_free_port()
REQUEST_SECONDS = 5  # at the most; a minute that has passed when the request arrives does not alert
DEVICE = {
    "endpoint": "https://updates.push.services.mozilla.com/wpush/v2/a-device",
    "keys": {
        "p256dh": "BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4",
        "auth": "BTBZMqHH6r4Tts7J_aSIgg",
    },
}


@pytest.fixture(scope="module")
def alert_stack(services: Services, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    environment = {"ALERT_HOSTS": f"http://127.0.0.1:{PORT}"}
    with run_stack(services, StackSettings(backends=2, environment=environment), tmp_path_factory.mktemp("a")) as stack:
        yield stack


@pytest.fixture
def stack(alert_stack: Stack) -> Stack:
    alert_stack.ensure_running()
    return alert_stack


@pytest.fixture
async def receiver() -> AsyncIterator[Receiver]:
    async with run_receiver(PORT) as receiver:
        yield receiver


@pytest.fixture
def rows(stack: Stack) -> Iterator[AlertRows]:
    with AlertRows(stack.database_url) as rows:
        yield rows


@asynccontextmanager
async def signed_in(user: User) -> AsyncIterator[httpx2.AsyncClient]:
    """The page of a device that is signed in."""
    async with http_client(user.url, headers={"Origin": user.url}) as page:
        (await page.post("/session", headers={"Authorization": f"Bearer {user.token}"})).raise_for_status()
        yield page


@pytest.fixture
async def page(user: User) -> AsyncIterator[httpx2.AsyncClient]:
    async with signed_in(user) as page:
        yield page


async def add_webhook(page: httpx2.AsyncClient, path: str, name: str | None = None) -> dict[str, Any]:
    target = {"url": f"http://127.0.0.1:{PORT}/{path}", "secret": "a-secret-of-a-webhook"}
    body = {"kind": "webhook", "name": name or path, "target": target}
    response = await page.post("/alerts/channels", json=body)
    assert response.status_code == 201, response.text
    return response.json()


def local_time(stack: Stack) -> str:
    """The minute that clocks in Berlin show in the services when a request that is sent now has arrived."""
    offset = float(stack.backends[0].environment["TEST_CLOCK_OFFSET_SECONDS"])
    moment = datetime.now(UTC) + timedelta(seconds=offset) + timedelta(hours=1, seconds=REQUEST_SECONDS)
    return f"{moment:%Y-%m-%d %H:%M}"


async def add_due_task(page: httpx2.AsyncClient, stack: Stack, title: str = "call mum", **fields: Any) -> int:
    """Adds a task that is due in this minute."""
    due = fields.pop("due", local_time(stack))
    response = await page.post("/tasks", json={"title": title, "due": due, **fields})
    assert response.status_code == 201, response.text
    return response.json()["tasks"][0]["id"]


async def list_alerts(page: httpx2.AsyncClient) -> list[dict[str, Any]]:
    return (await page.get("/alerts")).json()["alerts"]


async def test_settings(page: httpx2.AsyncClient) -> None:
    shown = (await page.get("/alerts/settings")).json()
    assert (shown["on"], shown["remind"], shown["digest_time"], shown["quiet_from"]) == (False, 0, "08:00", None)
    assert shown["channels"] == []
    assert len(shown["push_key"]) == 87
    assert {kind["kind"]: kind["possible"] for kind in shown["kinds"]} == {
        "push": True,
        "ntfy": True,
        "webhook": True,
        "email": False,
    }
    assert all((kind["why_not"] is None) == kind["possible"] for kind in shown["kinds"])
    change = {"on": True, "remind": 10, "digest_time": None, "quiet_from": "22:00", "quiet_until": "07:00"}
    changed = (await page.patch("/alerts/settings", json=change)).json()
    assert {name: changed[name] for name in change} == change
    changed = (await page.patch("/alerts/settings", json={"quiet_from": None, "quiet_until": None})).json()
    assert (changed["quiet_from"], changed["remind"], changed["on"]) == (None, 10, True)
    assert (await page.patch("/alerts/settings", json={"remind": "none"})).json()["remind"] == "none"
    assert (await page.patch("/alerts/settings", json={"on": False})).json()["on"] is False


@pytest.mark.parametrize(
    ("body", "sentence"),
    [
        ({}, "Send what is to change: on, remind, digest_time, quiet_from or quiet_until."),
        ({"quiet_from": "22:00"}, "Quiet hours need both quiet_from and quiet_until, or null for both."),
        (
            {"quiet_from": "22:00", "quiet_until": "22:00"},
            "Quiet hours must end at another time than they begin, such as from 22:00 until 07:00.",
        ),
        ({"digest_time": "25:00"}, "digest_time"),
        ({"remind": -1}, "remind"),
        ({"remind": 40321}, "remind"),
    ],
)
async def test_invalid_settings(page: httpx2.AsyncClient, rows: AlertRows, body: Any, sentence: str) -> None:
    response = await page.patch("/alerts/settings", json=body)
    assert response.status_code == 400
    assert sentence in response.json()["error"]
    assert (await page.get("/alerts/settings")).json()["on"] is False


async def test_channels(page: httpx2.AsyncClient) -> None:
    first, second, third = [await add_webhook(page, name) for name in ("first", "second", "third")]
    assert first == {
        "id": first["id"],
        "kind": "webhook",
        "name": "first",
        "target": f"http://127.0.0.1:{PORT}",
        "state": "on",
        "problem": None,
        "confirms": False,
        "this_device": False,
        "last_sent_at": None,
        "last_shown_at": None,
    }
    assert (await add_webhook(page, "first"))["id"] == first["id"], "it is the same channel"

    async def list_names() -> list[str]:
        shown = (await page.get("/alerts/settings")).json()
        assert shown["on"] is True, "whoever adds a channel wants to be notified"
        return [channel["name"] for channel in shown["channels"]]

    assert await list_names() == ["first", "second", "third"]
    for position, names in (
        (1, ["third", "first", "second"]),
        (2, ["first", "third", "second"]),
        (3, ["first", "second", "third"]),
        (99, ["first", "second", "third"]),
    ):
        response = await page.patch(f"/alerts/channels/{third['id']}", json={"position": position})
        assert (response.status_code, await list_names()) == (200, names)
    renamed = await page.patch(f"/alerts/channels/{second['id']}", json={"name": "other", "on": False})
    assert (renamed.json()["name"], renamed.json()["state"]) == ("other", "off")
    assert (await page.delete(f"/alerts/channels/{first['id']}")).status_code == 204
    assert await list_names() == ["other", "third"]
    assert (await page.delete(f"/alerts/channels/{first['id']}")).status_code == 404


async def test_invalid_channels(page: httpx2.AsyncClient, user: User) -> None:
    for body, sentence in (
        ({"kind": "pigeon", "target": {}}, "There is no such channel."),
        ({"kind": "email", "target": {"address": "ann@example.com"}}, "E-mail is not set up here."),
        ({"kind": "webhook", "target": {"url": "https://example.com", "secret": "x" * 20}}, "may not be sent to"),
        ({"kind": "push", "target": {"endpoint": "https://example.com"}}, "This is not a push subscription"),
    ):
        response = await page.post("/alerts/channels", json={"name": "x", **body})
        assert (response.status_code, sentence in response.json()["error"]) == (422, True), response.text
    body = {"kind": "push", "name": "x", "target": DEVICE}
    response = await user.runs.http.post("/alerts/channels", json=body)
    assert response.status_code == 403, "with a token, somebody could read along for ever"
    for number in range(10):
        await add_webhook(page, f"hook-{number}")
    response = await page.post("/alerts/channels", json=body)
    assert (response.status_code, "10 channels" in response.json()["error"]) == (429, True)


async def test_another_user(page: httpx2.AsyncClient, new_user: NewUser) -> None:
    channel = await add_webhook(page, "first")
    async with signed_in(new_user()) as other:
        for method, path, body in (
            ("PATCH", "", {"on": False}),
            ("DELETE", "", None),
            ("POST", "/test", None),
        ):
            response = await other.request(method, f"/alerts/channels/{channel['id']}{path}", json=body)
            assert response.status_code == 404
        assert (await other.get("/alerts/settings")).json()["channels"] == []
        assert await list_alerts(other) == []
    assert (await page.get("/alerts/settings")).json()["channels"] == [channel]


async def test_a_test_notification(page: httpx2.AsyncClient, receiver: Receiver) -> None:
    channel = await add_webhook(page, "first")
    path = f"/alerts/channels/{channel['id']}/test"
    assert (await page.post(path)).json() == {"accepted": True, "message": "The notification was accepted."}
    [body] = receiver.at("first")
    assert (body["kind"], body["title"]) == ("test", "Test notification")
    receiver.answer("first", status(410))
    result = (await page.post(path)).json()
    assert result["accepted"] is False
    [shown] = (await page.get("/alerts/settings")).json()["channels"]
    assert (shown["state"], shown["problem"]["message"]) == ("off", result["message"])
    await page.patch(f"/alerts/channels/{channel['id']}", json={"on": True})
    receiver.answer("first", status(503))
    result = (await page.post(path)).json()
    assert "after a test, send another one later" in result["message"], "it is sent once"
    renamed = (await page.patch(f"/alerts/channels/{channel['id']}", json={"name": "other"})).json()
    assert (renamed["state"], renamed["problem"]["message"]) == ("on", result["message"])
    off = (await page.patch(f"/alerts/channels/{channel['id']}", json={"on": False})).json()
    assert (off["state"], off["problem"]) == ("off", None), "the user has turned it off, not the problem"
    assert [alert["state"] for alert in await list_alerts(page)] == ["failed", "failed", "sent"]


async def test_a_task_that_is_due(page: httpx2.AsyncClient, stack: Stack, receiver: Receiver) -> None:
    """Of two processes one sends it, within seconds, once."""
    await add_webhook(page, "first")
    await add_webhook(page, "second")
    due = local_time(stack)
    task = await add_due_task(page, stack, "call mum", due=due)
    await until(lambda: receiver.at("first") != [])
    [body] = receiver.at("first")
    assert body["title"] == "call mum"
    assert body["body"] == f"Due today at {due[11:]}."
    assert (body["task"], body["late"]) == (task, False)
    assert body["url"].endswith(f"/t/{task}")

    async def is_sent() -> bool:
        return [alert["state"] for alert in await list_alerts(page)] == ["sent"]

    await until(is_sent)
    [alert] = await list_alerts(page)
    assert (alert["kind"], alert["tasks"]) == ("task", [task])
    assert [(one["channel"], one["state"]) for one in alert["deliveries"]] == [("first", "accepted")]
    assert receiver.keys("first") == [alert["key"]]
    assert receiver.at("second") == []
    assert (await page.get("/alerts/unshown")).json() == {"alerts": []}


async def test_without_a_channel(page: httpx2.AsyncClient, user: User, stack: Stack, rows: AlertRows) -> None:
    """An open page shows it, and says so."""
    await page.patch("/alerts/settings", json={"on": True})
    task = await add_due_task(page, stack)

    async def list_unshown() -> list[dict[str, Any]]:
        return (await page.get("/alerts/unshown")).json()["alerts"]

    await until(lambda: rows.all("SELECT FROM alerts WHERE user_id = %(user)s AND state = 'failed'", user=user.name))
    [shown] = await list_unshown()
    assert (shown["title"], shown["task"], shown["actions"], shown["proof"]) == ("call mum", task, True, None)
    assert (await page.post(f"/alerts/{shown['key']}/shown")).status_code == 204
    assert await list_unshown() == []
    assert [alert["state"] for alert in await list_alerts(page)] == ["shown"]


async def test_switched_off(page: httpx2.AsyncClient, stack: Stack, receiver: Receiver, rows: AlertRows) -> None:
    await add_webhook(page, "first")
    await page.patch("/alerts/settings", json={"on": False})
    await add_due_task(page, stack)
    await until(lambda: not rows.all("SELECT FROM tasks WHERE alert_stale_since IS NOT NULL OR alert_at < now()"))
    assert (await list_alerts(page), receiver.received) == ([], [])


async def test_a_device_confirms(page: httpx2.AsyncClient, user: User, rows: AlertRows) -> None:
    """By the proof that came with the notification, without being signed in."""
    added = (await page.post("/alerts/channels", json={"kind": "push", "name": "Firefox", "target": DEVICE})).json()
    assert (added["this_device"], added["confirms"], added["target"]) == (True, False, "Mozilla's push service")
    rows.execute(
        "INSERT INTO alerts (user_id, key, kind, alert_at, created_at, state)"
        " VALUES (%(user)s, 'key', 'digest', now(), now(), 'sent')",
        user=user.name,
    )
    rows.execute(
        "INSERT INTO alert_deliveries (user_id, alert_id, channel_id, state, proof, first_at, at)"
        " SELECT %(user)s, id, %(channel)s, 'accepted', 'a-proof-of-a-device', now(), now() FROM alerts"
        " WHERE user_id = %(user)s",
        user=user.name,
        channel=added["id"],
    )
    async with http_client(user.url, headers={"Origin": user.url}) as device:
        for proof in ("another-proof-of-a-device", "a-proof-of-a-device"):
            response = await device.post("/alerts/shown", json={"proof": proof})
            assert (response.status_code, response.content) == (204, b""), "nobody learns which proofs there are"
        assert (await device.post("/alerts/shown", json={"proof": "short"})).status_code == 400
    [alert] = await list_alerts(page)
    assert (alert["state"], alert["deliveries"][0]["state"]) == ("shown", "shown")
    [channel] = (await page.get("/alerts/settings")).json()["channels"]
    assert channel["confirms"] is True
    assert channel["last_shown_at"] is not None


async def test_a_device_ends_with_its_session(page: httpx2.AsyncClient, user: User, stored: Stored) -> None:
    """With its sign-out, in any process; not when its session expires."""
    await page.post("/alerts/channels", json={"kind": "push", "name": "Firefox", "target": DEVICE})
    await add_webhook(page, "first")
    async with signed_in(user.at(1)) as other:
        endpoint = {"endpoint": f"{DEVICE['endpoint']}-2"}
        await other.post("/alerts/channels", json={"kind": "push", "name": "Phone", "target": DEVICE | endpoint})
        stored.make_sessions_older(user.name, days=40)
        names = [channel["name"] for channel in (await page.get("/alerts/settings")).json()["channels"]]
        assert names == ["Firefox", "first", "Phone"]
        await other.delete("/session")
    names = [channel["name"] for channel in (await page.get("/alerts/settings")).json()["channels"]]
    assert names == ["Firefox", "first"]
    await page.delete("/sessions")
    names = [channel["name"] for channel in (await page.get("/alerts/settings")).json()["channels"]]
    assert names == ["Firefox", "first"]


async def test_a_browser_of_two_users(page: httpx2.AsyncClient, new_user: NewUser) -> None:
    """It is notified for the one who was the last to want it."""
    body = {"kind": "push", "name": "Firefox", "target": DEVICE}
    await page.post("/alerts/channels", json=body)
    async with signed_in(new_user()) as other:
        assert (await other.post("/alerts/channels", json=body)).status_code == 201
        assert len((await other.get("/alerts/settings")).json()["channels"]) == 1
    assert (await page.get("/alerts/settings")).json()["channels"] == []


async def test_a_browser_of_two_users_at_the_limit(page: httpx2.AsyncClient, new_user: NewUser) -> None:
    """Whoever cannot add it takes it from nobody."""
    body = {"kind": "push", "name": "Firefox", "target": DEVICE}
    added = (await page.post("/alerts/channels", json=body)).json()
    async with signed_in(new_user()) as other:
        for number in range(10):
            await add_webhook(other, f"hook-{number}")
        assert (await other.post("/alerts/channels", json=body)).status_code == 429
    assert (await page.get("/alerts/settings")).json()["channels"] == [added]


async def test_names_of_channels(page: httpx2.AsyncClient) -> None:
    """A name that is taken gets a number; what is renewed keeps the one that it has."""
    names = [(await add_webhook(page, path, "Webhook"))["name"] for path in ("1", "2", "3", "2", "1")]
    assert names == ["Webhook", "Webhook (2)", "Webhook (3)", "Webhook (2)", "Webhook"]
    [first, second, _] = (await page.get("/alerts/settings")).json()["channels"]
    renamed = await page.patch(f"/alerts/channels/{second['id']}", json={"name": "Webhook"})
    assert renamed.json()["name"] == "Webhook (2)"
    await page.delete(f"/alerts/channels/{first['id']}")
    assert (await add_webhook(page, "4", "Webhook"))["name"] == "Webhook"


async def test_done_and_snooze(
    page: httpx2.AsyncClient, user: User, stack: Stack, rows: AlertRows, receiver: Receiver
) -> None:
    await add_webhook(page, "first")
    first, second = await add_due_task(page, stack, "call mum"), await add_due_task(page, stack, "water the plants")
    await until(lambda: len(receiver.at("first")) == 2)
    keys = {body["task"]: body["key"] for body in receiver.at("first")}
    snoozed = await page.post(f"/alerts/{keys[first]}/snooze", json={"minutes": 1})
    assert snoozed.json() == {"done": True, "message": "You are notified again in 1 minute."}
    [listed] = [task for task in (await page.get("/tasks?view=all")).json()["tasks"] if task["id"] == first]
    statement = "SELECT snoozed_until AS instant FROM tasks WHERE user_id = %(user)s AND id = %(task)s"
    [stored] = rows.all(statement, user=user.name, task=first)
    for read in (listed, (await page.get(f"/tasks/{first}")).json()):
        assert datetime.fromisoformat(read["snoozed_until"]) == stored["instant"].replace(microsecond=0)
    done = [(await page.post(f"/alerts/{keys[second]}/done")).json()["done"] for _ in range(2)]
    assert done == [True, False], "it was completed by the first request"
    assert (await page.get(f"/tasks/{second}")).json()["status"] == "completed"
    # What was meant is another date by now.
    await page.patch(f"/tasks/{first}", json={"due": "2026-12-24 10:00"})
    assert (await page.get(f"/tasks/{first}")).json()["snoozed_until"] is None
    for action, body in (("done", None), ("snooze", {"minutes": 10})):
        response = await page.post(f"/alerts/{keys[first]}/{action}", json=body)
        assert response.json() == {
            "done": False,
            "message": "Nothing was done: the task was completed or deleted, or is due at another time by now.",
        }
    assert (await page.get(f"/tasks/{first}")).json()["status"] == "pending"
    assert (await page.post("/alerts/none/done")).status_code == 404


async def test_undo_restores_the_alert(page: httpx2.AsyncClient, user: User, stack: Stack, rows: AlertRows) -> None:
    await page.patch("/alerts/settings", json={"on": True})
    task = await add_due_task(page, stack, due="2026-12-24 10:00")

    def alert_at() -> str | None:
        found = rows.alert_at(user.name, task)
        return found and found.astimezone(UTC).isoformat()

    await until(lambda: alert_at() == "2026-12-24T09:00:00+00:00")
    changed = (await page.patch(f"/tasks/{task}", json={"due": "none"})).json()
    assert alert_at() is None
    await page.post("/tasks/undo", json={"batch": changed["batch"]})
    await until(lambda: alert_at() == "2026-12-24T09:00:00+00:00")
    [row] = user_changes(rows, user.name)
    assert "alert_at" not in row
    assert "snoozed_until" not in row


def user_changes(rows: AlertRows, user: str) -> list[str]:
    statement = "SELECT after::text AS text FROM task_changes WHERE user_id = %(user)s ORDER BY id LIMIT 1"
    return [row["text"] for row in rows.all(statement, user=user)]
