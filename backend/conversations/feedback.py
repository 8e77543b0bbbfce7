"""What users think of answers and cards: a thumb up or down on an entry or tool call."""

from collections.abc import Iterable
from typing import Literal

from backend.errors import NotFound
from common.database import Database

Feedback = Literal["positive", "negative"]

# FOR SHARE: no other path is shown until the end of the transaction.
_LOCK_CONVERSATION = """
SELECT id FROM conversations WHERE user_id = %(user)s AND id = %(conversation)s FOR SHARE"""
_SHOWN_RUNS = """(SELECT id FROM runs WHERE user_id = %(user)s AND conversation_id = %(conversation)s AND active)"""
_FIND = f"""
SELECT id FROM entries
WHERE user_id = %(user)s AND run_id IN {_SHOWN_RUNS} AND id = ANY(%(records)s) AND seq IS NOT NULL
UNION SELECT id FROM tool_calls WHERE user_id = %(user)s AND run_id IN {_SHOWN_RUNS} AND id = ANY(%(records)s)"""
_SET_OF_ENTRIES = f"""
UPDATE entries SET feedback = %(feedback)s
WHERE user_id = %(user)s AND run_id IN {_SHOWN_RUNS} AND id = ANY(%(records)s)"""
_SET_OF_CALLS = f"""
UPDATE tool_calls SET feedback = %(feedback)s
WHERE user_id = %(user)s AND run_id IN {_SHOWN_RUNS} AND id = ANY(%(records)s)"""


async def store(
    database: Database, user_id: str, conversation_id: str, record_ids: Iterable[str], feedback: Feedback | None
) -> None:
    """Stores feedback on these shown entries and calls; None removes it.

    Raises `NotFound`, and stores nothing, if one of them is missing.
    """
    records = set(record_ids)
    where = {"user": user_id, "conversation": conversation_id, "records": list(records)}
    async with database.transaction(user_id) as tx:
        await tx.execute(_LOCK_CONVERSATION, **where)
        found = await tx.execute(_FIND, **where)
    if {row["id"] for row in await found.fetchall()} != records:
        raise NotFound
    async with database.transaction(user_id) as tx:
        await tx.execute(_LOCK_CONVERSATION, **where)
        await tx.execute(_SET_OF_ENTRIES, feedback=feedback, **where)
        await tx.execute(_SET_OF_CALLS, feedback=feedback, **where)
