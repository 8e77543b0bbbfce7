"""Rows in bulk: conversations are copies of one that the product itself has made, so their form is always today's.

Columns that an older version does not have are passed over.
"""

import psycopg

_CONVERSATIONS = """
INSERT INTO conversations
SELECT (jsonb_populate_record(one, jsonb_build_object(
    'id', %(prefix)s || n, 'leaf_run_id', %(prefix)s || n || '_run_' || %(turns)s::text
))).*
FROM conversations one, generate_series(1, %(threads)s) n WHERE id = %(template)s
"""
_RUNS = """
INSERT INTO runs
SELECT (jsonb_populate_record(one, jsonb_build_object(
    'id', thread || '_run_' || k, 'conversation_id', thread,
    'parent_run_id', CASE WHEN k > 1 THEN thread || '_run_' || k - 1 END, 'message_id', said || '_' || k
))).*
FROM (
    SELECT runs AS one, messages.id AS said, %(prefix)s || n AS thread, k
    FROM runs JOIN messages ON messages.user_id = runs.user_id AND messages.run_id = runs.id AND kind = 'user_message',
        generate_series(1, %(threads)s) n, generate_series(1, %(turns)s) k
    WHERE runs.conversation_id = %(template)s
) copies
"""
_MESSAGES = """
INSERT INTO messages (conversation_id, id, user_id, run_id, role, kind, item)
SELECT thread, item_id, user_id, thread || '_run_' || k, role, kind,
       replace(item::text, ': "call_', ': "call_' || k || '_')::jsonb
       || jsonb_build_object('id', item_id, 'thread_id', thread)
FROM (
    SELECT %(prefix)s || n AS thread, id || '_' || k AS item_id, user_id, role, kind, item, n, k, seq
    FROM messages, generate_series(1, %(threads)s) n, generate_series(1, %(turns)s) k
    WHERE conversation_id = %(template)s
) copies
ORDER BY n, k, seq
"""
_LAST_WORD = """
SELECT seq FROM run_events WHERE run_id = %(run)s AND payload->>'event' = 'Grown' ORDER BY seq DESC LIMIT 1
"""
_LATER = "UPDATE run_events SET seq = seq + %(events)s WHERE run_id = %(run)s AND seq > %(last)s"
_LONGER = """
INSERT INTO run_events (user_id, run_id, seq, payload)
SELECT user_id, run_id, seq + n, payload FROM run_events, generate_series(1, %(events)s) n
WHERE run_id = %(run)s AND seq = %(last)s
"""
_TASKS = """
WITH person AS (INSERT INTO people (user_id, last_task_id) VALUES (%(person)s, %(count)s))
INSERT INTO tasks (user_id, id, title, status, completed_at, due_on, priority, labels)
SELECT %(person)s, n, CASE WHEN few THEN 'Write to Zoë ' ELSE 'Task ' END || n,
       CASE WHEN done THEN 'completed' ELSE 'pending' END, CASE WHEN done THEN now() - n * interval '1 hour' END,
       current_date + CASE WHEN few THEN -3 ELSE n %% 400 END, CASE WHEN few THEN 1 ELSE 2 END,
       ARRAY[CASE WHEN few THEN 'garden' ELSE 'work' END]
FROM generate_series(1, %(count)s) n, LATERAL (SELECT n %% 2 = 0, n <= 10) AS those (done, few)
"""


def copy_conversation(url: str, template: str, *, prefix: str, threads: int, turns: int) -> list[str]:
    """The ids of so many conversations, each the template's turn so many times over."""
    values = {"template": template, "prefix": prefix, "threads": threads, "turns": turns}
    with psycopg.connect(url) as connection:
        connection.execute(_CONVERSATIONS, values)
        connection.execute(_RUNS, values)
        connection.execute(_MESSAGES, values)
    return [f"{prefix}{n}" for n in range(1, threads + 1)]


def lengthen_log(url: str, run: str, *, events: int) -> None:
    """Let a run that has ended have said so much more, each time what it said last before its end."""
    with psycopg.connect(url) as connection:
        values = {"run": run, "events": events}
        values["last"] = connection.execute(_LAST_WORD, values).fetchall()[0][0]
        connection.execute(_LATER, values)
        connection.execute(_LONGER, values)


def add_tasks(url: str, person: str, count: int) -> None:
    with psycopg.connect(url) as connection:
        connection.execute(_TASKS, {"person": person, "count": count})


def summaries(url: str, conversation: str) -> int:
    """How many there are of a conversation."""
    with psycopg.connect(url) as connection:
        counted = "SELECT count(*) FROM messages WHERE conversation_id = %s AND kind = 'summary'"
        return connection.execute(counted, [conversation]).fetchall()[0][0]


def settle(url: str) -> None:
    """What autovacuum would do in the middle of the measuring."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("VACUUM ANALYZE")
        connection.execute("CHECKPOINT")
