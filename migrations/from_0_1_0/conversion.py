"""Converts the conversations of version 0.1.0 in one transaction.

The old tables move unchanged to the schema `v01`, where branches, the work of agents and open approvals stay readable
until a later version drops them. The active path of each conversation becomes one line of runs.
"""

import sys
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any

import psycopg
from psycopg.rows import namedtuple_row
from psycopg.sql import SQL, Identifier
from psycopg.types.json import Jsonb

from migrations.from_0_1_0.line_of_runs import Json, LineOfRuns, Numbers, Rows

OLD_TABLES = (
    "conversations",
    "runs",
    "messages",
    "approvals",
    "run_inputs",
    "run_events",
    "agent_steps",
    "consents",
)
OLD_FUNCTIONS = (
    "renew_leases(text[])",
    "stale_runs()",
    "runs_of_worker(text)",
    "publish_events(text[], text[], bigint[], text[])",
    "sweep_run_events(integer, integer)",
)
_Key = tuple[str, str]  # user and conversation
_Batch = list[tuple[_Key, list[Any]]]
_BATCH_ROWS = 2_000  # messages, at least, because conversations are not divided
_ACTIVE_PATH = "FROM v01.messages WHERE superseded_by IS NULL AND kind <> 'widget'"
_MESSAGES = f"""
SELECT user_id, conversation_id, seq, run_id, id, kind, item, feedback, usage, created_at {_ACTIVE_PATH}
ORDER BY user_id, conversation_id, seq"""
_SELECT_ROWS = """
SELECT * FROM {} WHERE (user_id, conversation_id) IN (SELECT * FROM unnest(%s::text[], %s::text[]))
ORDER BY user_id, conversation_id, id"""
_COPY = """
INSERT INTO conversations (user_id, id, name, title, details, created_at)
SELECT user_id, id, name, title, metadata, created_at FROM v01.conversations;
INSERT INTO consents (user_id, conversation_id, tool, reach, created_at)
SELECT user_id, conversation_id, tool, reach, created_at FROM v01.consents;
INSERT INTO requests (user_id, id, created_at)
SELECT user_id, id, started_at FROM v01.runs WHERE started_at > now() - interval '1 day';
"""
# Runs outside of the active path, or whose conversation is deleted, keep their usage. The usage of agents becomes runs
# of their own.
_COPY_USAGE = """
INSERT INTO runs (user_id, id, top_run_id, agent, status, usage, created_at, running_since, ended_at)
SELECT user_id, id, id, 'assistant', coalesce(outcome, 'interrupted'), usage, started_at, started_at,
    coalesce(ended_at, now())
FROM v01.runs WHERE usage IS DISTINCT FROM '{}'
ON CONFLICT DO NOTHING;
INSERT INTO runs (user_id, id, top_run_id, parent_run_id, parent_call_id, agent, status, usage, created_at,
    running_since, ended_at)
SELECT r.user_id, r.id || '_' || name, r.id, r.id, name, name, r.status,
    jsonb_build_object('model', r.usage->'model') || used, r.created_at, r.created_at, r.ended_at
FROM runs r, jsonb_each(r.usage->'by_agent') AS agents (name, used);
UPDATE runs r SET usage = (r.usage - 'by_agent') || (
    SELECT jsonb_object_agg(name, (r.usage->>name)::bigint - coalesce((
        SELECT sum((used->>name)::bigint) FROM jsonb_each(r.usage->'by_agent') AS agents (agent, used)), 0))
    FROM unnest(ARRAY['requests', 'input_tokens', 'output_tokens']) AS name WHERE r.usage ? name)
WHERE r.usage ? 'by_agent';
"""


