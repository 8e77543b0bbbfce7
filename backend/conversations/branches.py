"""The tree of a conversation's runs: which of several alternatives is shown, and pages of the shown path."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import LiteralString

from backend.conversations.records import Run, Timeline, ToolCall
from backend.conversations.runs import read_cancelled, send_cancellations
from backend.conversations.timeline import (
    FIND_CONVERSATION,
    FOREVER,
    LOCK_CONVERSATION,
    MAX_RUNS,
    PAGE_BYTES,
    RUN_COLUMNS,
    TREE_BYTES,
    all_records,
    count_within,
    newest_records,
)
from backend.errors import Busy, NotFound
from common.database import Database

_RUNNING = """
SELECT id FROM runs
WHERE user_id = %(user)s AND conversation_id = %(conversation)s AND status = 'running' AND parent_call_id IS NULL"""
# From the run up to the first.
_PATH_UP = """WITH RECURSIVE path AS (
    SELECT id, previous_run_id, seq FROM runs
    WHERE user_id = %(user)s AND conversation_id = %(conversation)s AND id = %(run)s
    UNION ALL
    SELECT r.id, r.previous_run_id, r.seq FROM runs r JOIN path p ON r.id = p.previous_run_id WHERE r.user_id = %(user)s
)"""
# The rest is shown no more.
_SHOW = f"""
{_PATH_UP}
UPDATE runs SET active = (id IN (SELECT id FROM path))
WHERE user_id = %(user)s AND conversation_id = %(conversation)s AND parent_call_id IS NULL
  AND active <> (id IN (SELECT id FROM path))
  AND NOT EXISTS (SELECT FROM runs WHERE user_id = %(user)s AND conversation_id = %(conversation)s
      AND status = 'running' AND parent_call_id IS NULL)"""
_SHOWN_RUNS = f"""
SELECT {RUN_COLUMNS} FROM runs r
WHERE r.user_id = %(user)s AND r.conversation_id = %(conversation)s AND r.active AND r.parent_call_id IS NULL
  AND r.seq < %(before)s
ORDER BY r.seq DESC LIMIT %(limit)s"""
_SIZES_OF_SHOWN = f"""
SELECT {TREE_BYTES} AS size FROM runs r
WHERE r.user_id = %(user)s AND r.conversation_id = %(conversation)s AND r.active AND r.parent_call_id IS NULL
  AND r.seq < %(before)s
ORDER BY r.seq DESC LIMIT %(limit)s"""
_BEFORE_NEXT_SHOWN = """coalesce((
    SELECT seq FROM runs
    WHERE user_id = %(user)s AND conversation_id = %(conversation)s AND previous_run_id = %(run)s AND active
), %(before)s)"""
# The newest of all that follow a run: none of those continues it, as that would be newer.
_NEWEST_DESCENDANT = """
WITH RECURSIVE below AS (
    SELECT id, seq FROM runs
    WHERE user_id = %(user)s AND conversation_id = %(conversation)s AND id = %(run)s AND parent_call_id IS NULL
    UNION ALL
    SELECT r.id, r.seq FROM runs r JOIN below b ON r.previous_run_id = b.id
    WHERE r.user_id = %(user)s AND r.conversation_id = %(conversation)s
)
SELECT id FROM below ORDER BY seq DESC LIMIT 1"""
_PATH = newest_records(f"{_PATH_UP} SELECT id FROM path ORDER BY seq DESC LIMIT %(runs)s", _BEFORE_NEXT_SHOWN)
_RUN_OF_TEXT = f"""
SELECT {RUN_COLUMNS} FROM runs r JOIN entries e ON e.user_id = r.user_id AND e.run_id = r.id
WHERE r.user_id = %(user)s AND r.conversation_id = %(conversation)s AND r.active AND r.parent_call_id IS NULL
  AND e.kind = 'user_message' AND e.text = %(text)s AND e.seq IS NOT NULL
  AND NOT EXISTS (SELECT FROM entries b WHERE b.user_id = e.user_id AND b.run_id = e.run_id AND b.seq < e.seq)
