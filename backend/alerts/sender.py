"""Sends the alerts of the outbox: at least once, and at one channel of a user after the other.

A try is stored before it is sent, and its result afterwards. If the process ends in between, the alert is sent again
with the same key, by which the receiving side recognises it.
"""

import asyncio
import logging
from collections import Counter
from dataclasses import replace
from datetime import datetime, timedelta

import psycopg

from backend.alerts import metrics
from backend.alerts.available_channels import AvailableChannels
from backend.alerts.channels.channel import Notification, Outcome, Problem, SendResult
from backend.alerts.composer import Composer
from backend.alerts.instants import find_end_of_quiet
from backend.alerts.outbox import AlertClaim, Outbox, Try, Work
from backend.alerts.routing import Route, choose_route, evaluate, evaluate_test
from backend.alerts.user_channels import UserChannel
from backend.errors import LimitReached
from backend.tools.task_tools import CallRejected, TasksUnavailable
from common.clock import Clock
from common.database import Database, DatabaseUnavailable

log = logging.getLogger(__name__)

LOOK_SECONDS = 2.0
LEASE_SECONDS = 90.0
"""Longer than a tick of the clock, and than everything that is done for an alert in that time."""
_MARGIN_SECONDS = 15.0
_AT_ONCE = 50
_SHARES = 5  # of what is sent at once; a user has one, so that channels that hang do not hold up other users
_READ_AGAIN = timedelta(seconds=10)
_SHUTDOWN_SECONDS = 10.0


class Sender:
    """All times are those of `clock`, and so those of the rows that it reads."""

    def __init__(
        self,
        database: Database,
        composer: Composer,
        channels: AvailableChannels,
        clock: Clock,
        *,
        needs_account: bool = False,
        lease_seconds: float = LEASE_SECONDS,
        at_once: int = _AT_ONCE,
    ) -> None:
        """With `needs_account`, only users with an account are notified."""
        self._composer, self._channels, self._clock = composer, channels, clock
        self._lease_seconds, self._at_once = lease_seconds, at_once
        self._outbox = Outbox(database, needs_account=needs_account)
        self._of_user = max(1, at_once // _SHARES)
        self._sending = dict[asyncio.Task[None], str]()
        """What is being sent, and to whom."""

    async def send_due(self) -> None:
        """Begins to send what is due, without waiting for the channels. Raises `DatabaseUnavailable`."""
        while free := self._at_once - len(self._sending):
            busy = [user for user, begun in Counter(self._sending.values()).items() if begun >= self._of_user]
            claims = await self._outbox.take(
                self._clock(), lease_seconds=self._lease_seconds, most=free, of_user=self._of_user, busy=busy
            )
            for claim in claims:
                sending = asyncio.create_task(self._send(claim))
                self._sending[sending] = claim.user_id
                sending.add_done_callback(self._sending.pop)
            if not claims and not busy:
                return
            if self._sending:
                await asyncio.wait(self._sending, return_when=asyncio.FIRST_COMPLETED, timeout=LOOK_SECONDS)

    async def wait(self) -> None:
        """Waits for what was begun."""
        while self._sending:
            await asyncio.wait(self._sending)

    async def close(self) -> None:
        """Ends what is being sent; another process goes on with it when the claim has passed."""
        if self._sending:
            await asyncio.wait(self._sending, timeout=_SHUTDOWN_SECONDS)
        for sending in self._sending:
            sending.cancel()

    async def _send(self, claim: AlertClaim) -> None:
        try:
            async with asyncio.timeout(self._lease_seconds - min(_MARGIN_SECONDS, self._lease_seconds / 2)):
                await self._work_on(claim)
        except (DatabaseUnavailable, psycopg.Error, TimeoutError) as error:
            log.warning("a notification could not be sent: %s", type(error).__name__)
        except Exception:
            log.exception("a notification could not be sent")

    async def _work_on(self, claim: AlertClaim) -> None:
        work, now = await self._outbox.load(claim), self._clock()
        if work is None:
            return
        if work.alert.kind == "test":  # whoever has sent it has ended
            await self._outbox.end(claim, "failed")
        elif work.recipient.is_disabled or not work.recipient.is_on:
            await self._outbox.end(claim, "expired")
        elif work.alert.state == "collected":
            await self._outbox.combine(claim.user_id, "collected", now)
        elif (end_of_quiet := self._find_end_of_quiet(work)) is not None:
            await self._outbox.end(claim, "held", end_of_quiet)
        elif work.alert.state == "held":
            await self._outbox.combine(claim.user_id, "held", now)
        else:
            await self._send_by_route(claim, work, choose_route(work, now))

    def _find_end_of_quiet(self, work: Work) -> datetime | None:
        """Returns until when the alert is held; None if it can be sent now, or was accepted by a device."""
        if any(one.state == "accepted" for one in work.deliveries.values()):
            return None
        recipient = work.recipient
        return find_end_of_quiet(
            self._clock(), self._composer.choose_zone(work), recipient.quiet_from, recipient.quiet_until
        )

    async def _send_by_route(self, claim: AlertClaim, work: Work, route: Route) -> None:
        now = self._clock()
        if route.given_up:
            await self._outbox.give_up(claim, route.given_up, now)
        if route.channel is None:
            await self._outbox.end(claim, route.end)
            return
        try:
            message = await self._composer.compose(claim.user_id, work, now)
        except (TasksUnavailable, CallRejected, LimitReached):
            await self._outbox.end(claim, "pending", now + _READ_AGAIN)
            return
        if message is None:
            await self._outbox.end(claim, "expired")
            return
        begun = await self._outbox.begin(claim, route.channel.id, now)
        if begun is not None:
            await self.deliver(claim, route.channel, message, begun, has_next=route.has_next)

    async def deliver(
        self, claim: AlertClaim, channel: UserChannel, message: Notification, begun: Try, *, has_next: bool
    ) -> SendResult:
        """Sends a message by a try that is stored, and stores the result."""
        if begun.repetitions:
            metrics.REPETITIONS.inc()
        sending = (await self._channels.open()).by_kind.get(channel.kind)
        if sending is None:
            result = SendResult(Outcome.RETRY, problem=Problem.NOT_SET_UP)  # it may be set up again
        else:
            result = await sending.send(channel.target, replace(message, proof=begun.proof))
        metrics.DELIVERIES.labels(channel.kind, result.outcome.value).inc()
        now = self._clock()
        if message.kind == "test":
            stored = evaluate_test(result)
        else:
            stored = evaluate(result, begun, now=now, confirms=channel.confirmed_at is not None, has_next=has_next)
        await self._outbox.end_try(claim, channel.id, stored, now, problem=result.problem)
        return result
