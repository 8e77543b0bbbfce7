"""What the backend reads without a tool: tasks by ids, recent changes, those of a batch, completed tasks by day."""

from collections import defaultdict
from collections.abc import Collection, Mapping
from datetime import date, datetime, time, timedelta
from typing import Any

from common.changes import Change
from common.database import Database, Transaction
from mcp_server.tasks import zones
from mcp_server.tasks.changes import UNDO_PERIOD, Caller
from mcp_server.tasks.fields import BRIEF_COLUMNS, TASK_COLUMNS
from mcp_server.tasks.lists.statements import COMPLETION, DELETED
from mcp_server.tasks.results import Result, render_listed_row

MAX_IDS = 200  # their tasks are rendered in one go
_BY_IDS = "WHERE user_id = %(user)s AND id = ANY(%(ids)s::bigint[])"
_DELETED_BY_IDS = f"FROM {DELETED} WHERE id = ANY(%(ids)s::bigint[])"
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
    """Returns the tasks, and the batches that changed tasks last, also deleted ones, and whether they were undone.

    Of several tasks only the beginnings of their descriptions, which could be 12 MB together.
    """
    values = {"ids": [*ids], "since": caller.clock() - UNDO_PERIOD}
    columns = TASK_COLUMNS if len(ids) == 1 else BRIEF_COLUMNS
    async with database.transaction(caller.user_id) as tx:
        existing = await tx.execute(f"SELECT {columns}, snoozed_until FROM tasks {_BY_IDS}", **values)
        deleted = await tx.execute(f"SELECT {columns}, deleted_at {_DELETED_BY_IDS}", **values)
        changes = await tx.execute(_LAST_CHANGES, **values)
    rows = [*await existing.fetchall(), *await deleted.fetchall()]
    tasks = [render_listed_row(row, user_id=caller.user_id) for row in rows]
    return {"tasks": sorted(tasks, key=lambda task: task["id"]), "last_changes": await changes.fetchall()}


MAX_CHANGES = 1_000  # a client that has missed more reads the whole list again


NEWEST_CHANGE = "SELECT max(id) AS last FROM task_changes WHERE user_id = %(user)s"
# At least one row, and one for each change after the number, if there is one; each row also has the newest number.
_CHANGES_SINCE = f"""
SELECT newest.last, later.task_id
FROM ({NEWEST_CHANGE}) newest
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


# No answer logs more: six calls in each of ten model turns, for 50 tasks, of which each may add its next one.
MAX_LOGGED = 6_000
_UNSEEN = "'{created_at,updated_at,completed_at,series}'::text[]"
# One statement with all conditions made the read take more than twice as long.
_OF_BATCH = f"""
SELECT c.task_id, c.call_id, c.undoes, k.operation = 'add' AS is_asked_for,
    c.before->>'title' AS title_before, c.before->>'status' AS status_before,
    concat(c.before->>'due_on', c.before->>'due_time') AS due_before,
    hashtextextended((c.before - {_UNSEEN})::text, 0) AS before,
    c.after->>'title' AS title_after, c.after->>'status' AS status_after,
    concat(c.after->>'due_on', c.after->>'due_time') AS due_after,
    hashtextextended((c.after - {_UNSEEN})::text, 0) AS after
FROM task_calls k JOIN task_changes c ON c.user_id = k.user_id AND c.call_id = k.id
WHERE k.user_id = %(user)s AND k.batch = %(batch)s AND c.user_id = %(user)s
ORDER BY c.id LIMIT %(most)s"""
_UNDONE = """
SELECT id, call_id, before IS NULL AS is_addition FROM task_changes
WHERE user_id = %(user)s AND id = ANY(%(ids)s::bigint[])"""


async def read_batch(database: Database, user_id: str, batch: str) -> Result:
    """Returns what a batch has changed, one change for each task: from before its first change to after its last one.

    Without those that come with another one: the next task of a repeat, which a completion adds, and its removal when
    the completion is undone. `more` tells that the batch has more than `MAX_LOGGED`, of which only the first were read.
    """
    rows = await database.fetch_all(user_id, _OF_BATCH, batch=batch, most=MAX_LOGGED + 1)
    undone = dict[int, dict[str, Any]]()
    if any(row["after"] is None and row["undoes"] for row in rows):
        ids = [row["undoes"] for row in rows if row["undoes"]]
        undone = {row["id"]: row for row in await database.fetch_all(user_id, _UNDONE, ids=ids)}
    reversals = {
        (row["call_id"], change["call_id"])
        for row in rows
        if (change := undone.get(row["undoes"])) is not None and not change["is_addition"]
    }
    by_task = defaultdict[int, list[dict[str, Any]]](list)
    for row in rows[:MAX_LOGGED]:
        if not _comes_with_another(row, undone, reversals):
            by_task[row["task_id"]].append(row)
    changes = [
        {"task_id": id, "title": own[-1]["title_after"] or own[0]["title_before"], "change": change}
        for id, own in by_task.items()
        if (change := _find_net_change(own[0], own[-1])) is not None
    ]
    return {"changes": changes, "more": len(rows) > MAX_LOGGED}


def _comes_with_another(
    row: Mapping[str, Any], undone: Mapping[int, Mapping[str, Any]], reversals: Collection[tuple[int, int]]
) -> bool:
    """Whether a call has changed this task as it completed another one, or undid that; `reversals` are pairs of calls,
    of which the first undid a change of a task by the second.
    """
    if row["undoes"] is None:
        return row["before"] is None and not row["is_asked_for"]
    added = undone.get(row["undoes"]) if row["after"] is None else None
    return added is not None and added["is_addition"] and (row["call_id"], added["call_id"]) in reversals


def _find_net_change(first: Mapping[str, Any], last: Mapping[str, Any]) -> Change | None:
    if first["before"] is None or last["after"] is None:
        if first["before"] == last["after"]:
            return None
        if last["after"] is None:
            return "deleted"
        return "added" if first["undoes"] is None else "restored"
    if first["status_before"] != last["status_after"]:
        return "completed" if last["status_after"] == "completed" else "reopened"
    if first["due_before"] != last["due_after"]:
        return "moved"
    return "changed" if first["before"] != last["after"] else None


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
