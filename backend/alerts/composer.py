"""Reads what a notification is about, as its user, and writes its text."""

from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

from backend.alerts.channels.channel import Notification
from backend.alerts.messages import ScheduledRun, compose, find_open_tasks
from backend.alerts.outbox import MOST_TASKS, Work
from backend.tools.task_tools import TaskTools
from common.clock import choose_zone
from common.database import Database

# The answer of a run is its last text.
_RUN = """
SELECT run.conversation_id AS chat_id, run.status, schedule.text, (
    SELECT entry.text FROM entries AS entry
    WHERE entry.user_id = %(user)s AND entry.run_id = run.id AND entry.kind = 'assistant_message' AND entry.complete
        AND entry.text <> ''
    ORDER BY entry.seq DESC LIMIT 1
) AS answer
FROM (SELECT) AS asked
LEFT JOIN schedules AS schedule ON schedule.user_id = %(user)s AND schedule.id = %(schedule)s
LEFT JOIN runs AS run ON run.user_id = %(user)s AND run.id = %(run)s"""


class Composer:
    def __init__(self, database: Database, tools: TaskTools, *, time_zone: str, address: str) -> None:
        """`time_zone` is that of users who have none, and `address` that of the page."""
        self._database, self._tools = database, tools
        self._time_zone, self._address = time_zone, address.rstrip("/")

    def choose_zone(self, work: Work) -> ZoneInfo:
        return choose_zone(work.recipient.time_zone, self._time_zone)

    async def compose(self, user_id: str, work: Work, now: datetime) -> Notification | None:
        """Returns the message, without a proof; None if there is nothing left to say, as all tasks were completed.

        Raises `TasksUnavailable`, `LimitReached` and `CallRejected`.
        """
        alert, run = work.alert, None
        listed = list[dict[str, Any]]()
        if alert.tasks:
            ids = ",".join(str(task["id"]) for task in alert.tasks[:MOST_TASKS])
            listed = (await self._tools.get_json("tasks", user_id=user_id, ids=ids))["tasks"]
        if alert.run_id is not None:
            where = {"run": alert.run_id, "schedule": alert.schedule_id}
            run = await self._database.fetch_one(user_id, _RUN, ScheduledRun, **where)
        tasks, zone = find_open_tasks(alert.tasks, listed), self.choose_zone(work)
        return compose(work, tasks, address=self._address, now=now, zone=zone, run=run)