ORDER BY r.seq DESC LIMIT 1"""

# The run of the record from which a page begins; of a message that was answered again, the one that is shown, and of a
# sub-agent's tool call, the one that the sub-agent works for.
_SHOWN = "r.user_id = %(user)s AND r.conversation_id = %(conversation)s AND r.active AND r.parent_call_id IS NULL"
_START = f"""
SELECT r.seq FROM runs r WHERE {_SHOWN} AND (
    EXISTS (SELECT FROM entries e WHERE e.user_id = r.user_id AND e.run_id = r.id AND e.id = %(record)s)
    OR EXISTS (SELECT FROM runs s JOIN tool_calls c ON c.user_id = s.user_id AND c.run_id = s.id
        WHERE s.user_id = r.user_id AND s.top_run_id = r.id AND c.id = %(record)s))"""
_OLDEST: LiteralString = f"""
FROM runs r WHERE {_SHOWN} AND (%(record)s::text IS NULL OR r.seq >= ({_START}))
ORDER BY r.seq LIMIT %(runs)s"""
_NEWEST: LiteralString = f"""
FROM runs r WHERE {_SHOWN} AND (%(record)s::text IS NULL OR r.seq <= ({_START}))
ORDER BY r.seq DESC LIMIT %(runs)s"""


def _runs_within_page(page: LiteralString, order: LiteralString) -> LiteralString:
    """Returns the ids of those of a page's runs that fit into it: at least two, as the record may be in the first.

    As an array, as PostgreSQL would find the runs again for each row of a join.
    """
    return f"""ARRAY(
SELECT id FROM (
    SELECT id, row_number() OVER (ORDER BY {order}) AS number, sum(size) OVER (ORDER BY {order}) - size AS bytes_before
    FROM (SELECT r.id, r.seq, {TREE_BYTES} AS size {page}) runs
) sized WHERE number <= 2 OR bytes_before < %(page_bytes)s)"""


_OLDEST_WITHIN, _NEWEST_WITHIN = _runs_within_page(_OLDEST, "seq"), _runs_within_page(_NEWEST, "seq DESC")


def _alternatives(runs: LiteralString) -> LiteralString:
    # Two selects, as no index serves an OR with NULL.
    return f"""
