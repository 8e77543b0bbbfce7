"""Which channel gets an alert, how often, and what is stored of it; channels are webhooks of a server on loopback."""

from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from starlette.responses import Response

from backend.alerts import history
from backend.alerts.available_channels import AvailableChannels, OpenChannels
from backend.alerts.channels.http import HttpSender
from backend.alerts.channels.webhook import WebhookChannel
from backend.alerts.clock import AlertClock
from backend.alerts.composer import Composer
from backend.alerts.messages import ScheduledRun, compose
from backend.alerts.outbox import Alert, Recipient, Work, add_schedule_alert
from backend.alerts.sender import Sender
from backend.alerts.service import AlertService
from backend.settings import ChannelSettings
from backend.tools.task_tools import TaskTools
from common.database import Database
from common.web_origins import AllowedOrigins
from tests.alerts.conftest import MovableClock, new_name
from tests.alerts.receiver import Receiver, after, run_receiver, status
from tests.alerts.rows import AlertRows
from tests.processes import ServiceProcess

pytestmark = pytest.mark.long(seconds=45)

SECONDS = 0.3
"""How long the channel waits for an answer."""
DUE, AT = "2026-03-02 15:00", "2026-03-02T14:00:00+00:00"


class World:
    """A user in Berlin, whose channels are paths of the receiver; time passes only when a test says so."""

    def __init__(self, rows: AlertRows, database: Database, tools: TaskTools, receiver: Receiver) -> None:
        self.rows, self.database, self.receiver, self.user = rows, database, receiver, new_name()
        self.clock = MovableClock("2026-03-02T13:00:00+00:00")
        self.alert_clock = AlertClock(database, self.clock, "UTC")
        webhooks = WebhookChannel(HttpSender(AllowedOrigins([receiver.url]), seconds=SECONDS))
        self.channels = AvailableChannels(database, ChannelSettings(), OpenChannels({"webhook": webhooks}, ""))
        self.composer = Composer(database, tools, time_zone="UTC", address="https://todo.example")
        self.sender = self.new_sender()
        rows.set_settings(self.user)
        rows.set_zone(self.user, "Europe/Berlin")

    def new_sender(self, **options: Any) -> Sender:
        return Sender(self.database, self.composer, self.channels, self.clock, **options)

    def add_channel(self, path: str, **columns: Any) -> int:
        target = self.receiver.target(path)
        position = len(self.rows.channels(self.user)) + 1
        return self.rows.add_channel(self.user, "webhook", target, name=path, position=position, **columns)

    async def step(self) -> None:
        await self.alert_clock.tick()
        await self.sender.send_due()
        await self.sender.wait()

    async def go_to(self, moment: str) -> None:
        self.clock.now = datetime.fromisoformat(moment)
        await self.step()

    async def pass_time(self, every: timedelta = timedelta(seconds=30), **length: float) -> None:
        end = self.clock.now + timedelta(**length)
        while self.clock.now < end:
            self.clock.now = min(end, self.clock.now + every)
            await self.step()

    def state(self) -> str:
        [alert] = self.rows.alerts(self.user)
        return alert["state"]

    def states(self) -> dict[str, str]:
        """The state of the delivery at each channel."""
        names = {channel["id"]: channel["name"] for channel in self.rows.channels(self.user)}
        return {names[one["channel_id"]]: one["state"] for one in self.rows.deliveries(self.user)}

    def proof(self, path: str) -> str:
        ids = {channel["name"]: channel["id"] for channel in self.rows.channels(self.user)}
        [proof] = [one["proof"] for one in self.rows.deliveries(self.user) if one["channel_id"] == ids[path]]
        return proof


@pytest.fixture
async def receiver() -> AsyncIterator[Receiver]:
    async with run_receiver() as receiver:
        yield receiver


@pytest.fixture
def world(rows: AlertRows, database: Database, tools: TaskTools, receiver: Receiver) -> World:
    return World(rows, database, tools, receiver)


