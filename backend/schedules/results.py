"""Lists a user's schedules, each with the result of its last run."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from backend.conversations.records import Status
from backend.conversations.timeline import CHANGES_COLUMN
from backend.users.schedules import COLUMNS, OF_USER, Schedule
from common.database import Database

_LIST = f"SELECT {COLUMNS} {OF_USER} ORDER BY s.created_at, s.id"
# The answer of a run is its last text, and why it is not whole its last notice.
_LAST_RUNS = f"""
SELECT r.id, r.status, r.error_code, r.created_at, {CHANGES_COLUMN},
    (SELECT e.text FROM entries e
        WHERE e.user_id = r.user_id AND e.run_id = r.id AND e.kind = 'assistant_message' AND e.complete AND e.text <> ''
        ORDER BY e.seq DESC LIMIT 1) AS answer,
    notice.details->>'code' AS notice, notice.details->'values' AS values
FROM runs r LEFT JOIN LATERAL (
    SELECT e.details FROM entries e WHERE e.user_id = r.user_id AND e.run_id = r.id AND e.kind = 'notice'
    ORDER BY e.seq DESC LIMIT 1
) notice ON true
WHERE r.user_id = %(user)s AND r.id = ANY(%(runs)s)"""


@dataclass(frozen=True, slots=True)
class LastRun:
    """The result of a run: `changes` is what was stored, `answer` is what it says."""

    id: str
    status: Status
    error_code: str | None
    created_at: datetime
    changes: dict[str, Any] | None
    answer: str | None
    notice: str | None
    values: dict[str, Any] | None


async def list_schedules(database: Database, user_id: str) -> list[tuple[Schedule, LastRun | None]]:
    """Lists the oldest first."""
    listed = await database.fetch_all(user_id, _LIST, Schedule)
    return await add_last_runs(database, user_id, listed)


async def add_last_runs(
    database: Database, user_id: str, listed: Sequence[Schedule]
) -> list[tuple[Schedule, LastRun | None]]:
    ids = [schedule.last_run_id for schedule in listed if schedule.last_run_id is not None]
    found = {run.id: run for run in await database.fetch_all(user_id, _LAST_RUNS, LastRun, runs=ids)} if ids else {}
    return [(schedule, found.get(schedule.last_run_id or "")) for schedule in listed]


async def load_last_run(database: Database, schedule: Schedule) -> LastRun | None:
    [(_, run)] = await add_last_runs(database, schedule.user_id, [schedule])
    return run