SELECT r.id AS run_id, array_agg(a.id ORDER BY a.seq) AS ids FROM runs r CROSS JOIN LATERAL (
    SELECT a.id, a.seq FROM runs a
    WHERE a.user_id = r.user_id AND a.conversation_id = r.conversation_id AND a.previous_run_id = r.previous_run_id
      AND a.parent_call_id IS NULL
    UNION ALL
    SELECT a.id, a.seq FROM runs a
    WHERE r.previous_run_id IS NULL AND a.user_id = r.user_id AND a.conversation_id = r.conversation_id
      AND a.previous_run_id IS NULL AND a.parent_call_id IS NULL
) a
WHERE r.user_id = %(user)s AND r.id = ANY({runs}) GROUP BY r.id"""


_ALTERNATIVES = _alternatives("%(runs)s")


@dataclass(slots=True)
class RunPage(Timeline):
    """Runs in order; `alternatives` are of each run those that continue the same run as it, if there are others.

    `is_cut` tells that it has fewer runs than asked for, as they have too many bytes.
    """

    alternatives: dict[str, list[str]] = field(default_factory=dict[str, list[str]])
    is_cut: bool = False


async def show(database: Database, user_id: str, conversation_id: str, run_id: str | None) -> list[str]:
    """Shows the branch that ends with a run, or for None nothing, and hides the others.

    A waiting run that is left is cancelled; its id is returned. Raises `NotFound`, and `Busy` while a run is running.
    """
    where = {"conversation": conversation_id, "run": run_id}
    async with database.transaction(user_id) as tx:
        found = await tx.execute(LOCK_CONVERSATION, **where)
        running = await tx.execute(_RUNNING, **where)
        await tx.execute(_SHOW, **where)
        cancelled = await send_cancellations(tx, conversation_id, reason="left_path", unless=run_id)
    if await found.fetchone() is None:
        raise NotFound.of("conversation", conversation_id)
    if await running.fetchone() is not None:
        raise Busy
    return await read_cancelled(cancelled)


async def find_newest_descendant(database: Database, user_id: str, conversation_id: str, run_id: str) -> str:
    row = await database.fetch_one(user_id, _NEWEST_DESCENDANT, conversation=conversation_id, run=run_id)
    if row is None:
        raise NotFound.of("interaction", run_id)
    return row["id"]


async def load_shown(
    database: Database, user_id: str, conversation_id: str, *, before: int = FOREVER, limit: int
) -> tuple[list[Run], bool]:
    """Loads the newest runs before a number, as many as fit into a page, and whether there are earlier ones."""
    where = {"conversation": conversation_id, "before": before, "limit": limit + 1}
    async with database.transaction(user_id) as tx:
        runs = await tx.execute(_SHOWN_RUNS, Run, **where)
        sizes = await tx.execute(_SIZES_OF_SHOWN, **where)
    newest = await runs.fetchall()
    count = min(limit, count_within([row["size"] for row in await sizes.fetchall()], PAGE_BYTES))
    return newest[:count][::-1], len(newest) > count


async def load_path(database: Database, run: Run) -> Timeline:
    """Loads what is known after a run: the newest records of the path to it, before the run that is shown after it."""
    where = {"conversation": run.conversation_id, "run": run.id, "before": FOREVER, "runs": MAX_RUNS}
    return await _PATH.load(database, run.user_id, **where)


async def load_alternatives(database: Database, user_id: str, run_ids: Sequence[str]) -> dict[str, list[str]]:
    """Loads the ids of the runs that continue the same run as each of these runs, itself included, the oldest first."""
    rows = await database.fetch_all(user_id, _ALTERNATIVES, runs=list(run_ids))
    return {row["run_id"]: row["ids"] for row in rows}


async def find_run_by_first_message(database: Database, user_id: str, conversation_id: str, text: str) -> Run | None:
    return await database.fetch_one(user_id, _RUN_OF_TEXT, Run, conversation=conversation_id, text=text)


async def load_page(
    database: Database,
    user_id: str,
    conversation_id: str,
    *,
    runs: int,
    newest_first: bool = False,
    from_record: str | None = None,
) -> RunPage:
    """Loads a page of shown runs: the oldest first, or the newest, as many as fit into `PAGE_BYTES`.

    With `from_record` it begins with that record's run. Raises `NotFound` if the conversation, or that record in it,
    does not exist. One round trip.
    """
    page_runs, selected = (_NEWEST, _NEWEST_WITHIN) if newest_first else (_OLDEST, _OLDEST_WITHIN)
    where = {"conversation": conversation_id, "record": from_record, "runs": runs, "page_bytes": PAGE_BYTES}
    async with database.transaction(user_id) as tx:
        found = await tx.execute(FIND_CONVERSATION, **where)
        page = await tx.execute(
            f"SELECT {RUN_COLUMNS} {page_runs}",
            Run,
            **where,
        )
        sent = await all_records(selected).send(tx, **where)
        alternatives = await tx.execute(_alternatives(selected), **where)
    if await found.fetchone() is None:
        raise NotFound.of("conversation", conversation_id)
    wanted = sorted(await page.fetchall(), key=lambda run: run.seq)
    if from_record is not None and not wanted:
        raise NotFound.of("item", from_record)
    records = [one for one in (await sent.fetch()).records if isinstance(one, ToolCall) or one.complete]
    of_each = {row["run_id"]: row["ids"] for row in await alternatives.fetchall()}
    shown = [run for run in wanted if run.id in of_each]
    others = {run_id: ids for run_id, ids in of_each.items() if len(ids) > 1}
    return RunPage(records, runs=shown, alternatives=others, is_cut=len(shown) < len(wanted))
