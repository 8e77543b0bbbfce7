"""How long a tick takes with many tasks, and how many statements it sends."""

import statistics
import sys
import time
from collections.abc import Awaitable, Callable
from datetime import UTC, timedelta

import pytest

from backend.alerts.clock import AlertClock
from backend.alerts.outbox import Outbox
from common.database import Database
from tests.alerts.conftest import MovableClock, new_name
from tests.alerts.rows import AlertRows

USERS, TASKS = 100, 100_000
_ADD = """
INSERT INTO tasks (user_id, id, title, due_on, due_time)
SELECT %(user)s, n, 'task ' || n, date '2027-01-01' + (n / 20)::int,
    time '08:00' + make_interval(mins => (n %% 700)::int)
FROM generate_series(1, %(count)s::bigint) AS n"""
_ADD_DUE = """
INSERT INTO tasks (user_id, id, title, due_on, due_time)
SELECT %(user)s, %(first)s::bigint + n, 'due', %(due)s::timestamp::date, %(due)s::timestamp::time
FROM generate_series(1, %(count)s::bigint) AS n"""


async def measure(act: Callable[[], Awaitable[object]]) -> float:
    began = time.perf_counter()
    await act()
    return (time.perf_counter() - began) * 1_000


def describe(name: str, milliseconds: list[float]) -> dict[str, float]:
    """Other programs make some ticks slower, so the best one says most about the statements."""
    return {name: statistics.median(milliseconds), f"{name}, best": min(milliseconds)}


@pytest.mark.extended
async def test_a_tick_with_100_000_tasks(rows: AlertRows, database: Database) -> None:
    users = [new_name() for _ in range(USERS)]
    clock = MovableClock("2026-12-01T00:00:00+00:00")
    alert_clock, outbox = AlertClock(database, clock, "Europe/Berlin"), Outbox(database)
    for user in users:
        rows.set_settings(user)
        rows.set_zone(user, "Europe/Berlin")
        rows.execute(_ADD, user=user, count=TASKS // USERS)
    rows.execute("ANALYZE tasks")
    figures = {"compute 100,000 instants": await measure(alert_clock.tick)}
    rows.execute("VACUUM ANALYZE tasks")
    checked = AlertClock(database, clock, "Europe/Berlin")
    figures["tick of 20 that check all"] = await measure(checked.tick)
    for _ in range(20):
        await alert_clock.tick()

    async def take() -> None:
        await outbox.take(clock.now, lease_seconds=90, most=50, of_user=10)

    idle, taking = list[float](), list[float]()
    for _ in range(100):
        clock.now += timedelta(seconds=5)
        idle.append(await measure(alert_clock.tick))
        taking.append(await measure(take))
    figures |= describe("idle tick", idle) | describe("idle sender", taking)
    busy, taking = list[float](), list[float]()
    for number in range(10):
        clock.now += timedelta(minutes=1)
        due = clock.now.astimezone(UTC) + timedelta(hours=1)
        for user in users:
            first = TASKS + number
            rows.execute(_ADD_DUE, user=user, first=first, count=1, due=f"{due:%Y-%m-%d %H:%M}")
        await alert_clock._refresh(clock.now)
        busy.append(await measure(alert_clock.tick))
        taking.append(await measure(take))
    figures |= describe("tick with 100 due", busy) | describe("sender takes 50", taking)
    figures["a new zone of a user with 1,000 tasks"] = await measure(_change_zone(rows, users[0]))
    figures["tick after it"] = await measure(alert_clock.tick)
    [counted] = rows.all("SELECT count(*) AS alerts FROM alerts")
    assert counted["alerts"] == 1_000
    sys.stdout.write("\n" + "\n".join(f"{name}: {value:.1f} ms" for name, value in figures.items()) + "\n")
    assert figures["idle tick, best"] < 20
    assert figures["tick with 100 due, best"] < 200


def _change_zone(rows: AlertRows, user: str) -> Callable[[], Awaitable[None]]:
    async def change() -> None:
        rows.set_zone(user, "America/New_York")

    return change
