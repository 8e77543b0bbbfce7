"""What the user is alerted of: the result of a schedule's run, or that it failed, waits for approval or was skipped."""

from typing import Literal

from common.database import Transaction

ScheduleOutcome = Literal["completed", "nothing_changed", "failed", "waiting", "skipped"]


async def add_schedule_alert(
    tx: Transaction, user_id: str, schedule_id: str, run_id: str | None, outcome: ScheduleOutcome
) -> None:
    """Adds an alert in the transaction that stores the outcome, so that there is one for each."""
