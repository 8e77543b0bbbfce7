"""When a task alerts: in its user's zone, after every change of the task, the settings and the zone."""

import asyncio
from datetime import UTC, datetime, time, timedelta
from zoneinfo import ZoneInfo

import psycopg
import pytest

from backend.alerts.clock import AlertClock
from common.database import Database
from tests.alerts.conftest import MovableClock, new_name
from tests.alerts.rows import AlertRows
from tests.logins import as_admin


def instant_of(wall: datetime, zone: str) -> datetime:
    """The first one of a repeated wall time; one that is skipped, by the offset from before the change."""
    return wall.replace(tzinfo=ZoneInfo(zone)).astimezone(UTC)


class Changes:
    """A user with tasks, whose clock is set."""

    def __init__(self, rows: AlertRows, database: Database, now: str, zone: str | None = "Europe/Berlin") -> None:
        self.rows, self.user, self.clock = rows, new_name(), MovableClock(now)
        self.alert_clock = AlertClock(database, self.clock, "UTC")
        rows.set_settings(self.user)
        if zone:
            rows.set_zone(self.user, zone)

    async def tick(self, now: str | None = None) -> None:
        if now is not None:
            self.clock.now = datetime.fromisoformat(now)
        await self.alert_clock.tick()

    def alert_at(self, number: int = 1) -> str | None:
        found = self.rows.alert_at(self.user, number)
        return found and f"{found.astimezone(UTC):%Y-%m-%d %H:%M}"

    def alerted(self) -> list[tuple[int, str]]:
        return [
            (alert["tasks"][0]["id"], f"{alert['created_at'].astimezone(UTC):%Y-%m-%d %H:%M}")
            for alert in self.rows.alerts(self.user)
        ]


@pytest.fixture
def changes(rows: AlertRows, database: Database) -> Changes:
    return Changes(rows, database, "2026-03-01T00:00+00:00")


async def test_a_task_alerts_at_its_time(changes: Changes) -> None:
    changes.rows.add_task(changes.user, 1, "2026-03-02 15:00")
    await changes.tick()
    assert changes.alert_at() == "2026-03-02 14:00"
    await changes.tick("2026-03-02T13:59:59+00:00")
    assert changes.alerted() == []
    await changes.tick("2026-03-02T14:00:00+00:00")
    assert changes.alerted() == [(1, "2026-03-02 14:00")]
    for later in ("2026-03-02T14:00:05+00:00", "2026-03-02T13:00:00+00:00", "2026-03-02T14:00:00+00:00"):
        await changes.tick(later)
    assert len(changes.alerted()) == 1
    [alert] = changes.rows.alerts(changes.user)
    assert (alert["kind"], alert["state"], alert["late"]) == ("task", "pending", False)
    assert alert["tasks"] == [{"id": 1, "due_on": "2026-03-02", "due_time": "15:00:00"}]
    assert len(alert["key"]) <= 32
    assert set(alert["key"]) <= set("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_")


@pytest.mark.parametrize(
    ("columns", "expected"),
    [
        ({"remind": 0}, "2026-03-02 14:00"),
        ({"remind": 10}, "2026-03-02 13:50"),
        ({"remind": 2880}, "2026-03-02 14:00"),  # that was past when it was set
        ({"remind": -1}, None),
        ({"status": "completed", "completed_at": "2026-03-01"}, None),
        ({"due_time": None}, None),
        ({"due_on": "2026-02-01"}, None),
        ({"snoozed_until": "2026-03-02 14:10+00"}, "2026-03-02 14:10"),
    ],
)
async def test_a_change_of_the_task(changes: Changes, columns: dict[str, object], expected: str | None) -> None:
    changes.rows.add_task(changes.user, 1, "2026-03-02 15:00")
    await changes.tick()
    changes.rows.set_task(changes.user, 1, **columns)
    await changes.tick()
    assert changes.alert_at() == expected


async def test_a_snooze_ends_with_another_due_date(changes: Changes) -> None:
    changes.rows.add_task(changes.user, 1, "2026-03-02 15:00", remind=60)
    await changes.tick("2026-03-02T13:00:00+00:00")
    changes.rows.set_task(changes.user, 1, snoozed_until="2026-03-02 13:10+00")
    await changes.tick("2026-03-02T13:00:05+00:00")
    changes.rows.set_task(changes.user, 1, due_time="18:00")
    await changes.tick("2026-03-02T13:00:10+00:00")
    assert changes.alert_at() == "2026-03-02 16:00"
    changes.rows.set_task(changes.user, 1, snoozed_until="2026-03-02 16:30+00")
    await changes.tick("2026-03-02T16:30:00+00:00")
    assert changes.alerted() == [(1, "2026-03-02 13:00"), (1, "2026-03-02 16:30")]
    assert changes.alert_at() is None


