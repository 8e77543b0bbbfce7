"""Reads what a conversation or a run holds, in order, and the events of a run after a number."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import accumulate
from typing import Any, LiteralString

from psycopg import AsyncCursor
from psycopg.rows import DictRow

from backend.conversations.records import (
    Entry,
    Event,
    EventRecord,
    EventType,
    ModelTurn,
    Record,
    Run,
    RunLink,
    Timeline,
    ToolCall,
)
from backend.users.usage import TOKENS_TODAY
from common.database import Database, Transaction, fetch_rows

ENTRY_COLUMNS = """e.run_id, e.id, e.kind, e.text, e.details, e.complete, e.model_turn, e.feedback, e.seq, e.last_seq,
    e.created_at"""
CALL_COLUMNS = """c.run_id, c.id, c.model_turn, c.tool, c.arguments, c.state, c.idempotency_key, c.output, c.details,
    c.seconds, c.approval_text, c.reach, c.reason, c.decision_text, c.feedback, c.seq, c.approval_seq, c.decision_seq,
    c.result_seq, c.created_at"""
REPLAY_COLUMNS = """t.run_id, t.number AS model_turn, t.model, t.usage, t.seconds, t.finish_reason, t.seq, t.replay"""
RUN_COLUMNS = """r.user_id, r.id, r.conversation_id, r.seq, r.previous_run_id, r.parent_run_id, r.parent_call_id,
    r.top_run_id, r.agent, r.active, r.status, r.process_id, r.stop_requested, r.options, r.usage, r.error_code,
    r.created_at, r.running_since, r.ended_at, r.end_seq"""
CHANGES_COLUMN = """(SELECT e.details FROM entries e
        WHERE e.user_id = %(user)s AND e.run_id = r.id AND e.kind = 'changes' AND e.complete LIMIT 1) AS changes"""
HAS_HAPPENED = "(e.complete OR e.kind <> 'changes')"
"""Leaves out what a run has changed so far that waits: that is read when it has ended."""
FIND_CONVERSATION = "SELECT id FROM conversations WHERE user_id = %(user)s AND id = %(conversation)s"
LOCK_CONVERSATION = f"{FIND_CONVERSATION} FOR NO KEY UPDATE"
RUNS_OF_TREE = "SELECT id FROM runs WHERE user_id = %(user)s AND top_run_id = %(top)s"
FOREVER = 2**62  # a number that no event reaches
MAX_RUNS = 200  # whose records are read at once
MAX_RECORDS = 600  # entries, and as many calls
PAGE_BYTES = 1_048_576  # of what is read for one page, except that one run may be larger

# Of a run with its sub-agents. Values of JSON are counted as they are stored, as others would have to be read for it.
TREE_BYTES = """coalesce((
    SELECT sum(
        coalesce((SELECT sum(octet_length(e.text) + coalesce(pg_column_size(e.details), 0))
            FROM entries e WHERE e.user_id = t.user_id AND e.run_id = t.id), 0)
        + coalesce((SELECT sum(octet_length(c.arguments) + coalesce(octet_length(c.output), 0)
                + coalesce(pg_column_size(c.details), 0))
            FROM tool_calls c WHERE c.user_id = t.user_id AND c.run_id = t.id), 0))
    FROM runs t WHERE t.user_id = r.user_id AND t.top_run_id = r.id), 0)::bigint"""

# The newest runs of the shown path first: what other paths hold costs nothing. A change by hand is on every path.
SHOWN_RUNS = """
SELECT id FROM runs
WHERE user_id = %(user)s AND conversation_id = %(conversation)s AND active AND parent_call_id IS NULL
  AND seq < %(before)s
