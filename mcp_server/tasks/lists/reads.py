"""What the backend reads without a tool: tasks by ids, recent changes, those of a batch, completed tasks by day."""

from collections.abc import Collection
from datetime import date, datetime, time, timedelta

from common.database import Database, Transaction
from mcp_server.tasks import zones
from mcp_server.tasks.changes import UNDO_PERIOD, Caller
from mcp_server.tasks.fields import TASK_COLUMNS
from mcp_server.tasks.lists.statements import COMPLETION, DELETED
from mcp_server.tasks.results import Result, render_row

MAX_IDS = 1_000
_EXISTING = f"SELECT {TASK_COLUMNS} FROM tasks WHERE user_id = %(user)s AND id = ANY(%(ids)s::bigint[])"
_DELETED = f"SELECT {TASK_COLUMNS}, deleted_at FROM {DELETED} WHERE id = ANY(%(ids)s::bigint[])"
# The newest change of each task that can be undone, or that has undone another one; then the batch of the other.
_LAST_CHANGES = """
SELECT last.task_id, made.batch, last.undoes IS NOT NULL AS is_undone
FROM unnest(%(ids)s::bigint[]) AS wanted (id)
CROSS JOIN LATERAL (
    SELECT task_id, call_id, undoes, created_at FROM task_changes
    WHERE user_id = %(user)s AND task_id = wanted.id AND before IS DISTINCT FROM after
    ORDER BY id DESC LIMIT 1
) last
LEFT JOIN task_changes undone ON undone.user_id = %(user)s AND undone.id = last.undoes
JOIN task_calls made ON made.user_id = %(user)s AND made.id = coalesce(undone.call_id, last.call_id)
WHERE made.batch IS NOT NULL AND (last.undoes IS NOT NULL OR last.created_at > %(since)s)"""


async def read_by_ids(database: Database, caller: Caller, ids: Collection[int]) -> Result:
    """Returns the tasks, and the batches that changed tasks last, also deleted ones, and whether they were undone."""
    values = {"ids": [*ids], "since": caller.clock() - UNDO_PERIOD}
    async with database.transaction(caller.user_id) as tx:
        existing = await tx.execute(_EXISTING, **values)
        deleted = await tx.execute(_DELETED, **values)
        changes = await tx.execute(_LAST_CHANGES, **values)
    tasks = [render_row(row, user_id=caller.user_id) for row in [*await existing.fetchall(), *await deleted.fetchall()]]
    return {"tasks": sorted(tasks, key=lambda task: task["id"]), "last_changes": await changes.fetchall()}


MAX_CHANGES = 1_000  # a client that has missed more reads the whole list again


# At least one row, and one for each change after the number, if there is one; each row also has the newest number.
_CHANGES_SINCE = """
SELECT newest.last, later.task_id
FROM (SELECT max(id) AS last FROM task_changes WHERE user_id = %(user)s) newest
LEFT JOIN (
    SELECT id, task_id FROM task_changes WHERE user_id = %(user)s AND id > %(after)s::bigint ORDER BY id LIMIT %(most)s
) later ON true
ORDER BY later.id"""


async def read_changes(database: Database, user_id: str, after: int | None) -> Result:
    """Returns the changes after this number, or without one only the newest number, in one round trip.

    `last` is the number of the newest change, 0 without one. `task_ids` are the changed tasks, each once, in the order
    of their changes. With `more` there are more, so that everything has to be read again.

    A user's changes are committed in the order of their numbers (`advisory_locks.TASKS`), so none is missed. A number
    beyond the newest belongs to a log that was replaced, for example by a restored backup.
    """
    rows = await database.fetch_all(user_id, _CHANGES_SINCE, after=after, most=MAX_CHANGES + 1)
    last = rows[0]["last"] or 0
    ids = [row["task_id"] for row in rows if row["task_id"] is not None]
    is_partial = len(ids) > MAX_CHANGES or (after is not None and after > last)
    return {"last": last, "task_ids": [] if is_partial else [*dict.fromkeys(ids)], "more": is_partial}


MAX_CHANGED = 3_000  # tasks of a batch; no answer changes more, with six calls in each of ten model turns