async def test_a_new_default(changes: Changes) -> None:
    changes.rows.add_task(changes.user, 1, "2026-03-02 15:00")
    changes.rows.add_task(changes.user, 2, "2026-03-02 15:00", remind=5)
    changes.rows.add_task(changes.user, 3, "2026-03-01 01:30")
    await changes.tick()
    changes.rows.set_settings(changes.user, remind=60)
    await changes.tick()
    assert [changes.alert_at(number) for number in (1, 2, 3)] == [
        "2026-03-02 13:00",
        "2026-03-02 13:55",
        "2026-03-01 00:30",
    ]
    changes.rows.set_settings(changes.user, remind=-1)
    await changes.tick()
    assert [changes.alert_at(number) for number in (1, 2, 3)] == [None, "2026-03-02 13:55", None]


async def test_a_new_zone(changes: Changes) -> None:
    changes.rows.add_task(changes.user, 1, "2026-03-02 15:00")
    changes.rows.add_task(changes.user, 2, "2026-03-01 12:00")
    await changes.tick()
    changes.rows.set_zone(changes.user, "America/New_York")
    await changes.tick()
    assert (changes.alert_at(1), changes.alert_at(2)) == ("2026-03-02 20:00", "2026-03-01 17:00")
    # In the new zone the time has passed: it alerts at once, as it has not yet.
    await changes.tick("2026-03-01T16:30:20+00:00")
    changes.rows.set_zone(changes.user, "Asia/Tokyo")
    await changes.tick("2026-03-01T16:30:25+00:00")
    assert changes.alerted() == [(2, "2026-03-01 16:30")]
    changes.rows.set_zone(changes.user, "Nowhere/Unknown")
    await changes.tick()
    assert changes.alert_at(1) == "2026-03-02 15:00"


async def test_a_user_without_zone(rows: AlertRows, database: Database) -> None:
    changes = Changes(rows, database, "2026-03-01T00:00+00:00", zone=None)
    rows.add_task(changes.user, 1, "2026-03-02 15:00")
    changes.alert_clock = AlertClock(database, changes.clock, "Asia/Tokyo")
    await changes.tick()
    assert changes.alert_at() == "2026-03-02 06:00"
    rows.set_zone(changes.user, "Europe/Berlin")
    await changes.tick()
    assert changes.alert_at() == "2026-03-02 14:00"


async def test_an_update_of_the_time_zone_database(changes: Changes) -> None:
    """What is stored is what an older database said; a later start of the process finds it."""
    changes.rows.add_task(changes.user, 1, "2026-03-02 15:00", remind=10)
    changes.rows.add_task(changes.user, 2, "2026-03-02 15:00")
    changes.rows.set_settings(changes.user, digest_time="08:00")
    await changes.tick()
    changes.rows.execute("UPDATE tasks SET alert_at = alert_at + interval '1 hour'")
    changes.rows.execute("UPDATE alert_settings SET digest_at = digest_at - interval '1 hour'")
    await changes.tick("2026-03-01T00:59+00:00")
    assert changes.alert_at(1) == "2026-03-02 14:50"
    await changes.tick("2026-03-01T01:00+00:00")
    await changes.tick("2026-03-01T01:00:05+00:00")
    assert (changes.alert_at(1), changes.alert_at(2)) == ("2026-03-02 13:50", "2026-03-02 14:00")
    [settings] = changes.rows.all("SELECT digest_at FROM alert_settings")
    assert settings["digest_at"] == datetime(2026, 3, 1, 7, tzinfo=UTC)


async def test_a_user_without_settings(changes: Changes) -> None:
    """Nothing is sent without them, and what has passed is not sent later."""
    changes.rows.execute("DELETE FROM alert_settings")
    changes.rows.add_task(changes.user, 1, "2026-03-02 15:00")
    await changes.tick("2026-03-02T14:00+00:00")
    changes.rows.set_settings(changes.user)
    await changes.tick("2026-03-02T14:01+00:00")
    assert (changes.alerted(), changes.alert_at()) == ([], None)


async def test_a_disabled_user(changes: Changes) -> None:
    changes.rows.execute(
        "INSERT INTO accounts (user_id, name, disabled_at) VALUES (%(user)s, 'ann', now())", user=changes.user
    )
    changes.rows.add_task(changes.user, 1, "2026-03-02 15:00")
    await changes.tick("2026-03-02T14:00+00:00")
    assert changes.alerted() == []


