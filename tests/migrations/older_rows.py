"""Rows of every kind, written as a service of any revision has written them."""

from typing import Any

import psycopg
from psycopg.rows import dict_row

from tests.logins import as_admin

ROWS = """
INSERT INTO conversations (id, user_id, title, status) VALUES ('thr_{0}', 'alice', 'Größe {0}', '{{"type": "active"}}');
INSERT INTO runs (id, conversation_id, user_id, status, outcome, usage)
    VALUES ('run_{0}', 'thr_{0}', 'alice', 'ended', 'completed', '{{"requests": 2, "input_tokens": 10}}'),
           ('run_{0}_now', 'thr_{0}', 'alice', 'running', NULL, NULL);
INSERT INTO messages (conversation_id, id, user_id, run_id, role, kind, item, superseded_by)
    VALUES ('thr_{0}', 'msg_{0}', 'alice', 'run_{0}', 'user', 'user_message', '{{"content": ["hi"]}}', NULL),
           ('thr_{0}', 'wid_{0}', 'alice', 'run_{0}', 'app', 'widget', '{{"widget": {{}}}}', 'run_{0}_now');
"""
CHANGES_WITH_CALLS = """
INSERT INTO task_changes (user_id, task_id, operation, arguments, after, actor, idempotency_key)
    VALUES ('alice', 1, 'add', '{{"title": "milk"}}', '{{"id": 1}}', 'mcp', 'key {0}');
"""
CALLS = """
WITH call AS (
    INSERT INTO task_calls (user_id, operation, arguments, actor, idempotency_key)
    VALUES ('alice', 'add', '{{"title": "milk"}}', 'mcp', 'key {0}') RETURNING id
)
INSERT INTO task_changes (user_id, call_id, task_id, after) SELECT 'alice', id, 1, '{{"id": 1}}' FROM call;
"""
IN_BATCHES = "UPDATE task_calls SET batch = 'run_{0}' WHERE idempotency_key = 'key {0}';"
TASKS_OF_ALL = """
INSERT INTO tasks (user_id, title, description, status, completed_at)
    VALUES ('alice', 'milk {0}', 'two', 'pending', NULL), ('bob', 'bread {0}', '', 'completed', now());
"""
TASKS = """
INSERT INTO people (user_id, last_task_id) VALUES ('alice', 1), ('bob', 1)
    ON CONFLICT (user_id) DO UPDATE SET last_task_id = people.last_task_id + ascii(people.user_id);
INSERT INTO tasks (user_id, id, title, description, status, completed_at)
    SELECT user_id, last_task_id, 'milk {0}', 'two', 'pending', NULL FROM people;
"""
SESSIONS = "INSERT INTO ended_sessions (user_id, id, expires_at) VALUES ('alice', 'session {0}', now());"
PROFILES = "INSERT INTO profiles (user_id, time_zone) VALUES ('alice {0}', 'Europe/Berlin');"
WAITING = """
INSERT INTO approvals (user_id, id, conversation_id, run_id, step_id, position, call, key, text, item_id)
    VALUES ('alice', 'apr_{0}', 'thr_{0}', 'run_{0}', 'step_{0}', 0, '{{"name": "delete_task"}}', 'key {0}',
        'Delete {0}', 'wid_{0}');
INSERT INTO run_inputs (user_id, id, conversation_id, run_id, mode, said)
    VALUES ('alice', 'inp_{0}', 'thr_{0}', 'run_{0}_now', 'steer', '{{"text": "and eggs"}}');
INSERT INTO run_events (user_id, run_id, seq, payload) VALUES ('alice', 'run_{0}_now', 1, '{{"type": "started"}}');
INSERT INTO kept_requests (user_id, key, request, run_id) VALUES ('alice', 'key {0}', sha256('{0}'), 'run_{0}_now');
"""
CALENDARS = "INSERT INTO profiles (user_id, calendar_hash) VALUES ('bob {0}', sha256('{0}'));"
MEMORIES = "INSERT INTO profiles (user_id, memory) VALUES ('carol {0}', '* I work nights');"
AGENTS = """
INSERT INTO agent_steps (user_id, run_id, call_id, seq, conversation_id, agent, kind, content)
    VALUES ('alice', 'run_{0}', 'call_{0}', 1, 'thr_{0}', 'coder', 'task', '{{"task": "count"}}');
INSERT INTO consents (user_id, conversation_id, tool) VALUES ('alice', 'thr_{0}', 'do_with_coder');
"""
ASKING_AGENTS = """
INSERT INTO approvals
    (user_id, id, conversation_id, run_id, step_id, position, call, key, text, item_id, agent, of_call)
    VALUES ('alice', 'apr_{0}_agent', 'thr_{0}', 'run_{0}', 'step_{0}', 0, '{{"name": "run_command"}}', 'own key {0}',
        'Let the coder run {0}', 'wid_{0}', 'coder', 'call_{0}');
"""
CONSENTED = """
UPDATE consents SET reach = 'reach {0}' WHERE conversation_id = 'thr_{0}';
UPDATE approvals SET reach = 'reach {0}' WHERE id = 'apr_{0}_agent';
"""
FIGURES = "UPDATE messages SET usage = '{{\"seconds\": 0.5}}' WHERE id = 'msg_{0}';"
APPROVED = "INSERT INTO approved_tools (server, tool, hash) VALUES ('web', 'fetch {0}', sha256('{0}'));"
# The revisions that brought them.
OWN_NUMBERS, ENDED_SESSIONS, CALLS_APART, PROFILED = "0005", "0006", "0008", "0010"
BATCHES, WITH_CALENDAR, RUNS_THAT_WAIT, WITH_AGENTS = "0011", "0012", "0014", "0016"
WITH_SERVERS, AGENTS_ASK, WITH_MEMORY, WITH_FIGURES = "0017", "0018", "0019", "0020"
WITH_REACH = "0021"


