"""Starts the runs of schedules that are due, once each, and stores what became of them."""

import logging
from datetime import datetime, timedelta

from backend.accounts import accounts
from backend.alerts.outbox import add_schedule_alert
from backend.conversations import runs
from backend.conversations.run_requests import NewConversation, RunRequest, UserMessage
from backend.errors import BackendError, Busy, LimitReached, Overloaded
from backend.ids import new_id
from backend.runs.live_run import LiveRun
from backend.runs.service import RunService
from backend.schedules.results import load_last_run
from backend.users import schedules
from backend.users.profiles import load_time_zone
from backend.users.schedules import Schedule, SkipReason, TakenOccurrence
from common.clock import choose_zone
from common.database import Database, DatabaseUnavailable, Transaction
from common.recurrence import to_instant

logger = logging.getLogger(__name__)

LOOK_SECONDS = 2.0
_AT_ONCE = 20  # schedules that are claimed, and changed ones that are read
_RETRY_FOR = timedelta(hours=1)
"""How long a start is tried again after a limit of a minute, or a running answer in the conversation, prevented it."""
_SOON_SECONDS = 60
_ALERTED = {
    "completed": "completed",
    "waiting": "waiting",
    "failed": "failed",
    "interrupted": "failed",
}
"""By the status of a run. Runs that go on, or that the user has stopped, are not reported."""


class Scheduler:
    def __init__(self, database: Database, runs: RunService, *, needs_account: bool) -> None:
        """With `needs_account`, only users have runs whose account is not disabled, nor refused by its provider."""
        self._database, self._runs, self._needs_account = database, runs, needs_account

    async def look(self) -> None:
        """Starts what is due, and stores what has become of runs. Raises `DatabaseUnavailable`."""
        while await self._start_some() == _AT_ONCE:
            pass
        for user_id, schedule_id in await schedules.list_changed(self._database, _AT_ONCE):
            await self._store_state(user_id, schedule_id)

    async def _start_some(self) -> int:
        """Returns how many schedules were claimed; 0 if this process cannot start more now."""
        claimed = await schedules.claim_due(self._database, self._runs.clock(), _AT_ONCE)
        for user_id, schedule_id in claimed:
            try:
                await self._start_due(user_id, schedule_id)
            except (BackendError, DatabaseUnavailable) as error:  # it is tried again when the claim ends
                logger.warning("schedule %s was not started yet: %s", schedule_id, type(error).__name__)
                if isinstance(error, Overloaded):
                    return 0
            except Exception:  # the others are started
                logger.exception("schedule %s could not be started", schedule_id)
        return len(claimed)

    async def start_now(self, user_id: str, schedule_id: str) -> LiveRun:
        """Starts a run apart from the times of a schedule. Raises `NotFound` and the errors of `RunService.start`."""
        schedule = await schedules.find(self._database, user_id, schedule_id)
        return await self._start(schedule, TakenOccurrence(schedule.id, None, schedule.repeat, None))

    async def _start_due(self, user_id: str, schedule_id: str) -> None:
        schedule, now = await schedules.find(self._database, user_id, schedule_id), self._runs.clock()
        if schedule.next_on is None or schedule.next_at is None or schedule.paused or schedule.next_at > now:
            return
        zone = choose_zone(schedule.zone, self._runs.time_zone)
        if (due := to_instant(schedule.next_on, schedule.at_time, zone)) > now:  # the user is in another zone by now
            await schedules.move(self._database, schedule, due)
            return
        repeat, following = schedules.find_following(schedule, now=now, zone=zone)
        taken = TakenOccurrence(schedule.id, schedule.next_at, repeat, following)
        if (reason := await self._find_reason_of_account(user_id)) is not None:
            await self._skip(schedule, taken, reason)
            return
        try:
            await self._start(schedule, taken)
        except schedules.ScheduleTaken:
            return
        except LimitReached as error:
            if (error.retry_seconds or 0) > _SOON_SECONDS or self._is_late(schedule, now):
                await self._skip(schedule, taken, "limit")
        except Busy:
            if (reason := await self._find_reason(schedule, now)) is not None:
                await self._skip(schedule, taken, reason)

    async def _start(self, schedule: Schedule, taken: TakenOccurrence) -> LiveRun:
        zone = schedule.zone or await load_time_zone(self._database, schedule.user_id)
        message = UserMessage(new_id("msg"), schedule.text, None, self._runs.moment(zone))
        new = NewConversation() if schedule.conversation_id is None else None
        conversation_id = schedule.conversation_id or new_id("thr")
        options = {"schedule": schedule.id}
        request = RunRequest(conversation_id, message, new, options=options, taken=taken)
        return await self._runs.start(schedule.user_id, request)

    async def _find_reason_of_account(self, user_id: str) -> SkipReason | None:
        """Returns why the user may have no runs; None if they may."""
        if not self._needs_account:
            return None
        account = await accounts.find_account(self._database, user_id)
        if account is None or account.disabled_at is not None:
            return "account"
        return "provider" if account.provider_refused_at is not None else None

    async def _find_reason(self, schedule: Schedule, now: datetime) -> SkipReason | None:
        """Returns why the conversation is not free; None if it soon may be, or is by now."""
        active = await runs.load_active(self._database, schedule.user_id, schedule.conversation_id)
        if active is None:
            return None
        if active.status == "waiting":
            return "waiting"
        return "running" if active.id == schedule.last_run_id or self._is_late(schedule, now) else None

    def _is_late(self, schedule: Schedule, now: datetime) -> bool:
        return schedule.next_at is not None and now - schedule.next_at > _RETRY_FOR

    async def _skip(self, schedule: Schedule, taken: TakenOccurrence, reason: SkipReason) -> None:
        async with self._database.transaction(schedule.user_id) as tx:
            if await schedules.send_skip(tx, schedule, taken, reason) and reason not in ("account", "provider"):
                await self._send_alert(tx, schedule, "skipped")  # once after each run
        logger.info("schedule %s was skipped: %s", schedule.id, reason)

    async def _store_state(self, user_id: str, schedule_id: str) -> None:
        schedule = await schedules.find(self._database, user_id, schedule_id)
        run = await load_last_run(self._database, schedule)
        if run is None or run.status == schedule.last_state:
            return
        outcome = _ALERTED.get(run.status)
        if run.notice == "nothing_changed":
            outcome = "nothing_changed"
        async with self._database.transaction(user_id) as tx:
            only_if_needed = await schedules.send_state(tx, schedule, run.status)
            is_wanted = only_if_needed is False or (only_if_needed is True and outcome != "completed")
            if outcome is not None and is_wanted:
                await self._send_alert(tx, schedule, outcome)

    async def _send_alert(self, tx: Transaction, schedule: Schedule, outcome: str) -> None:
        """Adds an alert about the last run of a schedule, in the transaction that stores what has become of it."""
        run_id, now = schedule.last_run_id or "", self._runs.clock()
        await add_schedule_alert(tx, schedule.user_id, schedule.id, run_id, outcome, now=now)