ORDER BY seq DESC LIMIT %(runs)s"""
RUN_OF_CALL = """
SELECT run_id FROM tool_calls
WHERE user_id = %(user)s AND conversation_id = %(conversation)s AND id = %(call)s ORDER BY seq DESC LIMIT 1"""


@dataclass(slots=True)
class SentTimeline:
    """Statements that were sent; `fetch` reads their rows after the transaction, without another round trip."""

    entries: AsyncCursor[Entry]
    calls: AsyncCursor[ToolCall]
    model_turns: AsyncCursor[ModelTurn] | None = None

    async def fetch(self) -> Timeline:
        records: list[Record] = [*await fetch_rows(self.entries), *await fetch_rows(self.calls)]
        turns = [] if self.model_turns is None else await fetch_rows(self.model_turns)
        return Timeline(sorted(records, key=lambda record: record.seq or 0), model_turns=turns)


@dataclass(frozen=True, slots=True)
class RecordStatements:
    """The statements that read entries, tool calls and, of a history, replays; `limit` is one of their values."""

    entries: LiteralString
    calls: LiteralString
    replays: LiteralString | None = None

    async def send(self, tx: Transaction, **values: Any) -> SentTimeline:
        values["limit"] = MAX_RECORDS
        return SentTimeline(
            await tx.execute(self.entries, Entry, **values),
            await tx.execute(self.calls, ToolCall, **values),
            None if self.replays is None else await tx.execute(self.replays, ModelTurn, **values),
        )

    async def load(self, database: Database, user_id: str, **values: Any) -> Timeline:
        async with database.transaction(user_id) as tx:
            sent = await self.send(tx, **values)
        return await sent.fetch()


def all_records(runs: LiteralString) -> RecordStatements:
    return RecordStatements(
        f"""
SELECT {ENTRY_COLUMNS} FROM entries e
WHERE e.user_id = %(user)s AND e.run_id = ANY({runs}) AND e.seq IS NOT NULL AND {HAS_HAPPENED}""",
        f"SELECT {CALL_COLUMNS} FROM tool_calls c WHERE c.user_id = %(user)s AND c.run_id = ANY({runs})",
    )


def newest_records(runs: LiteralString, before: LiteralString = "%(before)s") -> RecordStatements:
    return RecordStatements(
        f"""
SELECT {ENTRY_COLUMNS} FROM entries e
WHERE e.user_id = %(user)s AND e.conversation_id = %(conversation)s AND e.seq < {before}
  AND (e.run_id = ANY({runs}) OR e.kind = 'change') AND e.kind <> 'command' AND {HAS_HAPPENED}
ORDER BY e.seq DESC LIMIT %(limit)s""",
        f"""
