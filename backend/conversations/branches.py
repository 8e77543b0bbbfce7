"""The tree of a conversation's runs: which of several alternatives is shown."""

from collections import defaultdict
from collections.abc import Sequence

from backend.conversations import runs
from backend.conversations.records import Run
from backend.conversations.timeline import ALTERNATIVES, FOREVER, RUN_COLUMNS
from backend.errors import Busy, NotFound
from common.database import Database

_LOCK_CONVERSATION = """
SELECT id FROM conversations WHERE user_id = %(user)s AND id = %(conversation)s FOR NO KEY UPDATE"""
_RUNNING = """
SELECT id FROM runs
WHERE user_id = %(user)s AND conversation_id = %(conversation)s AND status = 'running' AND parent_call_id IS NULL"""
# From the run up to the first.
_PATH_UP = """WITH RECURSIVE path AS (
    SELECT id, previous_run_id FROM runs
    WHERE user_id = %(user)s AND conversation_id = %(conversation)s AND id = %(run)s
    UNION ALL
    SELECT r.id, r.previous_run_id FROM runs r JOIN path p ON r.id = p.previous_run_id WHERE r.user_id = %(user)s
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
_NEXT_SHOWN = """
SELECT seq FROM runs
WHERE user_id = %(user)s AND conversation_id = %(conversation)s AND previous_run_id = %(run)s AND active"""
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
_PATH = f"""
{_PATH_UP}
SELECT {RUN_COLUMNS} FROM runs r JOIN path p ON r.id = p.id WHERE r.user_id = %(user)s ORDER BY r.seq"""
_ALTERNATIVES = f"""
SELECT r.id AS run_id, a.id FROM runs r {ALTERNATIVES}
WHERE r.user_id = %(user)s AND r.id = ANY(%(runs)s) ORDER BY a.seq"""
_RUN_OF_TEXT = f"""
SELECT {RUN_COLUMNS} FROM runs r JOIN entries e ON e.user_id = r.user_id AND e.run_id = r.id
WHERE r.user_id = %(user)s AND r.conversation_id = %(conversation)s AND r.active AND r.parent_call_id IS NULL
  AND e.kind = 'user_message' AND e.text = %(text)s AND e.seq IS NOT NULL
  AND NOT EXISTS (SELECT FROM entries b WHERE b.user_id = e.user_id AND b.run_id = e.run_id AND b.seq < e.seq)
ORDER BY r.seq DESC LIMIT 1"""


async def show(database: Database, user_id: str, conversation_id: str, run_id: str | None) -> list[str]:
    """Shows the branch that ends with a run, or for None nothing, and hides the others.

    A waiting run that is left is cancelled; its id is returned. Raises `NotFound`, and `Busy` while a run is running.
    """
    where = {"user": user_id, "conversation": conversation_id, "run": run_id}
    async with database.transaction(user_id) as tx:
        found = await tx.execute(_LOCK_CONVERSATION, **where)
        running = await tx.execute(_RUNNING, **where)
        await tx.execute(_SHOW, **where)
        cancelled = await runs.send_cancellations(tx, user_id, conversation_id, reason="left_path", unless=run_id)
    if await found.fetchone() is None:
        raise NotFound
    if await running.fetchone() is not None:
        raise Busy
    return await runs.read_cancelled(cancelled)


async def find_newest_descendant(database: Database, user_id: str, conversation_id: str, run_id: str) -> str:
    """Returns the id of the newest run that continues a run, directly or not, or of the run itself.

    Raises `NotFound`.
    """
    async with database.transaction(user_id) as tx:
        found = await tx.execute(_NEWEST_DESCENDANT, user=user_id, conversation=conversation_id, run=run_id)
    if (row := await found.fetchone()) is None:
        raise NotFound
    return row["id"]


async def load_shown(
    database: Database, user_id: str, conversation_id: str, *, before: int = FOREVER, limit: int
) -> tuple[list[Run], bool]:
    """Loads the newest shown runs before a number, in order, and whether there are older ones."""
    where = {"user": user_id, "conversation": conversation_id, "before": before, "limit": limit + 1}
    async with database.transaction(user_id) as tx:
        found = await tx.execute(_SHOWN_RUNS, Run, **where)
    newest = await found.fetchall()
    return newest[:limit][::-1], len(newest) > limit


async def find_next_shown(database: Database, run: Run) -> int:
    """Returns the number of the shown run that continues this one; `FOREVER` if there is none."""
    where = {"user": run.user_id, "conversation": run.conversation_id, "run": run.id}
    async with database.transaction(run.user_id) as tx:
        found = await tx.execute(_NEXT_SHOWN, **where)
    row = await found.fetchone()
    return row["seq"] if row else FOREVER


async def path_to(database: Database, user_id: str, conversation_id: str, run_id: str) -> list[Run]:
    """Loads the runs from the first to this one, whether they are shown or not."""
    async with database.transaction(user_id) as tx:
        found = await tx.execute(_PATH, Run, user=user_id, conversation=conversation_id, run=run_id)
    return await found.fetchall()


async def load_alternatives(database: Database, user_id: str, run_ids: Sequence[str]) -> dict[str, list[str]]:
    """Loads the ids of the runs that continue the same run as each of these runs, itself included, the oldest first."""
    async with database.transaction(user_id) as tx:
        found = await tx.execute(_ALTERNATIVES, user=user_id, runs=list(run_ids))
    alternatives = defaultdict[str, list[str]](list)
    for row in await found.fetchall():
        alternatives[row["run_id"]].append(row["id"])
    return alternatives


async def find_run_by_first_message(database: Database, user_id: str, conversation_id: str, text: str) -> Run | None:
    """Finds the newest shown run whose first message has this text; None if there is none."""
    async with database.transaction(user_id) as tx:
        found = await tx.execute(_RUN_OF_TEXT, Run, user=user_id, conversation=conversation_id, text=text)
    return await found.fetchone()
