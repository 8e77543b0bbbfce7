"""What users add to a conversation apart from messages: changes by hand, commands, and feedback."""

from collections.abc import Iterable, Sequence
from typing import Any, Literal

from psycopg.types.json import Jsonb

from backend.errors import NotFound
from common.database import Database
from common.ids import new_id

Feedback = Literal["positive", "negative"]

# As of every write of a run, its number is taken under the lock of the run: the one at the end of the shown path, or
# for a command, after a branch was left, the newest one.
_ADD = """
WITH head AS (
    SELECT id FROM runs
    WHERE user_id = %(user)s AND conversation_id = %(conversation)s AND parent_call_id IS NULL
      AND (active OR %(kind)s = 'command')
    ORDER BY active DESC, seq DESC LIMIT 1 FOR NO KEY UPDATE
)
INSERT INTO entries (user_id, run_id, id, conversation_id, kind, text, details)
SELECT %(user)s, head.id, %(id)s, %(conversation)s, %(kind)s, %(text)s, %(details)s FROM head
ON CONFLICT (user_id, run_id, id) DO NOTHING"""
# FOR SHARE: no other path is shown until the end of the transaction.
_LOCK_CONVERSATION = """
SELECT id FROM conversations WHERE user_id = %(user)s AND id = %(conversation)s FOR SHARE"""
_SHOWN_RUNS = """(SELECT id FROM runs WHERE user_id = %(user)s AND conversation_id = %(conversation)s AND active)"""
_RATE_ENTRIES = f"""
UPDATE entries SET feedback = %(feedback)s
WHERE user_id = %(user)s AND run_id IN {_SHOWN_RUNS} AND id = ANY(%(records)s) AND seq IS NOT NULL RETURNING id"""
_RATE_CALLS = f"""
UPDATE tool_calls SET feedback = %(feedback)s
WHERE user_id = %(user)s AND run_id IN {_SHOWN_RUNS} AND id = ANY(%(records)s) RETURNING id"""


async def add_change(
    database: Database,
    user_id: str,
    conversation_id: str,
    *,
    change_id: str,
    kind: str,
    tasks: Sequence[tuple[int, str]],
) -> None:
    """Stores what a user did to tasks, given by id and title, for the model; once under the same `change_id`."""
    details: dict[str, Any] = {"change": kind, "tasks": [{"id": number, "title": title} for number, title in tasks]}
    values = {"conversation": conversation_id, "id": change_id, "kind": "change", "text": ""}
    await database.execute(user_id, _ADD, details=Jsonb(details), **values)


async def add_command(
    database: Database, user_id: str, conversation_id: str, text: str, result: dict[str, Any]
) -> None:
    """Stores a command that was executed, for the event log alone; nothing in a conversation without runs."""
    values = {"conversation": conversation_id, "id": new_id("cmd"), "kind": "command", "text": text}
    await database.execute(user_id, _ADD, details=Jsonb(result), **values)


async def store_feedback(
    database: Database, user_id: str, conversation_id: str, record_ids: Iterable[str], feedback: Feedback | None
) -> None:
    """Stores feedback on these shown records, None for none. Raises `NotFound` and stores nothing if one is missing."""
    records = set(record_ids)
    where = {"conversation": conversation_id, "records": list(records), "feedback": feedback}
    async with database.transaction(user_id) as tx:
        await tx.execute(_LOCK_CONVERSATION, **where)
        entries = await tx.execute(_RATE_ENTRIES, **where)
        calls = await tx.execute(_RATE_CALLS, **where)
        rated = {row["id"] for row in [*await entries.fetchall(), *await calls.fetchall()]}
        if rated != records:
            await tx.roll_back()
    if rated != records:
        raise NotFound
