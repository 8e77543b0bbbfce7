"""Changes that a user made by hand in a conversation, such as a click in a card: the model reads them later."""

from collections.abc import Sequence
from typing import Any

from psycopg.types.json import Jsonb

from common.database import Database

# It takes its number under the lock of the run at the end of the shown path, as every write of that run does.
_ADD = """
WITH head AS (
    SELECT id FROM runs
    WHERE user_id = %(user)s AND conversation_id = %(conversation)s AND active AND parent_call_id IS NULL
    ORDER BY seq DESC LIMIT 1 FOR NO KEY UPDATE
)
INSERT INTO entries (user_id, run_id, id, conversation_id, kind, details)
SELECT %(user)s, head.id, %(id)s, %(conversation)s, 'change', %(details)s FROM head
ON CONFLICT (user_id, run_id, id) DO NOTHING"""


async def add(
    database: Database,
    user_id: str,
    conversation_id: str,
    *,
    change_id: str,
    kind: str,
    tasks: Sequence[tuple[int, str]],
) -> None:
    """Stores what a user did to tasks, given by id and title, for the model; once under the same `change_id`.

    Stores nothing in a conversation without shown runs.
    """
    details: dict[str, Any] = {"change": kind, "tasks": [{"id": number, "title": title} for number, title in tasks]}
    values = {"user": user_id, "conversation": conversation_id, "id": change_id, "details": Jsonb(details)}
    async with database.transaction(user_id) as tx:
        await tx.execute(_ADD, **values)
