"""Summaries in SQL: entries that stand for what a model does not read any more of a conversation."""

from dataclasses import dataclass

from psycopg.types.json import Jsonb

from backend.conversations.history import send_history
from backend.conversations.records import Run, Timeline
from backend.conversations.timeline import RUN_COLUMNS
from backend.errors import Busy, NotFound
from backend.users.limits import UserLimits, send_request
from common.database import Database

_FIND_CONVERSATION = "SELECT id FROM conversations WHERE user_id = %(user)s AND id = %(conversation)s"
_NEWEST_RUN = f"""
SELECT {RUN_COLUMNS} FROM runs r
WHERE r.user_id = %(user)s AND r.conversation_id = %(conversation)s AND r.active AND r.parent_call_id IS NULL
ORDER BY r.seq DESC LIMIT 1"""
_LOCK_CONVERSATION = """
SELECT id FROM conversations WHERE user_id = %(user)s AND id = %(conversation)s FOR NO KEY UPDATE"""
# It belongs to the newest run, and is made only if the path to the run after which it was asked for is still shown.
_ADD = """
INSERT INTO entries (user_id, run_id, id, conversation_id, kind, text, details)
SELECT h.user_id, h.id, %(id)s, h.conversation_id, 'summary', %(text)s, %(details)s
FROM (
    SELECT user_id, id, conversation_id FROM runs
    WHERE user_id = %(user)s AND conversation_id = %(conversation)s AND active AND parent_call_id IS NULL
    ORDER BY seq DESC LIMIT 1
) h
WHERE EXISTS (SELECT FROM runs WHERE user_id = %(user)s AND id = %(run)s AND active)
  AND NOT EXISTS (
    SELECT FROM entries e JOIN runs r ON r.user_id = e.user_id AND r.id = e.run_id AND r.active
    WHERE e.user_id = %(user)s AND e.conversation_id = %(conversation)s AND e.kind = 'summary'
      AND (e.details->>'covers')::bigint >= %(covers)s
  )
ON CONFLICT (user_id, run_id, id) DO UPDATE SET text = excluded.text, details = excluded.details
RETURNING id"""


@dataclass(frozen=True, slots=True)
class Summary:
    """Covers all up to the number `covers`, with so many messages that none covered before."""

    id: str
    text: str
    covers: int
    messages: int


async def load_newest(database: Database, user_id: str, conversation_id: str) -> tuple[Run | None, Timeline]:
    """Loads the last run of the shown path, and what the model reads.

    Raises `NotFound`, and `Busy` if the run runs or waits.
    """
    where = {"user": user_id, "conversation": conversation_id}
    async with database.transaction(user_id) as tx:
        found = await tx.execute(_FIND_CONVERSATION, **where)
        newest = await tx.execute(_NEWEST_RUN, Run, **where)
        sent = await send_history(tx, user_id, conversation_id)
    if await found.fetchone() is None:
        raise NotFound
    run = await newest.fetchone()
    if run is not None and run.status in ("running", "waiting"):
        raise Busy
    return run, await sent.fetch()


async def count_request(database: Database, user_id: str, limits: UserLimits) -> None:
    """Counts a summary that its user has asked for as one of their messages. Raises `LimitReached`."""
    async with database.transaction(user_id) as tx:
        await send_request(tx, limits, is_new=False)


async def add(database: Database, run: Run, summary: Summary) -> bool:
    """Stores a summary that was asked for after a run.

    Stores nothing and returns false if the run is not shown any more, or there is a summary that covers as much.
    """
    where = {"user": run.user_id, "conversation": run.conversation_id, "run": run.id}
    details = Jsonb({"covers": summary.covers, "messages": summary.messages})
    async with database.transaction(run.user_id) as tx:
        await tx.execute(_LOCK_CONVERSATION, **where)
        added = await tx.execute(
            _ADD, id=summary.id, text=summary.text, covers=summary.covers, details=details, **where
        )
    return await added.fetchone() is not None
