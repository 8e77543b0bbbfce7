"""What the model reads of a conversation: what no summary covers, the notes that belong to it, and summaries."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import LiteralString

from psycopg import AsyncCursor
from psycopg.rows import DictRow
from psycopg.types.json import Jsonb

from backend.conversations.records import Run, Timeline, ToolCall
from backend.conversations.timeline import (
    CALL_COLUMNS,
    ENTRY_COLUMNS,
    FOREVER,
    LOCK_CONVERSATION,
    MAX_RECORDS,
    MAX_RUNS,
    REPLAY_COLUMNS,
    SHOWN_RUNS,
    RecordStatements,
    SentTimeline,
)
from common.database import Database, Transaction, fetch_rows

_SUMMARY = f"""
SELECT {ENTRY_COLUMNS} FROM entries e JOIN runs r ON r.user_id = e.user_id AND r.id = e.run_id AND r.active
WHERE e.user_id = %(user)s AND e.conversation_id = %(conversation)s AND e.kind = 'summary'
ORDER BY e.seq DESC LIMIT 1"""
_COVERED = f"(SELECT coalesce(max((covering.details->>'covers')::bigint), 0) FROM ({_SUMMARY}) covering)"
# The calls that branch notes name are of runs that are not shown.
_NOTED_CALLS = f"""
SELECT {CALL_COLUMNS} FROM entries e JOIN runs r ON r.user_id = e.user_id AND r.id = e.run_id AND {{which}}
CROSS JOIN LATERAL jsonb_to_recordset(e.details->'calls') AS noted(run_id text, id text)
JOIN tool_calls c ON c.user_id = e.user_id AND c.run_id = noted.run_id AND c.id = noted.id
WHERE e.user_id = %(user)s AND e.conversation_id = %(conversation)s AND e.kind = 'branch_note'"""
_SHOWN_NOTED_CALLS, _ALL_NOTED_CALLS = _NOTED_CALLS.format(which="r.active"), _NOTED_CALLS.format(which="true")
_MEMORY_AND_DIRECTORY = """
SELECT (SELECT memory FROM profiles WHERE user_id = %(user)s) AS memory, (
    SELECT details->>'directory' FROM conversations WHERE user_id = %(user)s AND id = %(conversation)s
) AS directory"""
_ACTIVE_RUNS = """
SELECT id FROM runs
WHERE user_id = %(user)s AND conversation_id = %(conversation)s AND active AND parent_call_id IS NULL"""


def _uncovered(runs: LiteralString, order: LiteralString, replays: LiteralString | None = None) -> RecordStatements:
    return RecordStatements(
        f"""
(SELECT {ENTRY_COLUMNS} FROM entries e
WHERE e.user_id = %(user)s AND e.conversation_id = %(conversation)s AND e.seq > {_COVERED} AND e.seq <= %(up_to)s
  AND (e.run_id IN ({runs}) OR e.kind = 'change') AND e.kind NOT IN ('summary', 'command', 'changes')
ORDER BY e.seq {order} LIMIT %(limit)s)
UNION ALL ({_SUMMARY})""",
        f"""
SELECT {CALL_COLUMNS} FROM tool_calls c
WHERE c.user_id = %(user)s AND c.conversation_id = %(conversation)s AND c.seq > {_COVERED} AND c.seq <= %(up_to)s
  AND c.run_id IN ({runs})
ORDER BY c.seq {order} LIMIT %(limit)s""",
        replays,
    )


_REPLAYS = f"""
SELECT {REPLAY_COLUMNS} FROM model_turns t
WHERE t.user_id = %(user)s AND t.replay IS NOT NULL AND t.seq > {_COVERED} AND t.run_id IN ({SHOWN_RUNS})
ORDER BY t.seq DESC LIMIT %(limit)s"""
_HISTORY = _uncovered(SHOWN_RUNS, "DESC", _REPLAYS)
_TO_SUMMARISE = _uncovered(_ACTIVE_RUNS, "ASC")
# It belongs to the newest run, and is made only if the path to the run after which it was asked for is still shown.
_ADD_SUMMARY = """
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


@dataclass(slots=True)
class SentHistory:
    """Statements that were sent: at most `MAX_RECORDS` entries, as many calls, those that branch notes name, and the
    memory and directory.
    """

    records: SentTimeline
    noted_calls: AsyncCursor[ToolCall]
    memory_and_directory: AsyncCursor[DictRow]

    async def fetch(self) -> Timeline:
        found = await self.records.fetch()
        found.noted_calls = _by_id(await fetch_rows(self.noted_calls))
        # Where one of both was cut off, the other begins there, too.
        summaries = [entry for entry in found.entries if entry.kind == "summary"]
        others = [entry for entry in found.entries if entry.kind != "summary"]
        starts = [records[0].seq or 0 for records in (others, found.calls) if len(records) >= MAX_RECORDS]
        if starts:
            kept = [one for one in found.records if (one.seq or 0) >= max(starts) or one in summaries]
            found.records, found.is_complete = kept, False
        elif len({one.run_id for one in found.records}) >= MAX_RUNS:
            found.is_complete = False
        row = await self.memory_and_directory.fetchone()
        assert row is not None
        found.memory, found.directory = row["memory"] or "", row["directory"]
        return found


async def send_history(tx: Transaction, conversation_id: str) -> SentHistory:
    where = {"conversation": conversation_id, "before": FOREVER, "up_to": FOREVER, "runs": MAX_RUNS}
    return SentHistory(
        await _HISTORY.send(tx, **where),
        await tx.execute(_SHOWN_NOTED_CALLS, ToolCall, **where),
        await tx.execute(_MEMORY_AND_DIRECTORY, **where),
    )


async def load_history(database: Database, user_id: str, conversation_id: str) -> Timeline:
    async with database.transaction(user_id) as tx:
        sent = await send_history(tx, conversation_id)
    return await sent.fetch()


async def load_uncovered(database: Database, user_id: str, conversation_id: str, *, up_to: int) -> Timeline:
    async with database.transaction(user_id) as tx:
        sent = await _TO_SUMMARISE.send(tx, conversation=conversation_id, up_to=up_to)
        noted = await tx.execute(_SHOWN_NOTED_CALLS, ToolCall, conversation=conversation_id)
    uncovered = await sent.fetch()
    uncovered.noted_calls = _by_id(await fetch_rows(noted))
    return uncovered


async def load_noted_calls(database: Database, user_id: str, conversation_id: str) -> dict[tuple[str, str], ToolCall]:
    return _by_id(await database.fetch_all(user_id, _ALL_NOTED_CALLS, ToolCall, conversation=conversation_id))


def _by_id(calls: Iterable[ToolCall]) -> dict[tuple[str, str], ToolCall]:
    return {(call.run_id, call.id): call for call in calls}


async def add_summary(database: Database, run: Run, summary_id: str, text: str, *, covers: int, messages: int) -> bool:
    """Stores a summary of all up to the number `covers`, with so many messages that none covered before.

    Returns false if the run is not shown any more, or there is one that covers as much.
    """
    where = {"conversation": run.conversation_id, "run": run.id, "id": summary_id, "covers": covers}
    details = Jsonb({"covers": covers, "messages": messages})
    async with database.transaction(run.user_id) as tx:
        await tx.execute(LOCK_CONVERSATION, **where)
        added = await tx.execute(_ADD_SUMMARY, text=text, details=details, **where)
    return await added.fetchone() is not None
