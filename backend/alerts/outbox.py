"""The outbox: alerts that are to be sent, and what happened at each channel.

Whoever works on an alert has claimed it until `next_at`, and changes it only while that is unchanged: after that time
another process may have begun to work on it.
"""

import hashlib
import secrets
from base64 import urlsafe_b64encode
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from backend.alerts import user_channels
from backend.alerts.settings import AlertSettings
from backend.alerts.states import AlertKind, AlertState, DeliveryState
from backend.alerts.user_channels import UserChannel
from common.database import NO_USER, Database, Transaction

MOST_TASKS = 200
"""How many tasks an alert lists, which may not be all that are meant; also those of a digest in `claim_alerts`."""
_KEY_BYTES, _PROOF_BYTES = 18, 16
_TAKE = "SELECT user_id, id, next_at FROM take_alerts(%(now)s, %(seconds)s, %(most)s, %(of_user)s, %(busy)s)"
_ALERT_COLUMNS = "id, key, kind, task_dues AS tasks, schedule_id, run_id, outcome, alert_at, late, state"
_ALERT = f"""
SELECT {_ALERT_COLUMNS} FROM alerts
WHERE user_id = %(user)s AND id = %(id)s
    AND (%(lease)s::timestamptz IS NULL OR next_at = %(lease)s AND state IN ('pending', 'collected', 'held'))"""
_MERGED_RUNS = f"""
SELECT {_ALERT_COLUMNS} FROM alerts
WHERE user_id = %(user)s AND merged_into = %(id)s AND kind = 'schedule' ORDER BY id"""
_DELIVERIES = """
SELECT channel_id, state, attempts, first_at, at FROM alert_deliveries
WHERE user_id = %(user)s AND alert_id = %(id)s"""
_USER = """
SELECT settings.is_on, settings.remind, settings.digest_time, settings.quiet_from, settings.quiet_until,
    (SELECT time_zone FROM profiles WHERE user_id = %(user)s) AS time_zone,
    EXISTS (
        SELECT FROM accounts WHERE user_id = %(user)s AND coalesce(disabled_at, provider_refused_at) IS NOT NULL
    ) OR %(needs_account)s AND NOT EXISTS (SELECT FROM accounts WHERE user_id = %(user)s) AS is_disabled
FROM alert_settings AS settings WHERE settings.user_id = %(user)s"""
_IS_MINE = """
EXISTS (
    SELECT FROM alerts WHERE user_id = %(user)s AND id = %(id)s AND next_at = %(lease)s AND state = 'pending' FOR UPDATE
)"""
# One that is in the state `sending` may have arrived.
_BEGIN = f"""
INSERT INTO alert_deliveries (user_id, alert_id, channel_id, state, attempts, proof, first_at, at)
SELECT %(user)s, %(id)s, %(channel)s, 'sending', 1, %(proof)s, %(now)s, %(now)s WHERE {_IS_MINE}
ON CONFLICT (user_id, alert_id, channel_id) DO UPDATE SET state = 'sending', at = excluded.at,
    attempts = alert_deliveries.attempts + 1,
    repetitions = alert_deliveries.repetitions + (alert_deliveries.state = 'sending')::int
RETURNING proof, attempts, repetitions, first_at"""
_GIVE_UP = """
UPDATE alert_deliveries SET state = 'gave_up', problem = coalesce(%(problem)s, problem), at = %(now)s
WHERE user_id = %(user)s AND alert_id = %(id)s AND channel_id = %(channel)s AND state <> 'shown'"""
_END_DELIVERY = """
UPDATE alert_deliveries SET state = %(state)s, problem = %(problem)s, at = %(now)s
WHERE user_id = %(user)s AND alert_id = %(id)s AND channel_id = %(channel)s AND state = 'sending'"""
_NOTE_CHANNEL = """
UPDATE alert_channels SET problem = %(problem)s, is_on = is_on AND NOT %(ends)s,
    last_sent_at = CASE WHEN %(was_sent)s THEN %(now)s ELSE last_sent_at END
WHERE user_id = %(user)s AND id = %(channel)s"""
_END = """
UPDATE alerts SET state = %(state)s, next_at = %(next_at)s
WHERE user_id = %(user)s AND id = %(id)s AND next_at = %(lease)s AND state IN ('pending', 'collected', 'held')"""
# All in a state becomes one alert. The row of the settings is locked so that two processes do not both combine it.
_LOCK = "SELECT FROM alert_settings WHERE user_id = %(user)s FOR UPDATE"
_COMBINE = """
WITH waiting AS (
    SELECT id, task_dues, late FROM alerts
    WHERE user_id = %(user)s AND state = %(state)s AND state IN ('collected', 'held')
), combined AS (
    INSERT INTO alerts (user_id, key, kind, task_dues, alert_at, created_at, late, state, next_at)
    SELECT %(user)s, %(key)s, %(kind)s, (
        SELECT coalesce(jsonb_agg(task), '[]') FROM (
            SELECT DISTINCT task
            FROM waiting AS part CROSS JOIN LATERAL jsonb_array_elements(part.task_dues) AS task
            ORDER BY task LIMIT %(most)s
        ) AS listed
    ), %(now)s, %(now)s, %(kind)s = 'several' AND bool_and(late), 'pending', %(now)s
    FROM waiting HAVING count(*) > 0 RETURNING id
)
UPDATE alerts SET state = 'merged', next_at = NULL, merged_into = combined.id FROM waiting, combined
WHERE alerts.user_id = %(user)s AND alerts.id = waiting.id"""
_ADD = """
INSERT INTO alerts
    (user_id, key, kind, schedule_id, run_id, outcome, alert_at, created_at, state, next_at)
SELECT %(user)s, %(key)s, %(kind)s, %(schedule)s, %(run)s, %(outcome)s, %(now)s, %(now)s, %(state)s, %(next_at)s
WHERE %(kind)s = 'test' OR EXISTS (SELECT FROM alert_settings WHERE user_id = %(user)s AND is_on)
ON CONFLICT (user_id, key) DO NOTHING RETURNING id"""


