"""Reads all that a conversation holds, on all its branches, for its event log."""

from collections.abc import Sequence
from datetime import datetime

from backend.conversations.records import Entry, Event, ModelTurn, Run, ToolCall
from backend.conversations.timeline import CALL_COLUMNS, ENTRY_COLUMNS, RUN_COLUMNS, SentTimeline, events_of
from common.database import Database

_RUNS = f"""
SELECT {RUN_COLUMNS} FROM runs r
WHERE r.user_id = %(user)s AND r.conversation_id = %(conversation)s ORDER BY r.seq"""
_ENTRIES = f"""
SELECT {ENTRY_COLUMNS} FROM entries e
WHERE e.user_id = %(user)s AND e.run_id = ANY(%(runs)s) AND e.seq IS NOT NULL"""
_CALLS = f"SELECT {CALL_COLUMNS} FROM tool_calls c WHERE c.user_id = %(user)s AND c.run_id = ANY(%(runs)s)"
_MODEL_TURNS = """
SELECT run_id, number AS model_turn, model, usage, seconds, finish_reason, seq FROM model_turns
WHERE user_id = %(user)s AND run_id = ANY(%(runs)s)"""
_SUCCESSORS = """
SELECT id, created_at FROM conversations
WHERE user_id = %(user)s AND details->>'left' = %(conversation)s ORDER BY id"""


async def load_runs(database: Database, user_id: str, conversation_id: str) -> list[Run]:
    """Loads all runs of a conversation, those of sub-agents and hidden branches too, in order."""
    async with database.transaction(user_id) as tx:
        found = await tx.execute(_RUNS, Run, user=user_id, conversation=conversation_id)
    return await found.fetchall()


async def load_events(database: Database, user_id: str, runs: Sequence[Run]) -> list[Event]:
    """Loads what happened in these runs, with the user's commands and changes by hand, in order, from one snapshot."""
    by_id = {run.id: run for run in runs}
    where = {"user": user_id, "runs": list(by_id)}
    async with database.transaction(user_id, snapshot=True) as tx:
        sent = SentTimeline(await tx.execute(_ENTRIES, Entry, **where), await tx.execute(_CALLS, ToolCall, **where))
        turns = await tx.execute(_MODEL_TURNS, ModelTurn, **where)
    records = (await sent.fetch()).records
    events = [
        *events_of([*records, *await turns.fetchall()], by_id),
        *(
            Event("entry_completed", entry, entry.seq, run=by_id[entry.run_id])
            for entry in records
            if isinstance(entry, Entry) and entry.kind in ("command", "change")
        ),
    ]
    return sorted(events, key=lambda event: event.number or 0)


async def load_successors(database: Database, user_id: str, conversation_id: str) -> list[tuple[str, datetime]]:
    """Loads the ids of the conversations that were begun in place of this one, and when."""
    async with database.transaction(user_id) as tx:
        found = await tx.execute(_SUCCESSORS, user=user_id, conversation=conversation_id)
    return [(row["id"], row["created_at"]) for row in await found.fetchall()]
