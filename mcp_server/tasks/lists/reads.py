"""What the backend reads without a tool: tasks by their ids, recent changes, completed tasks by day."""

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