@dataclass(frozen=True, slots=True)
class AlertClaim:
    """An alert that this process works on until `next_at`."""

    user_id: str
    id: int
    next_at: datetime


@dataclass(frozen=True, slots=True)
class Alert:
    """`tasks` are objects with `id`, and the `due_on` and `due_time` that were meant."""

    id: int
    key: str
    kind: AlertKind
    tasks: list[dict[str, Any]]
    schedule_id: str | None
    run_id: str | None
    outcome: str | None
    alert_at: datetime
    late: bool
    state: AlertState


@dataclass(frozen=True, slots=True)
class Delivery:
    channel_id: int
    state: DeliveryState
    attempts: int
    first_at: datetime
    at: datetime


@dataclass(frozen=True, slots=True)
class Recipient(AlertSettings):
    """The user's settings, and what else decides whether they are notified now."""

    time_zone: str | None = None
    is_disabled: bool = False


@dataclass(frozen=True, slots=True)
class Work:
    """A claimed alert with its user's settings, channels and deliveries.

    `merged` are the alerts about scheduled runs that it lists.
    """

    alert: Alert
    merged: list[Alert]
    recipient: Recipient
    channels: list[UserChannel]
    deliveries: dict[int, Delivery]
    """By channel."""


@dataclass(frozen=True, slots=True)
class Try:
    """A try to send; `repetitions` counts the tries, with this one, before which the notification may have arrived."""

    proof: str
    attempts: int
    repetitions: int
    first_at: datetime
    """When the channel was tried first."""


@dataclass(frozen=True, slots=True)
class Stored:
    """The states that are stored after a try; without `next_at`, the alert is done."""

    delivery: DeliveryState
    state: AlertState
    next_at: datetime | None
    ends_channel: bool = False


