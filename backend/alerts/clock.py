"""The clock of notifications: computes when tasks alert, and moves what is due to the outbox.

Every process has one. They need no connection of their own, and so work behind any pooler.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from psycopg.types.json import Jsonb

from backend.alerts import metrics
from backend.alerts.instants import find_alert, find_digest
from common.clock import Clock, choose_zone
from common.database import NO_USER, Database
from common.recurrence import to_instant

TICK_SECONDS = 5.0
_CHECK_EVERY = timedelta(hours=1)
_ROUNDS, _REFRESHED_PAGES = 25, 20  # of a tick; after so many pages, what is due is moved
_CHECKED_PAGES = 20  # in a tick, so that what is due does not wait for the check of all tasks
_AT_ONCE = 250  # rows in a statement, which are computed in a few milliseconds
_SINGLY = 3  # alerts of a user that are due together and are sent one by one; more become one message
_SWEPT_AT_ONCE = 1_000
_STALE = "SELECT * FROM stale_alerts(%(most)s)"
_SET = "SELECT set_alerts(%(instants)s)"
_STALE_DIGESTS = "SELECT * FROM stale_digests(%(most)s)"
_SET_DIGESTS = "SELECT set_digests(%(instants)s)"
_COMING = "SELECT * FROM coming_alerts(%(after)s, %(user)s, %(id)s, %(most)s)"
_MARK = "SELECT mark_alerts(%(instants)s, %(now)s)"
_MARK_DIGESTS = "SELECT mark_digests(%(now)s)"
_CLAIM = "SELECT moved, oldest FROM claim_alerts(%(now)s, %(most)s, %(singly)s)"
_SWEEP = "SELECT sweep_alerts(%(now)s, %(most)s) AS swept"


@dataclass(frozen=True, slots=True)
class _DatedTask:
    """What decides when a task alerts; `alert_at` is the stored instant."""

    user_id: str
    id: int
    due_on: date | None
    due_time: time | None
    snoozed_until: datetime | None
    remind: int
    time_zone: str | None
    alert_at: datetime | None
    stale_since: datetime | None

    def get_due(self, zone: ZoneInfo) -> datetime | None:
        if self.due_on is None or self.due_time is None:
            return None
        return to_instant(self.due_on, self.due_time, zone)


@dataclass(frozen=True, slots=True)
class _Digest:
    user_id: str
    digest_time: time
    digest_on: date | None
    time_zone: str | None
    stale_since: datetime


class AlertClock:
    def __init__(
        self, database: Database, clock: Clock, time_zone: str, *, at_once: int = _AT_ONCE, singly: int = _SINGLY
    ) -> None:
        """`time_zone` is the zone of users who have none, and `at_once` the most rows of a transaction.

        Of a user's alerts that are due together, more than `singly` become one message.
        """
        self._database, self._clock, self._zone = database, clock, time_zone
        self._at_once, self._singly = at_once, singly
        self._check_began_at: datetime | None = None
        self._checked_until: dict[str, Any] | None = None
        """The last task that was checked, while a check goes on."""

    async def tick(self) -> None:
        """Does what is due now, for all users. Raises `DatabaseUnavailable`."""
        now = self._clock()
        for _ in range(_ROUNDS):  # a user can mark tasks as fast as they are computed
            has_more = await self._refresh_pages(now)
            while await self._claim(now) >= self._at_once:
                pass
            if not has_more:
                break
            now = self._clock()
        if self._check_began_at is None or abs(now - self._check_began_at) >= _CHECK_EVERY:  # it may be set back
            await self._begin_check(now)
        for _ in range(_CHECKED_PAGES):
            if self._checked_until is None:
                break
            await self._check_page(now, self._checked_until)

    async def _refresh_pages(self, now: datetime) -> bool:
        """Computes what was marked, the longest marked first; returns whether more is left."""
        for _ in range(_REFRESHED_PAGES):
            if await self._refresh(now) < self._at_once:
                return False
        return True

    async def _sweep(self, now: datetime) -> int:
        """Deletes old alerts; returns how many."""
        [row] = await self._database.fetch_all(NO_USER, _SWEEP, now=now, most=_SWEPT_AT_ONCE)
        return row["swept"]

    async def _refresh(self, now: datetime) -> int:
        """Computes the instants that were marked; returns how many at most of a kind."""
        async with self._database.transaction(NO_USER) as tx:
            stale = await tx.execute(_STALE, _DatedTask, most=self._at_once)
            stale_digests = await tx.execute(_STALE_DIGESTS, _Digest, most=self._at_once)
        tasks, digests = await stale.fetchall(), await stale_digests.fetchall()
        if tasks:
            instants = Jsonb([self._compute(task, now) for task in tasks])
            await self._database.execute(NO_USER, _SET, instants=instants)
        if digests:
            instants = Jsonb([self._compute_digest(digest, now) for digest in digests])
            await self._database.execute(NO_USER, _SET_DIGESTS, instants=instants)
        return max(len(tasks), len(digests))

    def _compute(self, task: _DatedTask, now: datetime) -> dict[str, str | int | None]:
        assert task.stale_since is not None
        alert_at, due = task.snoozed_until, task.get_due(choose_zone(task.time_zone, self._zone))
        if alert_at is None and due is not None:
            since = min(task.stale_since, now)  # the database's clock may be ahead
            alert_at = find_alert(due, task.remind, since=since, is_set=task.alert_at is not None)
        return {
            "user_id": task.user_id,
            "id": task.id,
            "stale_since": task.stale_since.isoformat(),
            "alert_at": alert_at and alert_at.isoformat(),
        }

    def _compute_digest(self, digest: _Digest, now: datetime) -> dict[str, str]:
        zone, since = choose_zone(digest.time_zone, self._zone), min(digest.stale_since, now)
        instant, day = find_digest(digest.digest_time, zone, since=since, last_day=digest.digest_on)
        return {
            "user_id": digest.user_id,
            "stale_since": digest.stale_since.isoformat(),
            "digest_at": instant.isoformat(),
            "digest_day": day.isoformat(),
        }

    async def _begin_check(self, now: datetime) -> None:
        """Begins to compare all instants with what they would be today, and deletes old alerts."""
        ZoneInfo.clear_cache()
        await self._database.fetch_all(NO_USER, _MARK_DIGESTS, now=now)
        while await self._sweep(now) >= _SWEPT_AT_ONCE:
            pass
        self._check_began_at, self._checked_until = now, {"after": now, "user": "", "id": 0}

    async def _check_page(self, now: datetime, after: dict[str, Any]) -> None:
        """Marks the tasks of the next page whose instant an update of the time zone database has changed."""
        coming = await self._database.fetch_all(NO_USER, _COMING, _DatedTask, most=self._at_once, **after)
        await self._mark(self._find_changed(coming), now)
        last = coming[-1] if coming else None
        self._checked_until = last and {"after": last.alert_at, "user": last.user_id, "id": last.id}

    def _find_changed(self, coming: Iterable[_DatedTask]) -> list[_DatedTask]:
        """Returns the tasks whose stored instant is neither their due time nor that of their reminder."""
        changed = list[_DatedTask]()
        for task in coming:
            due = task.get_due(choose_zone(task.time_zone, self._zone))
            if due is None or task.alert_at not in (due, due - timedelta(minutes=task.remind)):
                changed.append(task)
        return changed

    async def _mark(self, tasks: Iterable[_DatedTask], now: datetime) -> None:
        instants = [
            {"user_id": task.user_id, "id": task.id, "alert_at": task.alert_at and task.alert_at.isoformat()}
            for task in tasks
        ]
        if instants:
            await self._database.execute(NO_USER, _MARK, instants=Jsonb(instants), now=now)

    async def _claim(self, now: datetime) -> int:
        [row] = await self._database.fetch_all(NO_USER, _CLAIM, now=now, most=self._at_once, singly=self._singly)
        oldest = row["oldest"]
        metrics.OLDEST_SECONDS.set(max(0.0, (now - oldest).total_seconds()) if oldest else 0.0)
        return row["moved"]