async def test_a_late_alert(changes: Changes) -> None:
    """After some hours without a process: once, and marked; after more than twelve, not at all."""
    changes.rows.add_task(changes.user, 1, "2026-03-02 15:00")
    changes.rows.add_task(changes.user, 2, "2026-03-02 22:00")
    await changes.tick()
    await changes.tick("2026-03-03T07:00+00:00")
    [alert] = changes.rows.alerts(changes.user)
    assert (alert["tasks"][0]["id"], alert["late"]) == (2, True)
    assert changes.alert_at(1) is None


async def test_the_digest(changes: Changes) -> None:
    """On each day once, if a task with only a day is open, at its time in the user's zone."""
    changes.rows.set_settings(changes.user, digest_time="08:00")
    changes.rows.add_task(changes.user, 1, "2026-03-02")
    changes.rows.add_task(changes.user, 2, "2026-03-03")
    changes.rows.add_task(changes.user, 3, "2026-03-02 23:00", remind=-1)
    await changes.tick("2026-03-01T07:00+00:00")
    assert changes.rows.alerts(changes.user) == []
    await changes.tick("2026-03-02T06:59+00:00")
    assert changes.rows.alerts(changes.user) == []
    await changes.tick("2026-03-02T07:00+00:00")
    [digest] = changes.rows.alerts(changes.user)
    assert (digest["kind"], [task["id"] for task in digest["tasks"]]) == ("digest", [1])
    # Neither a later time nor another zone brings a second one on that day.
    changes.rows.set_settings(changes.user, digest_time="09:00")
    changes.rows.set_zone(changes.user, "Europe/London")
    await changes.tick("2026-03-02T07:30+00:00")
    await changes.tick("2026-03-02T09:00+00:00")
    assert len(changes.rows.alerts(changes.user)) == 1
    await changes.tick("2026-03-03T09:00+00:00")
    [_, digest] = changes.rows.alerts(changes.user)
    assert sorted(task["id"] for task in digest["tasks"]) == [1, 2]
    changes.rows.set_settings(changes.user, digest_time=None)
    await changes.tick("2026-03-04T09:00+00:00")
    assert len([alert for alert in changes.rows.alerts(changes.user) if alert["kind"] == "digest"]) == 2


async def test_a_digest_after_a_night_without_a_process(changes: Changes) -> None:
    changes.rows.set_settings(changes.user, digest_time="08:00")
    changes.rows.add_task(changes.user, 1, "2026-03-02")
    await changes.tick("2026-03-01T20:00+00:00")
    await changes.tick("2026-03-02T10:00+00:00")
    [digest] = changes.rows.alerts(changes.user)
    assert digest["late"]
    await changes.tick("2026-03-02T10:00:05+00:00")
    assert len(changes.rows.alerts(changes.user)) == 1


async def test_a_clock_that_was_far_ahead(changes: Changes) -> None:
    """It made digests of days to come, which do not stop those of the present."""
    changes.rows.set_settings(changes.user, digest_time="08:00")
    changes.rows.add_task(changes.user, 1, "2026-03-02")
    await changes.tick("2030-01-01T12:00+00:00")
    await changes.tick("2026-03-01T12:00+00:00")
    await changes.tick("2026-03-02T07:00+00:00")
    assert [alert["kind"] for alert in changes.rows.alerts(changes.user)][-1:] == ["digest"]


# Of each zone, the day of a change of its clock forward and back, and a wall time that is skipped and one that repeats.
CLOCK_CHANGES = {
    "Australia/Lord_Howe": ("2026-10-04 02:15", "2026-04-05 01:45"),
    "Pacific/Chatham": ("2026-09-27 03:00", "2026-04-05 03:00"),
    "Africa/Casablanca": ("2026-03-22 02:30", "2026-02-15 02:30"),
    "America/New_York": ("2026-03-08 02:30", "2026-11-01 01:30"),
    "Europe/Berlin": ("2026-03-29 02:30", "2026-10-25 02:30"),
}


