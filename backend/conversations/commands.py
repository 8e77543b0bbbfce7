"""Commands that a user gave in a conversation, for its event log. Neither the model nor the page reads them."""

from typing import Any

from psycopg.types.json import Jsonb

from common.database import Database
from common.ids import new_id

# As of every write of a run, its number is taken under the lock of the run. After a branch was left there may be no
# shown run.
_ADD = """
WITH head AS (
    SELECT id FROM runs
    WHERE user_id = %(user)s AND conversation_id = %(conversation)s AND parent_call_id IS NULL
    ORDER BY active DESC, seq DESC LIMIT 1 FOR NO KEY UPDATE
)
INSERT INTO entries (user_id, run_id, id, conversation_id, kind, text, details)
SELECT %(user)s, head.id, %(id)s, %(conversation)s, 'command', %(text)s, %(result)s FROM head"""


async def add(database: Database, user_id: str, conversation_id: str, text: str, result: dict[str, Any]) -> None:
    """Stores a command that was executed, for the event log; nothing in a conversation without runs."""
    values = {"user": user_id, "conversation": conversation_id, "id": new_id("cmd"), "text": text}
    async with database.transaction(user_id) as tx:
        await tx.execute(_ADD, result=Jsonb(result), **values)
