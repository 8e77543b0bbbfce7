"""What an answer goes on from that begins in the middle of a run: at a message that was read while it answered."""

from dataclasses import dataclass
from typing import Any

from sqlalchemy.ext.asyncio import AsyncEngine

from service.database import Statement, pipelined

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