@pytest.mark.long(seconds=50)
@pytest.mark.parametrize("zone", CLOCK_CHANGES)
@pytest.mark.parametrize("which", [0, 1], ids=["forward", "back"])
async def test_a_week_across_a_change_of_the_clock(rows: AlertRows, database: Database, zone: str, which: int) -> None:
    """Each alert once, at the right instant, though the clock is set back and the machine sleeps for nine hours."""
    special = datetime.fromisoformat(CLOCK_CHANGES[zone][which])
    first = (special - timedelta(days=3)).replace(hour=0, minute=0)
    changes = Changes(rows, database, instant_of(first, zone).isoformat(), zone)
    walls = [special, *(datetime.combine(first.date() + timedelta(days=n), time(2, 30)) for n in range(7))]
    walls += [first + timedelta(hours=5 + 3 * n) for n in range(50)]
    for number, wall in enumerate(walls, 1):
        rows.add_task(changes.user, number, f"{wall:%Y-%m-%d %H:%M}", remind=(number % 3) * 20)
    rows.set_settings(changes.user, digest_time="07:30")
    rows.add_task(changes.user, 100, f"{first:%Y-%m-%d}")
    expected = {
        number: instant_of(wall, zone) - timedelta(minutes=(number % 3) * 20) for number, wall in enumerate(walls, 1)
    }
    end, moment = instant_of(first + timedelta(days=7), zone), changes.clock.now
    asleep = instant_of(special + timedelta(hours=20), zone)
    moments = list[datetime]()
    while moment < end:
        moments.append(moment)
        moment += timedelta(minutes=10)
    moments[300:300] = moments[294:300]  # the clock is set back by an hour
    for moment in moments:
        if not asleep < moment < asleep + timedelta(hours=9):
            changes.clock.now = moment
            await changes.alert_clock.tick()
    alerted = dict[int, list[datetime]]()
    digests = list[datetime]()
    for alert in rows.alerts(changes.user):
        if alert["kind"] == "digest":
            digests.append(alert["created_at"])
        else:
            alerted.setdefault(alert["tasks"][0]["id"], []).append(alert["created_at"])
    assert set(alerted) == set(expected)
    for number, instant in expected.items():
        [seen] = alerted[number]
        wakes = asleep + timedelta(hours=9)
        latest = wakes if asleep < instant < wakes else instant
        assert instant <= seen <= latest + timedelta(minutes=10), (number, walls[number - 1], seen)
    days = [first.date() + timedelta(days=n) for n in range(7)]
    assert [seen.astimezone(ZoneInfo(zone)).date() for seen in digests] == days, digests


async def test_old_alerts_are_deleted(changes: Changes) -> None:
    for age in ("29 days", "31 days"):
        changes.rows.execute(
            "INSERT INTO alerts (user_id, key, kind, alert_at, created_at, state)"
            " SELECT %(user)s, %(age)s, 'digest', at, at, 'sent'"
            " FROM (SELECT timestamptz '2026-03-01 00:00+00' - %(age)s::interval) AS past (at)",
            user=changes.user,
            age=age,
        )
    await changes.tick()
    assert [alert["key"] for alert in changes.rows.alerts(changes.user)] == ["29 days"]


async def test_a_user_who_changes_all_tasks_again_and_again(changes: Changes, database: Database) -> None:
    """What is due is moved meanwhile, also of others."""
    other = Changes(changes.rows, database, "2026-03-01T00:00+00:00")
    other.rows.add_task(other.user, 1, "2026-03-02 15:00")
    await other.tick()
    changes.rows.execute(
        "INSERT INTO tasks (user_id, id, title, due_on, due_time) SELECT %(user)s, n, 'x', '2026-04-01', '10:00'"
        " FROM generate_series(1, 10) AS n",
        user=changes.user,
    )

    class BusyClock(AlertClock):
        async def _refresh(self, now: datetime) -> int:
            refreshed = await super()._refresh(now)
            changes.rows.execute(
                "UPDATE tasks SET alert_stale_since = now() WHERE user_id = %(user)s", user=changes.user
            )
            return refreshed

    changes.clock.now = datetime.fromisoformat("2026-03-02T14:00+00:00")
    async with asyncio.timeout(60):
        await BusyClock(database, changes.clock, "UTC", at_once=5).tick()
    assert other.alerted() == [(1, "2026-03-02 14:00")]


async def test_a_task_that_somebody_is_changing(changes: Changes, database: Database, database_url: str) -> None:
    """The clock waits for nobody: the others are computed now, and this one by a later tick."""
    for number in (1, 2):
        changes.rows.add_task(changes.user, number, "2026-03-02 15:00")
    with psycopg.connect(as_admin(database_url)) as changing:
        changing.execute("SELECT FROM tasks WHERE user_id = %s AND id = 1 FOR UPDATE", [changes.user])
        async with asyncio.timeout(10):
            await changes.tick()
        assert (changes.alert_at(1), changes.alert_at(2)) == (None, "2026-03-02 14:00")
    await changes.tick()
    assert changes.alert_at(1) == "2026-03-02 14:00"