SELECT {CALL_COLUMNS} FROM tool_calls c
WHERE c.user_id = %(user)s AND c.conversation_id = %(conversation)s AND c.seq < {before} AND c.run_id = ANY({runs})
ORDER BY c.seq DESC LIMIT %(limit)s""",
    )


_SHOWN = newest_records(SHOWN_RUNS)
_RUN_OF_RECORD = """
SELECT run_id FROM (
    SELECT run_id, seq FROM tool_calls
    WHERE user_id = %(user)s AND conversation_id = %(conversation)s AND id = %(record)s
    UNION ALL
    SELECT run_id, seq FROM entries
    WHERE user_id = %(user)s AND conversation_id = %(conversation)s AND id = %(record)s
) records ORDER BY seq DESC LIMIT 1"""
_OF_RECORD = all_records(_RUN_OF_RECORD)
_TREES = """
FROM runs r WHERE r.user_id = %(user)s AND r.top_run_id = ANY(%(tops)s)
  AND (r.parent_run_id IS NOT NULL OR NOT %(only_sub_agents)s)"""
# Only the message of a follow-up that has started a run has this mode and a number; a retry of it comes later.
_RUNS_OF_TREES = f"""
SELECT {RUN_COLUMNS}, CASE WHEN r.status = 'completed' THEN (
        SELECT n.id FROM runs n JOIN entries e ON e.user_id = n.user_id AND e.run_id = n.id
        WHERE n.user_id = r.user_id AND n.conversation_id = r.conversation_id AND n.previous_run_id = r.id
          AND e.details->>'mode' = 'follow_up' AND e.seq IS NOT NULL
        ORDER BY n.seq LIMIT 1) END AS next_run_id,
    {CHANGES_COLUMN}
{_TREES} ORDER BY r.seq"""
_ALL_OF_TREES = all_records(f"SELECT r.id {_TREES}")
_OF_TREES = RecordStatements(
    f"{_ALL_OF_TREES.entries} AND (e.last_seq > %(after)s OR NOT e.complete)",
    f"{_ALL_OF_TREES.calls} AND c.last_seq > %(after)s",
)
_MODEL_TURNS = f"""
SELECT run_id, number AS model_turn, model, usage, seconds, finish_reason, seq FROM model_turns
WHERE user_id = %(user)s AND run_id IN (SELECT r.id {_TREES})"""
# The summary that a run reads first: it was made after the run that this one continues.
_NEW_SUMMARY = f"""
SELECT {ENTRY_COLUMNS}
FROM runs r JOIN entries e ON e.user_id = r.user_id AND e.run_id = r.previous_run_id
WHERE r.user_id = %(user)s AND r.id = %(run)s AND e.kind = 'summary' AND e.seq < r.seq
ORDER BY e.seq DESC LIMIT 1"""
_PROGRESS = f"""
SELECT greatest(0, (SELECT max(last_seq) FROM entries WHERE user_id = %(user)s AND run_id IN ({RUNS_OF_TREE})),
        (SELECT max(last_seq) FROM tool_calls WHERE user_id = %(user)s AND run_id IN ({RUNS_OF_TREE}))) AS number,
    {TOKENS_TODAY} AS tokens_today,
    (SELECT count(*) FROM model_turns m JOIN runs r ON r.user_id = m.user_id AND r.id = m.run_id
    WHERE r.user_id = %(user)s AND r.top_run_id = %(top)s AND r.parent_call_id IS NOT NULL) AS agent_model_turns"""
_SIZES = f"SELECT r.id AS run_id, {TREE_BYTES} AS size FROM runs r WHERE r.user_id = %(user)s AND r.id = ANY(%(tops)s)"
_LINKS_OF_CONVERSATION = """
SELECT r.id, r.previous_run_id, r.parent_run_id, r.parent_call_id FROM runs r
WHERE r.user_id = %(user)s AND r.conversation_id = %(conversation)s ORDER BY r.seq"""
_SUCCESSORS = """
SELECT id, created_at FROM conversations
WHERE user_id = %(user)s AND details->>'left' = %(conversation)s ORDER BY id"""


async def load_shown(
    database: Database, user_id: str, conversation_id: str, *, before: int = FOREVER, runs: int = MAX_RUNS
) -> Timeline:
    return await _SHOWN.load(database, user_id, conversation=conversation_id, before=before, runs=runs)


async def load_run_of_record(database: Database, user_id: str, conversation_id: str, record_id: str) -> Timeline:
    return await _OF_RECORD.load(database, user_id, conversation=conversation_id, record=record_id)


async def load_trees(
    database: Database, user_id: str, top_run_ids: Sequence[str], *, only_sub_agents: bool = False, after: int = 0
) -> Timeline:
    """Loads what happened after a number in these runs and their sub-agents' runs; no runs if the user has none.

    Model turns are loaded from the beginning, which tells whether one has ended before the number.

    All is read from one snapshot: of what was committed together all or nothing is seen, so no number is skipped.
    """
    where = {"tops": list(top_run_ids), "only_sub_agents": only_sub_agents, "after": after}
    async with database.transaction(user_id, snapshot=True) as tx:
        runs = await tx.execute(_RUNS_OF_TREES, Run, **where)
        sent = await _OF_TREES.send(tx, **where)
        turns = await tx.execute(_MODEL_TURNS, ModelTurn, **where)
    trees = await sent.fetch()
    trees.runs, trees.model_turns = await runs.fetchall(), await turns.fetchall()
    return trees


async def load_sizes(database: Database, user_id: str, top_run_ids: Sequence[str]) -> dict[str, int]:
    """Loads about how many bytes the records of each of these runs and of their sub-agents' runs have."""
    rows = await database.fetch_all(user_id, _SIZES, tops=list(top_run_ids))
    return {row["run_id"]: row["size"] for row in rows}