# The changes of a batch, without those that come with another one: the next task of a repeat, which a completion adds,
# and its removal when the completion is undone.
_OF_BATCH = """
SELECT c.id, c.task_id FROM task_calls k JOIN task_changes c ON c.user_id = k.user_id AND c.call_id = k.id
WHERE k.user_id = %(user)s AND k.batch = %(batch)s AND c.user_id = %(user)s
    AND (k.operation = 'add' OR c.before IS NOT NULL OR c.undoes IS NOT NULL)
    AND (c.after IS NOT NULL OR c.undoes IS NULL OR NOT EXISTS (
        SELECT FROM task_changes added
        JOIN task_changes undone ON undone.user_id = added.user_id AND undone.call_id = added.call_id
        JOIN task_changes removal ON removal.user_id = c.user_id AND removal.call_id = c.call_id
        WHERE added.user_id = %(user)s AND added.id = c.undoes AND added.before IS NULL
            AND undone.user_id = %(user)s AND undone.before IS NOT NULL
            AND removal.user_id = %(user)s AND removal.undoes = undone.id))"""
_UNSEEN = "'{created_at,updated_at,completed_at,series}'::text[]"
# By task, from before its first change of the batch to after its last one, in the order of the first ones.
_NET_CHANGES = f"""
SELECT * FROM (
    SELECT tasks.task_id, coalesce(last.after, first.before)->>'title' AS title, CASE
        WHEN first.before IS NULL AND last.after IS NULL THEN NULL
        WHEN first.before IS NULL AND first.undoes IS NULL THEN 'added'
        WHEN first.before IS NULL THEN 'restored'
        WHEN last.after IS NULL THEN 'deleted'
        WHEN first.before->'status' IS DISTINCT FROM last.after->'status'
            THEN CASE last.after->>'status' WHEN 'completed' THEN 'completed' ELSE 'reopened' END
        WHEN first.before->'due_on' IS DISTINCT FROM last.after->'due_on'
            OR first.before->'due_time' IS DISTINCT FROM last.after->'due_time' THEN 'moved'
        WHEN first.before - {_UNSEEN} IS DISTINCT FROM last.after - {_UNSEEN} THEN 'changed'
    END AS change
    FROM (SELECT task_id, min(id) AS first, max(id) AS last FROM ({_OF_BATCH}) batch GROUP BY task_id) tasks
    JOIN task_changes first ON first.user_id = %(user)s AND first.id = tasks.first
    JOIN task_changes last ON last.user_id = %(user)s AND last.id = tasks.last
    ORDER BY tasks.first
) net
WHERE change IS NOT NULL LIMIT %(most)s"""


async def read_batch(database: Database, user_id: str, batch: str) -> Result:
    """Returns what a batch has changed, a change for each task; of more than `MAX_CHANGED` tasks the first ones."""
    rows = await database.fetch_all(user_id, _NET_CHANGES, batch=batch, most=MAX_CHANGED + 1)
    return {"changes": rows[:MAX_CHANGED], "more": len(rows) > MAX_CHANGED}


MAX_DAYS = 366
# PostgreSQL expects few rows between two unknown times, and so uses the index.
_BY_DAY = f"""
SELECT width_bucket(completed_at, %(midnights)s::timestamptz[]) AS day, count(*) AS done FROM tasks
WHERE user_id = %(user)s AND status = 'completed' AND {COMPLETION} >= %(first)s AND {COMPLETION} < %(end)s
GROUP BY day"""


async def count_completed_by_day(tx: Transaction, caller: Caller, days: int) -> list[tuple[date, int]]:
    """Returns the days up to today in the user's zone, the oldest first, with the number of tasks completed on each."""
    now = await zones.get_now(tx, caller)
    today = now.local.date()
    dates = [today - timedelta(days=back) for back in reversed(range(days))]
    *midnights, end = [datetime.combine(day, time(), now.zone) for day in (*dates, today + timedelta(days=1))]
    values = {"midnights": midnights, "first": midnights[0], "end": end}
    done = {row["day"]: row["done"] for row in await (await tx.execute(_BY_DAY, **values)).fetchall()}
    return [(day, done.get(nth, 0)) for nth, day in enumerate(dates, start=1)]
