"""Sends tests, lists what an open page should show, and carries out the actions of a notification."""

from dataclasses import dataclass
from datetime import timedelta

from backend.alerts import history
from backend.alerts.available_channels import AvailableChannels
from backend.alerts.channels.channel import Notification, SendResult
from backend.alerts.composer import Composer
from backend.alerts.history import PastAlert
from backend.alerts.messages import find_open_tasks
from backend.alerts.outbox import Outbox, add_test_alert
from backend.alerts.routing import LIFETIME
from backend.alerts.sender import LEASE_SECONDS, Sender
from backend.alerts.user_channels import UserChannel
from backend.errors import LimitReached
from backend.tools.task_tools import CallRejected, TasksUnavailable, TaskTools, derive_id
from common.clock import Clock
from common.database import Database

_MOST_UNSHOWN = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class AlertService:
    database: Database
    tools: TaskTools
    sender: Sender
    composer: Composer
    channels: AvailableChannels
    clock: Clock

    async def send_test(self, user_id: str, channel: UserChannel) -> SendResult:
        """Sends a test to one channel, once, and stores what happened as of any other alert."""
        now = self.clock()
        until = now + timedelta(seconds=LEASE_SECONDS)
        claim, begun = await add_test_alert(self.database, user_id, channel.id, now=now, until=until)
        work = await Outbox(self.database).load(claim)
        message = work and await self.composer.compose(user_id, work, now)
        assert message is not None
        return await self.sender.deliver(claim, channel, message, begun, has_next=False)

    async def list_unshown(self, user_id: str) -> list[Notification]:
        """Returns what an open page should show, as devices get it, but without a proof."""
        now = self.clock()
        outbox, messages = Outbox(self.database), list[Notification]()
        for alert_id in await history.list_unshown(self.database, user_id, since=now - LIFETIME, most=_MOST_UNSHOWN):
            work = await outbox.load_unclaimed(user_id, alert_id)
            message = work and await self.composer.compose(user_id, work, now)
            if message is not None:
                messages.append(message.clean())
        return messages

    async def complete_task(self, user_id: str, alert: PastAlert, *, time_zone: str | None) -> bool:
        """Completes the alert's task, once; returns False if it is not pending, or is due at another time by now.

        Raises `TasksUnavailable` and `LimitReached`.
        """
        if (meant := alert.task) is None:
            return False
        listed = (await self.tools.get_json("tasks", user_id=user_id, ids=meant["id"]))["tasks"]
        if not find_open_tasks([meant], listed):
            return False
        try:
            key = derive_id("alert", alert.key)
            arguments = {"task_id": meant["id"]}
            await self.tools.change("complete_task", arguments, user_id=user_id, key=key, time_zone=time_zone)
        except CallRejected as rejection:
            if rejection.kind in ("not_found", "conflict"):
                return False
            raise (LimitReached(str(rejection)) if rejection.kind == "limit" else TasksUnavailable()) from None
        return True

    async def snooze(self, user_id: str, alert: PastAlert, *, minutes: int) -> bool:
        """Lets the alert's task alert again; returns False as `complete_task` does."""
        if (task := alert.task) is None:
            return False
        until = self.clock() + timedelta(minutes=minutes)
        due = {"due_on": task["due_on"], "due_time": task["due_time"]}
        return await history.snooze(self.database, user_id, task["id"], until=until, **due)