def count_within(sizes: Sequence[int], most: int) -> int:
    """Returns how many of the first sizes are at most `most` together; 1 if the first one alone is more."""
    return max(1, sum(total <= most for total in accumulate(sizes)))


async def load_new_summary(database: Database, user_id: str, run_id: str) -> Entry | None:
    return await database.fetch_one(user_id, _NEW_SUMMARY, Entry, run=run_id)


async def send_progress(tx: Transaction, top_run_id: str) -> AsyncCursor[DictRow]:
    """Sends the query for the last `number` of a tree of runs, how many `agent_model_turns` its sub-agents had, and the
    user's `tokens_today`.
    """
    return await tx.execute(_PROGRESS, top=top_run_id)


async def load_links(database: Database, user_id: str, conversation_id: str) -> dict[str, RunLink]:
    """Loads the links of all runs of a conversation in order, a hundred at a time: 20,000 at once take long."""
    links: dict[str, RunLink] = {}
    async with database.transaction(user_id, snapshot=True) as tx:
        async for row in tx.stream(_LINKS_OF_CONVERSATION, conversation=conversation_id):
            previous = links.get(row["previous_run_id"] or "")  # whose id is in memory once
            links[row["id"]] = RunLink(**{**row, "previous_run_id": previous and previous.id})
    return links


async def load_successors(database: Database, user_id: str, conversation_id: str) -> list[tuple[str, datetime]]:
    rows = await database.fetch_all(user_id, _SUCCESSORS, conversation=conversation_id)
    return [(row["id"], row["created_at"]) for row in rows]


def events_of(timeline: Timeline, after: int = 0) -> list[Event]:
    """Returns what happened in the runs of a timeline after a number, in order."""
    runs = {run.id: run for run in timeline.runs}
    events = [
        Event(kind, record, number, run=runs.get(record.run_id))
        for record in (*timeline.records, *timeline.model_turns)
        for kind, number in moments_of(record)
        if number is not None and number > after
    ]
    return sorted(events, key=lambda event: event.number or 0)


def find_new_summary(history: Timeline, run: Run) -> Entry | None:
    last = history.find_last("summary")
    return last if last and last.run_id == run.previous_run_id and (last.seq or 0) < run.seq else None


def with_summary(events: list[Event], summary: Entry | None) -> list[Event]:
    """Inserts the summary that a run is the first to read after its message, which is its first event."""
    if summary is None or not events:
        return events
    first = events[0]
    return [first, Event("entry_completed", summary, first.number, run=first.run), *events[1:]]


def moments_of(record: EventRecord) -> list[tuple[EventType, int | None]]:
    """Returns the events of a record, in order, with their numbers, which are None until they have happened.

    What belongs to the conversation and not to its run, and what only the model reads, has none.
    """
    if isinstance(record, Entry):
        # What may come after its run's end belongs to the conversation; a branch note is for the model alone.
        is_event = record.complete and record.kind not in ("summary", "change", "branch_note", "command")
        kind = "entry_withdrawn" if record.kind == "withdrawn" else "entry_completed"
        return [(kind, record.last_seq)] if is_event else []
    if isinstance(record, ModelTurn):
        return [("model_turn_ended", record.seq)]
    return [
        ("call_requested", record.seq),
        ("approval_requested", record.approval_seq),
        ("approval_decided", record.decision_seq),
        ("call_completed", record.result_seq),
    ]
