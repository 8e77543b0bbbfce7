"""Creates rows in bulk. Conversations are copies of one that the product has created, so that they are valid."""

import psycopg

# The runs of the copies, each with the offset of its numbers from those of the template.
_COPIES = """
generate_series(1, %(threads)s) n, generate_series(1, %(turns)s) k,
LATERAL (SELECT %(prefix)s || n AS thread, %(prefix)s || n || '_run_' AS runs, '_' || n || '_' || k AS suffix,
    %(base)s + ((n - 1) * %(turns)s + k - 1) * %(span)s - %(first)s AS shift) c
"""
_NUMBERS = """
SELECT min(seq) AS first, max(end_seq) - min(seq) + 1 AS span, max(nextval('event_seq')) AS base
FROM runs WHERE conversation_id = %(template)s
"""
_CONVERSATIONS = """
INSERT INTO conversations
SELECT (jsonb_populate_record(one, jsonb_build_object('id', %(prefix)s || n, 'name', NULL))).*
FROM conversations one, generate_series(1, %(threads)s) n WHERE id = %(template)s
"""
_RUNS = f"""
INSERT INTO runs
SELECT (jsonb_populate_record(r, jsonb_build_object(
    'id', c.runs || k, 'top_run_id', c.runs || k, 'conversation_id', thread,
    'previous_run_id', CASE WHEN k > 1 THEN c.runs || k - 1 END, 'seq', seq + shift, 'end_seq', end_seq + shift
))).*
FROM runs r, {_COPIES} WHERE conversation_id = %(template)s
"""
_ENTRIES = f"""
INSERT INTO entries (user_id, run_id, id, conversation_id, seq, completion_seq, kind, text, details, model_turn)
SELECT user_id, c.runs || k, id || suffix, thread, seq + shift, completion_seq + shift, kind, text, details, model_turn
FROM entries, {_COPIES} WHERE conversation_id = %(template)s
"""
_CALLS = f"""
INSERT INTO tool_calls (user_id, run_id, id, conversation_id, seq, result_seq, model_turn, tool, arguments, state,
    idempotency_key, output, details, seconds)
SELECT user_id, c.runs || k, id || suffix, thread, seq + shift, result_seq + shift, model_turn, tool, arguments, state,
    idempotency_key || suffix, output, details, seconds
FROM tool_calls, {_COPIES} WHERE conversation_id = %(template)s
"""
_MODEL_TURNS = f"""
INSERT INTO model_turns
SELECT (jsonb_populate_record(m, jsonb_build_object('run_id', c.runs || k, 'seq', m.seq + shift))).*
FROM model_turns m JOIN runs r ON (r.user_id, r.id) = (m.user_id, m.run_id), {_COPIES}
WHERE conversation_id = %(template)s
"""
_LAST_NUMBER = "SELECT setval('event_seq', %(base)s + %(threads)s::bigint * %(turns)s * %(span)s)"
_TASKS = """
WITH new_user AS (INSERT INTO people (user_id, last_task_id) VALUES (%(user)s, %(count)s))
INSERT INTO tasks (user_id, id, title, status, completed_at, due_on, priority, labels)
SELECT %(user)s, n, CASE WHEN few THEN 'Write to Zoë ' ELSE 'Task ' END || n,
       CASE WHEN done THEN 'completed' ELSE 'pending' END, CASE WHEN done THEN now() - n * interval '1 hour' END,
       current_date + CASE WHEN few THEN -3 ELSE n %% 400 END, CASE WHEN few THEN 1 ELSE 2 END,
       ARRAY[CASE WHEN few THEN 'garden' ELSE 'work' END]
FROM generate_series(1, %(count)s) n, LATERAL (SELECT n %% 2 = 0, n <= 10) AS those (done, few)
"""


def copy_conversation(url: str, template: str, *, prefix: str, threads: int, turns: int) -> list[str]:
    """Copies a conversation of one run; each copy has that run `turns` times. Returns the ids of the copies."""
    values = {"template": template, "prefix": prefix, "threads": threads, "turns": turns}
    with psycopg.connect(url) as connection:
        first, span, base = connection.execute(_NUMBERS, values).fetchall()[0]
        values |= {"first": first, "span": span, "base": base}
        for statement in (_CONVERSATIONS, _RUNS, _ENTRIES, _CALLS, _MODEL_TURNS, _LAST_NUMBER):
            connection.execute(statement.encode(), values)
    return [f"{prefix}{n}" for n in range(1, threads + 1)]


def add_tasks(url: str, user: str, count: int) -> None:
    with psycopg.connect(url) as connection:
        connection.execute(_TASKS, {"user": user, "count": count})


def count_summaries(url: str, conversation: str) -> int:
    with psycopg.connect(url) as connection:
        statement = "SELECT count(*) FROM entries WHERE conversation_id = %s AND kind = 'summary'"
        return connection.execute(statement, [conversation]).fetchall()[0][0]


def vacuum(url: str) -> None:
    """Prevents that autovacuum runs during a measurement."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("VACUUM ANALYZE")
        connection.execute("CHECKPOINT")