async def test_the_first_channel(world: World) -> None:
    world.add_channel("first")
    world.add_channel("second")
    world.rows.add_task(world.user, 1, DUE, title="call <mum>")
    await world.go_to(AT)
    [body] = world.receiver.at("first")
    assert body | {"key": ""} == {
        "title": "call <mum>",
        "body": "Due today at 15:00.",
        "url": "https://todo.example/t/1",
        "task": 1,
        "key": "",
        "kind": "task",
        "late": False,
    }
    assert (world.state(), world.states()) == ("sent", {"first": "accepted"})
    await world.pass_time(minutes=20)
    assert len(world.receiver.received) == 1
    [channel, _] = world.rows.channels(world.user)
    assert channel["last_sent_at"] == datetime.fromisoformat(AT)


async def test_a_channel_that_has_ended(world: World) -> None:
    """It is switched off with its reason, and the next one is used at once."""
    world.receiver.answer("first", status(410))
    world.add_channel("first")
    world.add_channel("second")
    world.rows.add_task(world.user, 1, DUE)
    await world.go_to(AT)
    await world.step()
    assert world.receiver.accepted == [("second", world.receiver.keys("first")[0])]
    assert (world.state(), world.states()) == ("sent", {"first": "gave_up", "second": "accepted"})
    [first, second] = world.rows.channels(world.user)
    assert (first["is_on"], first["problem"]) == (False, "rejected")
    assert (second["is_on"], second["problem"]) == (True, None)
    world.rows.add_task(world.user, 2, "2026-03-02 15:10")
    await world.go_to("2026-03-02T14:10:00+00:00")
    assert (len(world.receiver.at("first")), len(world.receiver.at("second"))) == (1, 2)


async def test_a_channel_that_asks_to_wait(world: World) -> None:
    world.receiver.answer("first", status(429, retry_after="120"), status(204))
    world.add_channel("first")
    world.rows.add_task(world.user, 1, DUE)
    await world.go_to(AT)
    await world.pass_time(timedelta(seconds=10), seconds=110)
    assert len(world.receiver.at("first")) == 1
    [channel] = world.rows.channels(world.user)
    assert (channel["is_on"], channel["problem"]) == (True, "busy")
    await world.pass_time(timedelta(seconds=10), seconds=20)
    assert len(world.receiver.accepted) == 1
    assert (world.state(), world.rows.channels(world.user)[0]["problem"]) == ("sent", None)
    [delivery] = world.rows.deliveries(world.user)
    assert (delivery["attempts"], delivery["repetitions"]) == (2, 0), "it had certainly not arrived"


@pytest.mark.parametrize("answer", [status(429, retry_after="3600"), status(503)], ids=["waits", "fails"])
async def test_a_channel_that_fails_for_five_minutes(world: World, answer: Callable[..., Any]) -> None:
    world.receiver.answer("first", answer)
    world.add_channel("first")
    world.add_channel("second")
    world.rows.add_task(world.user, 1, DUE)
    await world.go_to(AT)
    await world.pass_time(minutes=4, seconds=50)
    assert world.receiver.at("second") == []
    await world.pass_time(seconds=10)
    assert (world.state(), world.states()) == ("sent", {"first": "gave_up", "second": "accepted"})
    assert len(world.receiver.accepted) == 1
    tries = len(world.receiver.at("first"))
    await world.pass_time(minutes=60)
    assert len(world.receiver.at("first")) == tries


async def test_the_only_channel_fails_for_hours(world: World) -> None:
    """The pauses grow; after twelve hours nobody wants to know it any more."""
    world.receiver.answer("first", status(503))
    world.add_channel("first")
    world.rows.add_task(world.user, 1, DUE)
    await world.go_to(AT)
    await world.pass_time(timedelta(minutes=1), hours=11, minutes=59)
    tries = len(world.receiver.at("first"))
    assert 45 < tries < 60
    assert len(set(world.receiver.keys("first"))) == 1
    assert world.state() == "pending"
    await world.pass_time(timedelta(minutes=5), minutes=30)
    assert (world.state(), len(world.receiver.at("first")) - tries) == ("expired", 0)