def move_old_tables(connection: psycopg.Connection[Any]) -> bool:
    """Moves the tables of conversations to `v01`; returns False for a new database, which has none."""
    if connection.execute("SELECT to_regclass('public.messages')").fetchone() == (None,):
        return False
    for table in OLD_TABLES:
        connection.execute(SQL("LOCK TABLE {} IN ACCESS EXCLUSIVE MODE").format(Identifier("public", table)))
    connection.execute("CREATE SCHEMA v01; DROP STATISTICS public.messages_of_one_person")
    for function in OLD_FUNCTIONS:
        connection.execute(f"DROP FUNCTION public.{function}".encode())
    for table in OLD_TABLES:
        connection.execute(SQL("ALTER TABLE {} SET SCHEMA v01").format(Identifier("public", table)))
    return True


def convert(connection: psycopg.Connection[Any]) -> None:
    """Fills the tables of this version from those in `v01`, and writes one line about it."""
    connection.execute(_COPY)
    numbers, counts = Numbers(), Counter[str]()
    for number, batch in enumerate(_iter_batches(connection)):
        for table, rows in _convert_batch(connection, batch, numbers).items():
            _insert(connection, table, rows)
            counts[table] += len(rows)
        if number == 0:  # or foreign keys would be checked with a plan for empty tables
            connection.execute("ANALYZE conversations, runs")
    connection.execute("SELECT setval('event_seq', %s)", [numbers.last + 1])
    connection.execute(_COPY_USAGE)
    if conversations := _count(connection, "FROM conversations"):
        messages = _count(connection, _ACTIVE_PATH)
        sys.stdout.write(
            f"Converted {conversations:,} conversations, {messages:,} messages: {counts['runs']:,} runs with "
            f"{counts['entries']:,} entries and {counts['tool_calls']:,} tool calls. The old tables are kept in the "
            "schema v01.\n"
        )


def _count(connection: psycopg.Connection[Any], source: str) -> int:
    [count] = connection.execute(f"SELECT count(*) {source}".encode()).fetchone() or (0,)
    return count


def _iter_batches(connection: psycopg.Connection[Any]) -> Iterator[_Batch]:
    batch: _Batch = []
    with connection.cursor("shown_messages", row_factory=namedtuple_row) as cursor:
        cursor.itersize = _BATCH_ROWS
        cursor.execute(_MESSAGES)
        for key, messages in groupby(cursor, _get_key):
            batch.append((key, list(messages)))
            if sum(len(each) for _, each in batch) >= _BATCH_ROWS:
                yield batch
                batch = []
    if batch:
        yield batch


def _get_key(row: Any) -> _Key:
    return row.user_id, row.conversation_id


def _convert_batch(connection: psycopg.Connection[Any], batch: _Batch, numbers: Numbers) -> Rows:
    keys = [key for key, _ in batch]
    runs = _read_rows(connection, "runs", keys)
    approvals = _read_rows(connection, "approvals", keys)
    inputs = _read_rows(connection, "run_inputs", keys)
    rows: Rows = defaultdict(list)
    for key, messages in batch:
        old_runs = {run.id: run for run in runs[key]}
        line = LineOfRuns(key, old_runs=old_runs, approvals=approvals[key], numbers=numbers, rows=rows)
        line.convert(messages, inputs[key])
    return rows


def _read_rows(connection: psycopg.Connection[Any], table: str, keys: Sequence[_Key]) -> defaultdict[_Key, list[Any]]:
    statement = SQL(_SELECT_ROWS).format(Identifier("v01", table))
    cursor = connection.cursor(row_factory=namedtuple_row)
    cursor.execute(statement, [[user for user, _ in keys], [conversation for _, conversation in keys]])
    rows: defaultdict[_Key, list[Any]] = defaultdict(list)
    for row in cursor:
        rows[_get_key(row)].append(row)
    return rows


def _insert(connection: psycopg.Connection[Any], table: str, rows: Sequence[Json]) -> None:
    """Inserts rows as one JSON document, because row-level security allows no COPY."""
    columns = SQL(", ").join(map(Identifier, dict.fromkeys(name for row in rows for name in row)))
    statement = SQL("INSERT INTO {table} ({columns}) SELECT {columns} FROM jsonb_populate_recordset(NULL::{table}, %s)")
    connection.execute(statement.format(table=Identifier(table), columns=columns), [Jsonb(rows)])
