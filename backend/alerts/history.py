"""Reads what became of a user's alerts, and stores that they were shown or snoozed."""

from dataclasses import dataclass
from datetime import date, datetime
from typing import Any

from backend.alerts.states import AlertKind, AlertState, DeliveryState
from common.database import NO_USER, Database

_ALERTS = "SELECT id, key, kind, task_dues AS tasks, alert_at, late, state FROM alerts WHERE user_id = %(user)s"
_LIST = f"{_ALERTS} AND state <> 'merged' ORDER BY id DESC LIMIT %(most)s"
_DELIVERIES = """
SELECT delivery.alert_id, delivery.channel_id, channel.kind, channel.name, delivery.state, delivery.at, delivery.problem
FROM alert_deliveries AS delivery JOIN alert_channels AS channel
    ON channel.user_id = %(user)s AND channel.id = delivery.channel_id
WHERE delivery.user_id = %(user)s AND delivery.alert_id = ANY(%(ids)s) ORDER BY delivery.first_at"""
# Alerts that have not reached the user: there was no channel, each has failed so far, or no device has confirmed. The
# newest count, as of the older ones some may be about tasks that are done.
_UNSHOWN = """
SELECT id FROM alerts WHERE user_id = %(user)s AND shown_at IS NULL AND alert_at > %(since)s
    AND state IN ('pending', 'sent', 'failed') AND kind <> 'test'
    AND (state <> 'pending' OR EXISTS (
        SELECT FROM alert_deliveries AS tried WHERE tried.user_id = %(user)s AND tried.alert_id = alerts.id
    ))
    AND NOT EXISTS (
        SELECT FROM alert_deliveries AS arrived WHERE arrived.user_id = %(user)s AND arrived.alert_id = alerts.id
            AND arrived.state IN ('sending', 'accepted', 'shown')
    )
ORDER BY id DESC LIMIT %(most)s"""
_CONFIRM = "SELECT confirm_alert(%(proof)s, %(now)s)"
_SHOW = """
UPDATE alerts SET state = 'shown', next_at = NULL, shown_at = coalesce(shown_at, %(now)s)
WHERE user_id = %(user)s AND key = %(key)s AND state NOT IN ('collected', 'held', 'merged') RETURNING id"""
_FIND = f"{_ALERTS} AND key = %(key)s"
_SNOOZE = """
UPDATE tasks SET snoozed_until = %(until)s
WHERE user_id = %(user)s AND id = %(task)s AND status = 'pending'
    AND due_on IS NOT DISTINCT FROM %(due_on)s::date AND due_time IS NOT DISTINCT FROM %(due_time)s::time
RETURNING id"""


@dataclass(frozen=True, slots=True)
class PastAlert:
    id: int
    key: str
    kind: AlertKind
    tasks: list[dict[str, Any]]
    alert_at: datetime
    late: bool
    state: AlertState

    @property
    def task(self) -> dict[str, Any] | None:
        """The task that the user can complete or snooze by the alert; None if it is about several, or none."""
        return self.tasks[0] if self.kind == "task" and self.tasks else None


@dataclass(frozen=True, slots=True)
class PastDelivery:
    alert_id: int
    channel_id: int
    kind: str
    name: str
    state: DeliveryState
    at: datetime
    problem: str | None


async def list_alerts(
    database: Database, user_id: str, *, most: int
) -> tuple[list[PastAlert], dict[int, list[PastDelivery]]]:
    """Returns the newest alerts, and the deliveries of each by its id."""
    alerts = await database.fetch_all(user_id, _LIST, PastAlert, most=most)
    ids = [alert.id for alert in alerts]
    by_alert = {alert.id: list[PastDelivery]() for alert in alerts}
    for delivery in await database.fetch_all(user_id, _DELIVERIES, PastDelivery, ids=ids):
        by_alert[delivery.alert_id].append(delivery)
    return alerts, by_alert


async def list_unshown(database: Database, user_id: str, *, since: datetime, most: int) -> list[int]:
    """Returns the ids of the newest alerts since then that an open page should show, the oldest first."""
    rows = await database.fetch_all(user_id, _UNSHOWN, since=since, most=most)
    return [row["id"] for row in reversed(rows)]


async def confirm(database: Database, proof: str, now: datetime) -> None:
    """Stores that a device has shown the alert of this proof, if there is one; the device need not be signed in."""
    await database.fetch_all(NO_USER, _CONFIRM, proof=proof, now=now)


async def show(database: Database, user_id: str, key: str, now: datetime) -> bool:
    """Stores that the page has shown an alert; returns False if there is none."""
    return await database.fetch_one(user_id, _SHOW, key=key, now=now) is not None


async def find_alert(database: Database, user_id: str, key: str) -> PastAlert | None:
    return await database.fetch_one(user_id, _FIND, PastAlert, key=key)


async def snooze(
    database: Database, user_id: str, task: int, *, due_on: str | date | None, due_time: str | None, until: datetime
) -> bool:
    """Lets a task alert again; returns False if it is not pending, or is due at another time."""
    values = {"task": task, "due_on": due_on, "due_time": due_time, "until": until}
    return await database.fetch_one(user_id, _SNOOZE, **values) is not None