async def test_a_channel_that_hangs(world: World) -> None:
    """It may have arrived: the same channel gets the same key again; after five minutes the next one is used."""
    world.receiver.answer("first", after(SECONDS * 3))
    world.add_channel("first")
    world.add_channel("second")
    world.rows.add_task(world.user, 1, DUE)
    await world.go_to(AT)
    assert world.states() == {"first": "sending"}
    await world.pass_time(minutes=5)
    assert (world.state(), world.states()) == ("sent", {"first": "gave_up", "second": "accepted"})
    assert len(set(world.receiver.keys("first") + world.receiver.keys("second"))) == 1
    [first, _] = world.rows.deliveries(world.user)
    assert (first["repetitions"], first["attempts"]) == (len(world.receiver.at("first")) - 1, first["repetitions"] + 1)


async def test_an_answer_that_comes_too_late(world: World) -> None:
    """The receiver has it once, by its key, though it was sent twice."""
    world.receiver.answer("first", after(SECONDS * 2), status(204))
    world.add_channel("first")
    world.add_channel("second")
    world.rows.add_task(world.user, 1, DUE)
    await world.go_to(AT)
    await world.pass_time(seconds=30)
    assert (world.state(), world.receiver.at("second")) == ("sent", [])
    assert len(world.receiver.at("first")) == 2
    assert len(set(world.receiver.keys("first"))) == 1
    [delivery] = world.rows.deliveries(world.user)
    assert delivery["repetitions"] == 1


async def test_a_device_that_confirms(world: World) -> None:
    world.add_channel("phone", confirmed_at="2026-03-01")
    world.add_channel("second")
    world.rows.add_task(world.user, 1, DUE)
    await world.go_to(AT)
    assert (world.state(), world.states()) == ("pending", {"phone": "accepted"})
    await world.pass_time(minutes=4)
    await history.confirm(world.database, world.proof("phone"), world.clock())
    await world.pass_time(minutes=10)
    assert (world.state(), world.states()) == ("shown", {"phone": "shown"})
    assert world.receiver.at("second") == []


async def test_a_device_that_does_not_confirm(world: World) -> None:
    """After five minutes the next channel is used, once; without one, an open page shows it."""
    world.add_channel("phone", confirmed_at="2026-03-01")
    second = world.add_channel("second", confirmed_at="2026-03-01")
    world.rows.add_task(world.user, 1, DUE)
    await world.go_to(AT)
    await world.pass_time(minutes=5)
    assert world.states() == {"phone": "gave_up", "second": "accepted"}
    assert await history.list_unshown(world.database, world.user, since=datetime(2026, 3, 1, tzinfo=UTC), most=9) == []
    await world.pass_time(minutes=5)
    assert (world.state(), world.states()) == ("sent", {"phone": "gave_up", "second": "gave_up"})
    assert (len(world.receiver.at("phone")), len(world.receiver.at("second"))) == (1, 1)
    unshown = await history.list_unshown(world.database, world.user, since=datetime(2026, 3, 1, tzinfo=UTC), most=9)
    assert len(unshown) == 1
    await history.confirm(world.database, world.proof("second"), world.clock())
    assert (world.state(), world.states()["second"]) == ("shown", "shown")
    [_, channel] = world.rows.channels(world.user)
    assert (channel["id"], channel["last_shown_at"]) == (second, world.clock())


async def test_the_page_shows_it_first(world: World) -> None:
    """While its only channel fails, an open page shows an alert; then it is not sent."""
    world.receiver.answer("first", status(503))
    world.add_channel("first")
    world.rows.add_task(world.user, 1, DUE)
    await world.go_to(AT)
    since = datetime(2026, 3, 1, tzinfo=UTC)
    assert len(await history.list_unshown(world.database, world.user, since=since, most=9)) == 1
    [alert] = world.rows.alerts(world.user)
    assert await history.show(world.database, world.user, alert["key"], world.clock())
    world.receiver.answer("first", status(204))
    await world.pass_time(minutes=20)
    assert (world.state(), world.receiver.accepted) == ("shown", [])