def add_rows(url: str, name: str) -> None:
    """Some of every kind, as a service of any revision has written them."""
    with psycopg.connect(as_admin(url)) as connection:
        [revision] = connection.execute("SELECT coalesce(max(version_num), '') FROM alembic_version").fetchone() or [""]
        rows = ROWS + (TASKS if revision >= OWN_NUMBERS else TASKS_OF_ALL)
        rows += CALLS if revision >= CALLS_APART else CHANGES_WITH_CALLS
        rows += SESSIONS if revision >= ENDED_SESSIONS else ""
        rows += PROFILES if revision >= PROFILED else ""
        rows += IN_BATCHES if revision >= BATCHES else ""
        rows += CALENDARS if revision >= WITH_CALENDAR else ""
        rows += WAITING if revision >= RUNS_THAT_WAIT else ""
        rows += AGENTS if revision >= WITH_AGENTS else ""
        rows += MEMORIES if revision >= WITH_MEMORY else ""
        rows += FIGURES if revision >= WITH_FIGURES else ""
        rows += APPROVED if revision >= WITH_SERVERS else ""
        rows += ASKING_AGENTS if revision >= AGENTS_ASK else ""
        rows += CONSENTED if revision >= WITH_REACH else ""
        connection.execute(rows.format(name).encode())


def contents(url: str) -> dict[str, list[dict[str, Any]]]:
    with psycopg.Connection[dict[str, Any]].connect(as_admin(url), row_factory=dict_row) as connection:
        tables = connection.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'public' ORDER BY 1").fetchall()
        names = [row["tablename"] for row in tables if row["tablename"] != "alembic_version"]
        # Rows have an order of their own for people whose numbers are the same.
        key = "coalesce(to_jsonb(t)->>'title', ''), to_jsonb(t)->>'id', to_jsonb(t)->>'user_id'"
        found = {
            name: connection.execute(f"SELECT * FROM {name} t ORDER BY {key}".encode()).fetchall() for name in names
        }
    calls = {(call["user_id"], call["id"]): call for call in found.get("task_calls", [])}
    if calls:
        found["task_changes"] = [_with_call(change, calls) for change in found["task_changes"]]
    return found


def _with_call(change: dict[str, Any], calls: dict[tuple[str, int], dict[str, Any]]) -> dict[str, Any]:
    """As one row, which it was before calls were rows of their own."""
    call = calls[change["user_id"], change["call_id"]]
    return change | {name: call[name] for name in ("operation", "arguments", "actor", "idempotency_key")}
