"""Converts the conversations of version 0.1.0 in one transaction.

The old tables move unchanged to the schema `v01`, where branches, the work of agents and approvals stay readable until
a later version drops them. The active path of each conversation becomes one line of runs.
"""

import sys
from collections.abc import Sequence
from typing import Any

import psycopg
from psycopg.rows import namedtuple_row
from psycopg.sql import SQL, Identifier
from psycopg.types.json import Jsonb

from migrations.from_0_1_0.runs import NUMBERS, Json, convert_conversation

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
# Foreign keys would be checked with a plan for an empty table, if it were not analyzed.
_COPY = """
INSERT INTO conversations (user_id, id, name, title, details, created_at)
SELECT user_id, id, name, title, metadata, created_at FROM v01.conversations;
INSERT INTO consents (user_id, conversation_id, tool, reach, created_at)
SELECT user_id, conversation_id, tool, reach, created_at FROM v01.consents;
INSERT INTO requests (user_id, id, created_at)
SELECT user_id, id, started_at FROM v01.runs WHERE started_at > now() - interval '1 day';
ANALYZE conversations;
"""
_MESSAGES = """
SELECT seq, run_id, id, kind, item, feedback, created_at FROM v01.messages
WHERE user_id = %s AND conversation_id = %s AND superseded_by IS NULL AND kind <> 'widget' ORDER BY seq"""
_RUNS = """
SELECT id, status, outcome, usage, started_at, ended_at FROM v01.runs WHERE user_id = %s AND conversation_id = %s"""
_SET_SEQUENCE = "SELECT setval('event_seq', (1 + max(seq)) * %s) FROM v01.messages HAVING count(*) > 0"
_COPY_UNSENT_MESSAGES = """
INSERT INTO entries (user_id, run_id, id, conversation_id, seq, kind, text, details, created_at)
SELECT input.user_id, run.id, input.id, input.conversation_id, NULL, 'user_message', said->>'text',
    jsonb_build_object('mode', mode) || CASE
        WHEN said->'body'->>'quoted_text' <> '' OR said->'body'->'content' @> '[{"type": "input_tag"}]'
        THEN jsonb_strip_nulls(jsonb_build_object(
            'content', said->'body'->'content', 'quoted_text', said->'body'->'quoted_text'
        ))
        ELSE '{}'
    END, input.created_at
FROM v01.run_inputs AS input CROSS JOIN LATERAL (
    SELECT id FROM runs WHERE (runs.user_id, conversation_id) = (input.user_id, input.conversation_id)
    ORDER BY id = run_id DESC, seq DESC LIMIT 1
) AS run
WHERE taken_at IS NULL AND dropped_at IS NULL;
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
_COUNT = """
SELECT (SELECT count(*) FROM conversations) AS conversations,
    (SELECT count(*) FROM v01.messages WHERE superseded_by IS NULL AND kind <> 'widget') AS messages,
    (SELECT count(*) FROM runs WHERE conversation_id IS NOT NULL) AS runs,
    (SELECT count(*) FROM entries) AS entries, (SELECT count(*) FROM tool_calls) AS tool_calls
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
    cursor: psycopg.Cursor[Any] = connection.cursor(row_factory=namedtuple_row)
    for user, conversation in connection.execute("SELECT user_id, id FROM conversations").fetchall():
        old_runs = {run.id: run for run in cursor.execute(_RUNS, [user, conversation])}
        messages = cursor.execute(_MESSAGES, [user, conversation]).fetchall()
        for table, rows in convert_conversation(user, conversation, messages, old_runs).items():
            if rows:
                _insert(connection, table, rows)
    connection.execute(_COPY_UNSENT_MESSAGES)
    connection.execute(_SET_SEQUENCE, [NUMBERS])
    counts: Any = cursor.execute(_COUNT).fetchone()
    connection.execute(_COPY_USAGE)
    if counts.conversations:
        sys.stdout.write(
            f"Converted {counts.conversations:,} conversations, {counts.messages:,} messages: {counts.runs:,} runs "
            f"with {counts.entries:,} entries and {counts.tool_calls:,} tool calls. The old tables are kept in the "
            "schema v01.\n"
        )


def _insert(connection: psycopg.Connection[Any], table: str, rows: Sequence[Json]) -> None:
    """Inserts rows as one JSON document, because row-level security allows no COPY."""
    columns = SQL(", ").join(map(Identifier, dict.fromkeys(name for row in rows for name in row)))
    statement = SQL("INSERT INTO {table} ({columns}) SELECT {columns} FROM jsonb_populate_recordset(NULL::{table}, %s)")
    connection.execute(statement.format(table=Identifier(table), columns=columns), [Jsonb(rows)])