class Outbox:
    def __init__(self, database: Database, *, needs_account: bool = False) -> None:
        """With `needs_account`, only users with an account are notified."""
        self._database, self._needs_account = database, needs_account

    async def take(
        self, now: datetime, *, lease_seconds: float, most: int, of_user: int, busy: Sequence[str] = ()
    ) -> list[AlertClaim]:
        """Claims alerts that are to be worked on: at most `of_user` of each user, and none of those who are `busy`."""
        values = {"seconds": lease_seconds, "most": most, "of_user": of_user, "busy": [*busy]}
        return await self._database.fetch_all(NO_USER, _TAKE, AlertClaim, now=now, **values)

    async def load(self, claim: AlertClaim) -> Work | None:
        """Returns None if the alert has ended, or is no longer claimed by this process."""
        return await self._load(claim.user_id, claim.id, claim.next_at)

    async def load_unclaimed(self, user_id: str, alert_id: int) -> Work | None:
        """Loads an alert to show it, whatever its state."""
        return await self._load(user_id, alert_id, None)

    async def _load(self, user_id: str, alert_id: int, lease: datetime | None) -> Work | None:
        async with self._database.transaction(user_id) as tx:
            alerts = await tx.execute(_ALERT, Alert, id=alert_id, lease=lease)
            merged = await tx.execute(_MERGED_RUNS, Alert, id=alert_id)
            recipients = await tx.execute(_USER, Recipient, needs_account=self._needs_account)
            channels = await tx.execute(user_channels.LIST, UserChannel)
            deliveries = await tx.execute(_DELIVERIES, Delivery, id=alert_id)
        if (alert := await alerts.fetchone()) is None:
            return None
        return Work(
            alert,
            await merged.fetchall(),
            await recipients.fetchone() or Recipient(),
            await channels.fetchall(),
            {one.channel_id: one for one in await deliveries.fetchall()},
        )

    async def begin(self, claim: AlertClaim, channel_id: int, now: datetime) -> Try | None:
        """Stores that the alert is about to be sent; returns None if it is no longer claimed by this process."""
        values = {"id": claim.id, "lease": claim.next_at, "channel": channel_id, "now": now}
        return await self._database.fetch_one(
            claim.user_id, _BEGIN, Try, proof=secrets.token_urlsafe(_PROOF_BYTES), **values
        )

    async def end_try(
        self, claim: AlertClaim, channel_id: int, stored: Stored, now: datetime, *, problem: str | None
    ) -> None:
        """Stores the result of a try, for the delivery, the channel and the alert."""
        values = {"id": claim.id, "channel": channel_id, "now": now, "problem": problem}
        was_sent = stored.delivery == "accepted"
        async with self._database.transaction(claim.user_id) as tx:
            await tx.execute(_END, id=claim.id, lease=claim.next_at, state=stored.state, next_at=stored.next_at)
            await tx.execute(_END_DELIVERY, state=stored.delivery, **values)
            await tx.execute(_NOTE_CHANNEL, ends=stored.ends_channel, was_sent=was_sent, **values)

    async def give_up(self, claim: AlertClaim, channels: Sequence[tuple[int, str | None]], now: datetime) -> None:
        """Stores which channels are not used any more for the alert, each with its problem."""
        async with self._database.transaction(claim.user_id) as tx:
            for channel_id, problem in channels:
                await tx.execute(_GIVE_UP, id=claim.id, channel=channel_id, problem=problem, now=now)

    async def end(self, claim: AlertClaim, state: AlertState, next_at: datetime | None = None) -> None:
        """Stores the alert's state, or until when it waits."""
        values = {"id": claim.id, "lease": claim.next_at, "state": state, "next_at": next_at}
        await self._database.execute(claim.user_id, _END, **values)

    async def combine(self, user_id: str, state: Literal["collected", "held"], now: datetime) -> None:
        """Makes one alert, to be sent now, of all that were due together, or that quiet hours have held."""
        kind = "held" if state == "held" else "several"
        key = make_key(user_id, kind, now.isoformat())
        async with self._database.transaction(user_id) as tx:
            await tx.execute(_LOCK)
            await tx.execute(_COMBINE, key=key, kind=kind, state=state, now=now, most=MOST_TASKS)


async def add_schedule_alert(
    tx: Transaction, user_id: str, schedule_id: str, run_id: str | None, outcome: str, *, now: datetime
) -> None:
    """Adds an alert about a scheduled run, or one that was skipped, if its user wants to be notified.

    Of each run, an outcome is added once; it may wait several times.
    """
    values = {"schedule": schedule_id, "run": run_id, "outcome": outcome}
    times = [now.isoformat()] if outcome == "waiting" else []
    key = make_key(user_id, "schedule", schedule_id, run_id or now.isoformat(), outcome, *times)
    await tx.execute(_ADD, key=key, kind="schedule", state="pending", now=now, next_at=now, **values)


async def add_test_alert(
    database: Database, user_id: str, channel_id: int, *, now: datetime, until: datetime
) -> tuple[AlertClaim, Try]:
    """Adds a test, which the caller sends at once."""
    values = {"schedule": None, "run": None, "outcome": None, "state": "pending", "next_at": until}
    row = await database.fetch_one(user_id, _ADD, key=secrets.token_urlsafe(_KEY_BYTES), kind="test", now=now, **values)
    assert row is not None
    claim = AlertClaim(user_id, row["id"], until)
    begun = await Outbox(database).begin(claim, channel_id, now)
    assert begun is not None
    return claim, begun


def make_key(*parts: str) -> str:
    """Returns the key of an alert, by which repetitions are recognised, as the SQL function `alert_key` does."""
    hashed = hashlib.sha256("\n".join(parts).encode()).digest()
    return urlsafe_b64encode(hashed[:_KEY_BYTES]).decode()
