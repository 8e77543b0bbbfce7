"""Loads the answers of earlier runs of a schedule, which its next run reads."""

from dataclasses import dataclass
from datetime import datetime

from backend.conversations.records import Run
from common.database import Database

MOST = 3
# The answer of a run is its last text. Runs in the order in which they were started, the oldest first.
_LOAD = """
SELECT results.at, results.zone, results.text FROM (
    SELECT r.seq, r.created_at AS at, (
            SELECT e.details->>'time_zone' FROM entries e
            WHERE e.user_id = r.user_id AND e.run_id = r.id AND e.kind = 'user_message' AND e.seq IS NOT NULL
            ORDER BY e.seq LIMIT 1
        ) AS zone, answer.text
    FROM runs r CROSS JOIN LATERAL (
        SELECT e.text FROM entries e
        WHERE e.user_id = r.user_id AND e.run_id = r.id AND e.kind = 'assistant_message' AND e.complete
            AND e.text <> ''
        ORDER BY e.seq DESC LIMIT 1
    ) answer
    WHERE r.user_id = %(user)s AND r.conversation_id = %(conversation)s AND r.active AND r.parent_call_id IS NULL
        AND r.status = 'completed' AND r.options->>'schedule' = %(schedule)s AND r.seq < %(before)s
    ORDER BY r.seq DESC LIMIT %(most)s
) results ORDER BY results.seq"""


@dataclass(frozen=True, slots=True)
class ScheduleResult:
    at: datetime
    zone: str | None
    text: str


async def load_results(database: Database, run: Run) -> list[ScheduleResult]:
    """Loads the last results before a run of the same schedule, the oldest first."""
    where = {"conversation": run.conversation_id, "schedule": run.schedule_id, "before": run.seq}
    return await database.fetch_all(run.user_id, _LOAD, ScheduleResult, most=MOST, **where)