@pytest.mark.parametrize(
    "columns", [{"status": "completed", "completed_at": AT}, {"due_time": "18:00"}, {"due_on": None, "due_time": None}]
)
async def test_a_task_that_has_changed_meanwhile(world: World, columns: dict[str, Any]) -> None:
    world.receiver.answer("first", status(503))
    world.add_channel("first")
    world.rows.add_task(world.user, 1, DUE)
    await world.go_to(AT)
    names = ", ".join(f"{name} = %({name})s" for name in columns)
    world.rows.execute(f"UPDATE tasks SET {names} WHERE user_id = %(user)s", user=world.user, **columns)
    world.receiver.answer("first", status(204))
    await world.pass_time(minutes=5)
    assert (world.state(), world.receiver.accepted) == ("expired", [])


async def test_users_who_may_not_be_notified(world: World) -> None:
    """One who was disabled, has switched notifications off, or has no account any more."""
    world.add_channel("first")
    for number in (1, 2, 3):
        world.rows.add_task(world.user, number, DUE)
    world.clock.now = datetime.fromisoformat(AT)
    await world.alert_clock.tick()
    world.sender = world.new_sender(needs_account=True)
    world.rows.execute("UPDATE alerts SET next_at = next_at + interval '1 minute' WHERE task_dues->0->>'id' <> '1'")
    await world.step()
    world.rows.execute("INSERT INTO accounts (user_id, name) VALUES (%(user)s, 'ann')", user=world.user)
    world.rows.set_settings(world.user, is_on=False)
    world.rows.execute("UPDATE alerts SET next_at = next_at + interval '1 hour' WHERE task_dues->0->>'id' = '3'")
    await world.pass_time(seconds=60)
    world.rows.set_settings(world.user, is_on=True)
    world.rows.execute("UPDATE accounts SET disabled_at = now() WHERE user_id = %(user)s", user=world.user)
    await world.pass_time(timedelta(minutes=10), hours=2)
    assert [alert["state"] for alert in world.rows.alerts(world.user)] == ["expired"] * 3
    assert world.receiver.received == []


async def test_a_user_whom_the_provider_refuses(world: World) -> None:
    """They are notified again after they have signed in again, but not of what was due before."""
    world.add_channel("first")
    world.rows.add_task(world.user, 1, DUE)
    world.rows.add_task(world.user, 2, "2026-03-02 15:01")
    world.rows.add_task(world.user, 3, "2026-03-02 15:02")
    world.clock.now = datetime.fromisoformat(AT)
    await world.alert_clock.tick()
    world.rows.execute(
        "INSERT INTO accounts (user_id, name, provider_refused_at) VALUES (%(user)s, 'ann', now())", user=world.user
    )
    await world.step()
    await world.pass_time(minutes=1)
    assert (world.state(), world.receiver.received) == ("expired", [])
    world.rows.execute("UPDATE accounts SET provider_refused_at = NULL WHERE user_id = %(user)s", user=world.user)
    await world.pass_time(minutes=1)
    assert [body["title"] for body in world.receiver.at("first")] == ["task 3"]


async def test_the_task_server_is_away(world: World, task_server: ServiceProcess) -> None:
    world.add_channel("first")
    world.rows.add_task(world.user, 1, DUE)
    task_server.end()
    await world.go_to(AT)
    assert (world.state(), world.receiver.received) == ("pending", [])
    task_server.start()
    task_server.wait_until_ready()
    await world.pass_time(seconds=30)
    assert (world.state(), len(world.receiver.accepted)) == ("sent", 1)


async def test_a_clock_that_is_set_back_by_a_day(world: World) -> None:
    """What waits for its next try does not wait for a day."""
    world.receiver.answer("first", status(503), status(204))
    world.add_channel("first")
    world.rows.add_task(world.user, 1, DUE)
    await world.go_to(AT)
    await world.go_to("2026-03-01T13:59:00+00:00")
    assert (world.state(), len(world.receiver.accepted)) == ("sent", 1)


