"""An answer that stands beside another: what it takes the place of, and what it goes on from."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import and_, bindparam, func, literal, select
from sqlalchemy.ext.asyncio import AsyncEngine

from backend.conversation.rows import StoredItem
from backend.conversation.runs.leases import RUNS
from backend.conversation.statements import MESSAGES, done, done_rows, within
from backend.errors import NotFound
from service.database import Pipeline, Statement, pipelined

# A message's note of its time stands right before it, but for what a job beside the turn may have written meanwhile. In
# `kept`, the runs whose rows are shown after it: those of the path down from the one that is replaced, and those beside
# them that they keep rows of. What a run above wrote later stays.
_BESIDE = within("""
WITH RECURSIVE held AS (
    SELECT id FROM runs WHERE IN_IT AND id = %(run)s AND status = 'running'
), message AS (
    SELECT seq, run_id FROM messages
    WHERE IN_IT AND id = %(message)s AND kind = 'user_message'
        AND superseded_by IS NULL AND EXISTS (SELECT FROM held)
), note AS (
    SELECT row.seq FROM message, LATERAL (
        SELECT seq, run_id, kind, item FROM messages
        WHERE IN_IT AND seq < message.seq AND kind NOT IN ('change', 'summary') ORDER BY seq DESC LIMIT 1
    ) AS row
    WHERE row.kind = 'note' AND row.item->'content' ? 'now' AND row.run_id IS NOT DISTINCT FROM message.run_id
), cut AS (
    SELECT CASE WHEN %(again)s THEN seq + 1 ELSE coalesce((SELECT seq FROM note), seq) END AS seq FROM message
), beside AS (
    SELECT other.id, other.parent_run_id
    FROM message JOIN runs AS own ON own.user_id = %(owner)s AND own.id = message.run_id
    JOIN runs AS other ON other.user_id = own.user_id AND other.conversation_id = own.conversation_id
        AND other.parent_run_id IS NOT DISTINCT FROM own.parent_run_id
    WHERE other.chosen AND other.id <> %(run)s
), below AS (
    SELECT parent_run_id AS id FROM runs WHERE IN_IT AND id = %(run)s
    UNION ALL
    SELECT parent_run_id FROM below JOIN runs ON runs.user_id = %(owner)s AND runs.id = below.id
    WHERE below.id NOT IN (SELECT id FROM beside)
), kept AS (
    SELECT id FROM below
    UNION
    SELECT edits_run_id FROM kept JOIN runs ON runs.user_id = %(owner)s AND runs.id = kept.id
), unchosen AS (
    UPDATE runs SET chosen = false FROM beside WHERE runs.user_id = %(owner)s AND runs.id = beside.id
), placed AS (
    UPDATE runs SET parent_run_id = beside.parent_run_id, edits_run_id = beside.id, kept_seq = cut.seq - 1
    FROM beside, cut WHERE runs.user_id = %(owner)s AND runs.id = %(run)s
), replaced AS (
    UPDATE messages SET superseded_by = %(run)s FROM cut
    WHERE IN_IT AND messages.seq >= cut.seq AND superseded_by IS NULL AND kind <> 'change'
        AND (run_id IS NULL OR run_id IN (SELECT id FROM kept) OR NOT EXISTS (SELECT FROM beside))
)
SELECT EXISTS (SELECT FROM held) AS held, EXISTS (SELECT FROM message) AS found
""")
_KEPT_SEQ = select(RUNS.c.kept_seq).where(RUNS.c.user_id == bindparam("owner"), RUNS.c.id == bindparam("run"))
_REPLACED = done(
    and_(
        MESSAGES.c.superseded_by == bindparam("run"),
        MESSAGES.c.seq > func.coalesce(_KEPT_SEQ.scalar_subquery(), literal(0)),
    )
)
# A message that was read in the middle belongs to a run which answers an earlier one, as that may again.
_BEGINNING = Statement("""
WITH RECURSIVE earlier(id, seq) AS (
    SELECT id, seq FROM messages
    WHERE user_id = %(owner)s AND conversation_id = %(conversation)s AND id = %(message)s
    UNION
    SELECT first.id, first.seq
    FROM earlier
    JOIN messages said ON said.user_id = %(owner)s AND said.conversation_id = %(conversation)s AND said.id = earlier.id
    JOIN runs ON runs.user_id = %(owner)s AND runs.id = said.run_id
    JOIN messages first
        ON first.user_id = %(owner)s AND first.conversation_id = %(conversation)s AND first.id = runs.message_id
), bounds AS (
    SELECT min(seq) AS first, max(seq) AS last FROM earlier
)
SELECT earlier.id AS message_id, calls.item->'content'->'calls' AS calls
FROM bounds
JOIN earlier ON earlier.seq = bounds.first
LEFT JOIN messages calls
    ON calls.user_id = %(owner)s AND calls.conversation_id = %(conversation)s AND calls.kind = 'tool_calls'
    AND calls.seq > bounds.first AND calls.seq < bounds.last AND calls.superseded_by IS NULL
ORDER BY calls.seq
""")


async def send_beside(
    pipeline: Pipeline, run_id: str, message_id: str, *, again: bool, user_id: str, conversation_id: str
) -> Sequence[StoredItem] | None:
    """Let a run that holds its lease stand beside the one that has answered a message of the shown path.

    What followed the message is replaced by the run, and so is the message, unless it is answered `again`; what the
    person changed by hand meanwhile still holds. Returns the notes and calls that were replaced, the latest that fit
    into a page's bytes: a round trip. Nothing is done, and None returned, for a run without its lease; raises
    `NotFound` when there is no such message.
    """
    where = {"owner": user_id, "conversation": conversation_id, "run": run_id}
    placed = await pipeline.send(_BESIDE, **where, message=message_id, again=again)
    replaced = await pipeline.send(_REPLACED, **where)
    row = await placed.fetchone()
    assert row is not None
    if not row["held"]:
        return None
    if not row["found"]:
        raise NotFound
    return await done_rows(replaced)


@dataclass(frozen=True)
class Beginning:
    """The message that the run of a message began with, and the calls made between them, which still count."""

    message_id: str
    calls: list[dict[str, Any]]


async def of_message(engine: AsyncEngine, conversation_id: str, message_id: str, *, user_id: str) -> Beginning:
    """For the first message of a run: that message, and no calls."""
    async with pipelined(engine, user_id) as pipeline:
        found = await pipeline.send(_BEGINNING, owner=user_id, conversation=conversation_id, message=message_id)
    rows = await found.fetchall()
    calls = [call for row in rows for call in row["calls"] or ()]
    return Beginning(rows[0]["message_id"] if rows else message_id, calls)
