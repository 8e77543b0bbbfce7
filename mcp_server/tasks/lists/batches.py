"""The batches that a user can undo or redo: the changes of a run, or of a change by hand."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from common.database import Transaction
from mcp_server.tasks.changes import CAN_BE_UNDONE, IS_CHANGE, UNDO_PERIOD
from mcp_server.tasks.results import Result

MAX_BATCHES = 100
_MAX_CALLS = 2_000  # the newest, of which batches are looked for
_MAX_TITLES = 3

# Of each batch: the tasks that it changed, without those that a repeat added, or that were removed with an undone
# completion; whether one of its changes undid none; and whether all changes were undone. Of the tasks themselves, which
# may have 12 kB each, it reads no more than those whose titles it returns.
_BATCHES = f"""
WITH recent AS (
    SELECT id, batch, actor, created_at, arguments->>'undo_batch' AS undoes FROM task_calls
    WHERE user_id = %(user)s ORDER BY id DESC LIMIT %(calls)s
), batches AS (
    SELECT batch, max(id) AS last, min(actor) AS actor, max(created_at) AS made, max(undoes) AS undoes FROM recent
    WHERE batch IS NOT NULL AND created_at > %(since)s GROUP BY batch ORDER BY max(id) DESC
)
SELECT b.batch, b.actor, b.undoes, b.made, EXISTS (SELECT FROM recent r WHERE r.undoes = b.batch) AS is_named,
    tasks.count, tasks.is_change, titles.titles, NOT EXISTS (
        SELECT FROM task_calls k JOIN task_changes c ON c.user_id = k.user_id AND c.call_id = k.id
        WHERE k.user_id = %(user)s AND k.batch = b.batch AND c.user_id = %(user)s AND {CAN_BE_UNDONE}
    ) AS is_undone
FROM batches b CROSS JOIN LATERAL (
    SELECT count(*) FILTER (WHERE is_own) AS count, coalesce(bool_or(is_change), false) AS is_change,
        (array_agg(last ORDER BY first) FILTER (WHERE is_own))[:%(titles)s::integer] AS named
    FROM (
        SELECT task_id, min(id) AS first, max(id) AS last, bool_or(undoes IS NULL) AS is_change,
            bool_or(is_whole OR NOT has_whole) AS is_own
        FROM (
            SELECT id, task_id, undoes, is_whole,
                series IS NOT NULL AND bool_or(is_whole) OVER (PARTITION BY call_id, series) AS has_whole
            FROM (
                SELECT c.id, c.task_id, c.call_id, c.undoes, num_nulls(c.before, c.after) = 0 AS is_whole,
                    CASE WHEN c.is_change IS NULL THEN (coalesce(c.after, c.before)->>'series')::bigint
                        ELSE c.series END AS series
                FROM task_calls k JOIN task_changes c ON c.user_id = k.user_id AND c.call_id = k.id
                WHERE k.user_id = %(user)s AND k.batch = b.batch AND c.user_id = %(user)s AND {IS_CHANGE}
            ) each
        ) each_of_series
        GROUP BY task_id
    ) by_task
) tasks CROSS JOIN LATERAL (
    SELECT array_agg(coalesce(c.after, c.before)->>'title' ORDER BY nth) AS titles
    FROM unnest(tasks.named) WITH ORDINALITY AS one (change, nth)
    JOIN task_changes c ON c.user_id = %(user)s AND c.id = change
) titles
WHERE tasks.count > 0 AND (tasks.is_change OR b.undoes IS NOT NULL)
ORDER BY b.last DESC LIMIT %(most)s"""


async def read_batches(tx: Transaction, now: datetime, limit: int) -> list[Result]:
    """Returns the newest batches that can be undone or redone, or were, the newest first.

    A batch that undoes another one is named by what it is: an "undo", which can be undone itself, or the "redo" that
    undid an undo, which can be undone like any "change".
    """
    rows = await tx.execute(
        _BATCHES, calls=_MAX_CALLS, since=now - UNDO_PERIOD, titles=_MAX_TITLES, most=min(limit, MAX_BATCHES)
    )
    return [_render_batch(row) for row in await rows.fetchall()]


def _render_batch(row: Mapping[str, Any]) -> Result:
    is_undo = not row["is_change"]
    return {
        **{name: row[name] for name in ("batch", "actor", "undoes", "titles", "count")},
        "kind": "undo" if is_undo else "redo" if row["undoes"] else "change",
        "undone": row["is_named"] if is_undo else row["is_undone"],
        "made": row["made"].isoformat(),
    }