async def test_quiet_hours(world: World) -> None:
    """One message at their end lists what was held; what is due at their end is not in it."""
    world.add_channel("first")
    world.rows.set_settings(world.user, quiet_from="22:00", quiet_until="07:00", digest_time="06:00")
    for number, due in enumerate(("2026-03-02 21:55", "2026-03-02 22:00", "2026-03-03 06:55", "2026-03-03 07:00"), 1):
        world.rows.add_task(world.user, number, due)
    world.rows.add_task(world.user, 5, "2026-03-01")
    await world.pass_time(timedelta(minutes=5), hours=18)
    assert sorted((body["kind"], body["title"]) for body in world.receiver.at("first")) == [
        ("held", "3 notifications from your quiet hours"),
        ("task", "task 1"),
        ("task", "task 4"),
    ]
    [body] = [body["body"] for body in world.receiver.at("first") if body["kind"] == "held"]
    assert sorted(body.splitlines()) == ["task 2", "task 3", "task 5"]
    alerts = world.rows.alerts(world.user)
    held = alerts[-1]
    assert [alert["state"] for alert in alerts] == ["sent", "merged", "merged", "merged", "sent", "sent"]
    assert held["created_at"] == datetime(2026, 3, 3, 6, tzinfo=UTC)
    assert {alert["merged_into"] for alert in alerts if alert["state"] == "merged"} == {held["id"]}


async def test_quiet_hours_that_end_earlier(world: World) -> None:
    world.add_channel("first")
    world.rows.set_settings(world.user, quiet_from="12:00", quiet_until="18:00")
    world.rows.add_task(world.user, 1, DUE)
    await world.go_to(AT)
    assert (world.state(), world.receiver.received) == ("held", [])
    world.rows.set_settings(world.user, quiet_until="15:00")
    await world.pass_time(minutes=1)
    [body] = world.receiver.at("first")
    assert (body["kind"], body["url"]) == ("held", "https://todo.example/t/1")


async def test_three_at_once(world: World) -> None:
    world.add_channel("first")
    for number in (1, 2, 3):
        world.rows.add_task(world.user, number, DUE)
    await world.go_to(AT)
    assert sorted(body["title"] for body in world.receiver.at("first")) == ["task 1", "task 2", "task 3"]


async def test_four_at_once(world: World) -> None:
    """They come in one message, some seconds later, which a repetition sends with the same key."""
    world.receiver.answer("first", after(SECONDS * 2), status(204))
    world.add_channel("first")
    for number in (1, 2, 3, 4):
        world.rows.add_task(world.user, number, DUE)
    await world.go_to(AT)
    assert (world.receiver.received, {alert["state"] for alert in world.rows.alerts(world.user)}) == ([], {"collected"})
    await world.pass_time(timedelta(seconds=5), minutes=1)
    assert [(body["kind"], body["title"], body["late"]) for body in world.receiver.at("first")] == [
        ("several", "4 reminders", False)
    ] * 2
    body = world.receiver.at("first")[0]
    assert (body["body"], body["url"]) == ("task 1\ntask 2\ntask 3\ntask 4", "https://todo.example/today")
    assert len(set(world.receiver.keys("first"))) == 1
    *merged, several = world.rows.alerts(world.user)
    assert (several["state"], {(alert["state"], alert["merged_into"]) for alert in merged}) == (
        "sent",
        {("merged", several["id"])},
    )


async def test_more_at_once_than_are_moved_at_once(world: World) -> None:
    world.add_channel("first")
    world.alert_clock = AlertClock(world.database, world.clock, "UTC", at_once=2)
    for number in range(1, 8):
        world.rows.add_task(world.user, number, DUE)
    await world.go_to(AT)
    await world.pass_time(timedelta(seconds=5), minutes=1)
    bodies = world.receiver.at("first")
    assert [body["kind"] for body in bodies] == ["task", "task", "several"]
    told = [body["title"] for body in bodies[:2]] + bodies[2]["body"].splitlines()
    assert sorted(told) == [f"task {number}" for number in range(1, 8)]


async def test_several_of_which_one_is_left(world: World) -> None:
    world.add_channel("first")
    for number in range(1, 6):
        world.rows.add_task(world.user, number, DUE)
    await world.go_to(AT)
    world.rows.execute("UPDATE tasks SET due_time = '18:00' WHERE user_id = %(user)s AND id > 1", user=world.user)
    await world.pass_time(seconds=30)
    [body] = world.receiver.at("first")
    assert (body["title"], body["body"]) == ("task 1", "Due today at 15:00.")
    assert (body["kind"], body["task"], body["url"]) == ("several", None, "https://todo.example/t/1")


async def test_several_that_are_late(world: World) -> None:
    world.add_channel("first")
    for number in range(1, 7):
        world.rows.add_task(world.user, number, DUE)
    await world.alert_clock.tick()
    await world.go_to("2026-03-02T15:00:00+00:00")
    await world.pass_time(seconds=30)
    [body] = world.receiver.at("first")
    assert (body["late"], body["body"].splitlines()[-2:]) == (True, ["and 1 more", "These notifications are late."])


async def test_several_in_quiet_hours(world: World) -> None:
    """They are held, and listed at the end with what else was held."""
    world.add_channel("first")
    world.rows.set_settings(world.user, quiet_from="15:00", quiet_until="16:00")
    for number in range(1, 6):
        world.rows.add_task(world.user, number, DUE)
    world.rows.add_task(world.user, 6, "2026-03-02 15:30")
    await world.go_to(AT)
    await world.pass_time(minutes=59)
    assert world.receiver.received == []
    for number in range(7, 12):
        world.rows.add_task(world.user, number, "2026-03-02 16:00")
    await world.pass_time(timedelta(seconds=30), minutes=2)
    assert [(body["kind"], body["title"]) for body in world.receiver.at("first")] == [
        ("held", "6 notifications from your quiet hours"),
        ("several", "5 reminders"),
    ]


async def test_one_that_may_have_arrived_is_not_combined(world: World) -> None:
    world.receiver.answer("first", after(SECONDS * 2), status(204))
    world.add_channel("first")
    world.rows.add_task(world.user, 1, DUE)
    for number in range(2, 7):
        world.rows.add_task(world.user, number, "2026-03-02 15:01")
    await world.go_to(AT)
    await world.go_to("2026-03-02T14:01:00+00:00")
    await world.pass_time(seconds=30)
    assert [body["title"] for body in world.receiver.at("first")] == ["task 1", "task 1", "5 reminders"]
    assert len(set(world.receiver.keys("first"))) == 2


async def test_a_schedule(world: World) -> None:
    """An outcome of a run is told once, also if its process tells it again."""
    world.add_channel("first")
    for _ in range(2):
        async with world.database.transaction(world.user) as tx:
            await add_schedule_alert(tx, world.user, "7", "run_1", "failed", now=world.clock())
    await world.step()
    [body] = world.receiver.at("first")
    assert (body["kind"], body["title"], body["task"]) == ("schedule", "A scheduled run has failed", None)


async def test_many_users_at_once(world: World) -> None:
    """One whose channel hangs does not keep the others waiting for longer than one try."""
    world.receiver.answer("hangs", after(SECONDS * 3))
    world.sender = world.new_sender(at_once=5)
    world.alert_clock = AlertClock(world.database, world.clock, "UTC", singly=20)
    world.add_channel("hangs")
    for number in range(1, 21):
        world.rows.add_task(world.user, number, DUE)
    other = World(world.rows, world.database, world.composer._tools, world.receiver)
    other.add_channel("first")
    other.rows.add_task(other.user, 1, DUE)
    await world.go_to(AT)
    assert len(world.receiver.at("first")) == 1
    nth = [path for path, _, _ in world.receiver.received].index("first")
    assert nth < 10


async def test_another_user_while_a_channel_hangs(world: World) -> None:
    """Tries of many alerts that end one after the other leave room for what is due later."""
    other = World(world.rows, world.database, world.composer._tools, world.receiver)
    other.add_channel("first")
    other.rows.add_task(other.user, 1, "2026-03-02 15:01")

    async def let_the_other_be_due() -> Response:
        world.clock.now = datetime.fromisoformat(AT) + timedelta(minutes=1)
        await world.alert_clock.tick()
        return await after(SECONDS / 2)()

    world.receiver.answer("hangs", let_the_other_be_due, after(SECONDS / 2))
    world.sender = world.new_sender(at_once=2)
    world.alert_clock = AlertClock(world.database, world.clock, "UTC", singly=20)
    world.add_channel("hangs")
    for number in range(1, 21):
        world.rows.add_task(world.user, number, DUE)
    await world.go_to(AT)
    nth = [path for path, _, _ in world.receiver.received].index("first")
    assert nth < 5


async def test_more_tasks_than_a_message_reads(world: World) -> None:
    """What was not read is not counted, and the message says so."""
    world.add_channel("first")
    world.rows.set_settings(world.user, digest_time="15:00", quiet_from="16:00", quiet_until="17:00")
    for first, due_on, due_time in ((1, "2026-03-01", None), (1_001, "2026-03-02", "16:30")):
        world.rows.execute(
            "INSERT INTO tasks (user_id, id, title, due_on, due_time)"
            " SELECT %(user)s, n, 'x', %(due_on)s, %(due_time)s FROM generate_series(%(first)s::int, %(last)s) AS n",
            user=world.user,
            due_on=due_on,
            due_time=due_time,
            first=first,
            last=first + 249,
        )
    world.rows.add_task(world.user, 2_000, "2026-03-02")
    await world.go_to(AT)
    await world.go_to("2026-03-02T15:30:00+00:00")
    await world.pass_time(minutes=31)
    digest, held = world.receiver.at("first")
    assert (digest["title"], held["title"]) == (
        "1 task for today, at least 199 overdue",
        "At least 200 notifications from your quiet hours",
    )
    assert digest["body"].splitlines()[-1] == held["body"].splitlines()[-1] == "and more"


async def test_the_page_shows_what_is_due_after_many_tasks_that_are_done(world: World) -> None:
    world.alert_clock = AlertClock(world.database, world.clock, "UTC", singly=25)
    for number in range(1, 26):
        world.rows.add_task(world.user, number, DUE)
    await world.go_to(AT)
    world.rows.execute(
        "UPDATE tasks SET status = 'completed', completed_at = now() WHERE user_id = %(user)s", user=world.user
    )
    world.rows.add_task(world.user, 30, "2026-03-02 15:01")
    await world.go_to("2026-03-02T14:01:00+00:00")
    service = AlertService(
        database=world.database,
        tools=world.composer._tools,
        sender=world.sender,
        composer=world.composer,
        channels=world.channels,
        clock=world.clock,
    )
    assert [message.title for message in await service.list_unshown(world.user)] == ["task 30"]


async def test_a_run_that_waits_again(world: World) -> None:
    """It is told again, but not after the user has decided."""
    world.add_channel("first")
    for _ in range(2):
        async with world.database.transaction(world.user) as tx:
            await add_schedule_alert(tx, world.user, "7", "run_1", "waiting", now=world.clock())
        world.clock.now += timedelta(minutes=1)
    assert len(world.rows.alerts(world.user)) == 2
    alert = Alert(1, "key", "schedule", [], "7", "run_1", "waiting", world.clock(), False, "pending")
    work = Work(alert, [], Recipient(), [], {})
    now = {"address": "https://todo.example", "now": world.clock(), "zone": ZoneInfo("UTC")}
    for state, expected in (("waiting", "“look” waits for your approval"), ("running", None), ("completed", None)):
        message = compose(work, [], run=ScheduledRun("thr_1", state, "look", None), **now)
        assert (None if message is None else message.title) == expected
