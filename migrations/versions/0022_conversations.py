"""Tables of conversations and runs that hold what happened; those of version 0.1.0 are converted to them."""

from typing import Any

from alembic import op

from migrations.from_0_1_0 import conversion
from migrations.row_level_security import create_functions, isolate_users

revision = "0022"
down_revision = "0021"
branch_labels = None
depends_on = None

TABLES = """
CREATE TABLE conversations (
    user_id TEXT NOT NULL,
    id TEXT NOT NULL,
    name TEXT,
    title TEXT,
    details JSONB DEFAULT '{}' NOT NULL,
    created_at TIMESTAMP WITH TIME ZONE DEFAULT now() NOT NULL,
    PRIMARY KEY (user_id, id)
);
CREATE UNIQUE INDEX conversations_by_name ON conversations (user_id, name)
    WHERE name IS NOT NULL;
CREATE TABLE runs (
    user_id TEXT NOT NULL,
    id TEXT NOT NULL,
    conversation_id TEXT,
    seq BIGINT DEFAULT nextval('event_seq') NOT NULL,
    previous_run_id TEXT,
    parent_run_id TEXT,
    parent_call_id TEXT,
    top_run_id TEXT NOT NULL,
    agent TEXT NOT NULL,
    active BOOLEAN DEFAULT true NOT NULL,
    status TEXT NOT NULL,
    process_id BIGINT,
    stop_requested BOOLEAN DEFAULT false NOT NULL,
    options JSONB DEFAULT '{}' NOT NULL,
    usage JSONB,
    error_code TEXT,
    created_at TIMESTAMP WITH TIME ZONE DEFAULT now() NOT NULL,
    running_since TIMESTAMP WITH TIME ZONE DEFAULT now() NOT NULL,
    ended_at TIMESTAMP WITH TIME ZONE,
    end_seq BIGINT,
    PRIMARY KEY (user_id, id),
    CONSTRAINT runs_status CHECK (status IN ('running', 'waiting', 'completed', 'failed', 'cancelled',
        'interrupted')),
    CONSTRAINT runs_lease CHECK ((status = 'running') = (process_id IS NOT NULL)),
    CONSTRAINT runs_parent CHECK ((parent_run_id IS NULL) = (parent_call_id IS NULL)),
    FOREIGN KEY(user_id, conversation_id) REFERENCES conversations (user_id,
        id) ON DELETE SET NULL (conversation_id)
);
CREATE INDEX runs_by_previous ON runs (user_id, conversation_id, previous_run_id);
CREATE INDEX runs_by_top ON runs (user_id, top_run_id);
CREATE INDEX runs_left ON runs (user_id, conversation_id, seq)
    WHERE NOT active AND parent_call_id IS NULL;
CREATE UNIQUE INDEX runs_of_call ON runs (user_id, parent_run_id,
        parent_call_id)
    WHERE parent_call_id IS NOT NULL;
CREATE UNIQUE INDEX runs_one_at_a_time ON runs (user_id, conversation_id)
    WHERE status IN ('running',
        'waiting') AND parent_call_id IS NULL;
CREATE INDEX runs_path ON runs (user_id, conversation_id, seq)
    WHERE active AND parent_call_id IS NULL;
CREATE INDEX runs_running ON runs (process_id) WHERE status = 'running';
CREATE TABLE model_turns (
    user_id TEXT NOT NULL,
    run_id TEXT NOT NULL,
    number INTEGER NOT NULL,
    seq BIGINT DEFAULT nextval('event_seq') NOT NULL,
    model TEXT NOT NULL,
    usage JSONB,
    seconds double precision NOT NULL,
    finish_reason TEXT,
    PRIMARY KEY (user_id, run_id, number),
    FOREIGN KEY(user_id, run_id) REFERENCES runs (user_id, id) ON DELETE CASCADE
);
CREATE TABLE entries (
    user_id TEXT NOT NULL,
    run_id TEXT NOT NULL,
    id TEXT NOT NULL,
    conversation_id TEXT NOT NULL,
    seq BIGINT DEFAULT nextval('event_seq'),
    completion_seq BIGINT,
    last_seq BIGINT GENERATED ALWAYS AS (coalesce(completion_seq, seq)) STORED,
    kind TEXT NOT NULL,
    text TEXT DEFAULT '' NOT NULL,
    details JSONB,
    complete BOOLEAN DEFAULT true NOT NULL,
    model_turn INTEGER DEFAULT 0 NOT NULL,
    feedback TEXT,
    created_at TIMESTAMP WITH TIME ZONE DEFAULT now() NOT NULL,
    PRIMARY KEY (user_id, run_id, id),
    CONSTRAINT entries_kind CHECK (kind IN ('user_message', 'assistant_message', 'reasoning', 'notice',
        'summary', 'change', 'branch_note', 'command')),
    CONSTRAINT entries_real_id CHECK (id <> '__fake_id__'),
    FOREIGN KEY(user_id, conversation_id) REFERENCES conversations (user_id, id) ON DELETE CASCADE
);
CREATE INDEX entries_in_order ON entries (user_id, conversation_id, seq);
CREATE INDEX entries_for_model ON entries (user_id, conversation_id, seq)
    WHERE kind IN ('summary', 'branch_note');
CREATE INDEX entries_queued ON entries (user_id, run_id) WHERE seq IS NULL;
CREATE TABLE tool_calls (
    user_id TEXT NOT NULL,
    run_id TEXT NOT NULL,
    id TEXT NOT NULL,
    conversation_id TEXT NOT NULL,
    seq BIGINT DEFAULT nextval('event_seq') NOT NULL,
    approval_seq BIGINT,
    decision_seq BIGINT,
    result_seq BIGINT,
    last_seq BIGINT GENERATED ALWAYS AS (greatest(seq, approval_seq, decision_seq, result_seq)) STORED,
    model_turn INTEGER NOT NULL,
    tool TEXT NOT NULL,
    arguments TEXT NOT NULL,
    state TEXT NOT NULL,
    idempotency_key TEXT NOT NULL,
    output TEXT,
    details JSONB,
    seconds double precision,
    approval_text TEXT,
    reach TEXT,
    reason TEXT,
    decision_text TEXT,
    feedback TEXT,
    created_at TIMESTAMP WITH TIME ZONE DEFAULT now() NOT NULL,
    PRIMARY KEY (user_id, run_id, id),
    CONSTRAINT tool_calls_state CHECK (state IN ('requested', 'awaiting_approval', 'approved', 'rejected',
        'running', 'done', 'failed', 'unknown', 'not_made')),
    CONSTRAINT tool_calls_reason CHECK (reason IN ('user', 'other_message', 'stopped', 'left_path',
        'reach_changed', 'not_shown', 'too_many', 'over_limit', 'ended')),
    CONSTRAINT tool_calls_decided_once CHECK (decision_seq IS NULL OR approval_seq IS NOT NULL),
    FOREIGN KEY(user_id, conversation_id) REFERENCES conversations (user_id, id) ON DELETE CASCADE
);
CREATE INDEX tool_calls_in_order ON tool_calls (user_id, conversation_id, seq);
CREATE TABLE consents (
    user_id TEXT NOT NULL,
    conversation_id TEXT NOT NULL,
    tool TEXT NOT NULL,
    reach TEXT,
    created_at TIMESTAMP WITH TIME ZONE DEFAULT now() NOT NULL,
    PRIMARY KEY (user_id, conversation_id, tool),
    FOREIGN KEY(user_id, conversation_id) REFERENCES conversations (user_id, id) ON DELETE CASCADE
);
CREATE TABLE requests (
    user_id TEXT NOT NULL,
    id TEXT NOT NULL,
    created_at TIMESTAMP WITH TIME ZONE DEFAULT now() NOT NULL,
    PRIMARY KEY (user_id, id)
);
CREATE INDEX requests_by_time ON requests (user_id, created_at);
"""
OF_USERS = ("conversations", "runs", "model_turns", "entries", "tool_calls", "consents", "requests")
# Functions of a transaction: each lets it fail with an SQLSTATE of its own, so that nothing is read before its end.
FUNCTIONS = """
-- Holds the lease of a tree of runs to the end of the transaction.
CREATE FUNCTION hold_run(run text, process bigint) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    PERFORM 1 FROM runs WHERE user_id = current_setting('todo.user_id') AND id = run
        AND status = 'running' AND process_id = process FOR NO KEY UPDATE;
    IF NOT FOUND THEN RAISE EXCEPTION 'lease lost' USING ERRCODE = 'TD001'; END IF;
END $$;

-- A run was started in this transaction, unless its conversation does not exist or has another one.
CREATE FUNCTION require_started(conversation text, run text) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    me text := current_setting('todo.user_id');
BEGIN
    IF EXISTS (SELECT FROM runs WHERE user_id = me AND id = run) THEN RETURN; END IF;
    IF EXISTS (SELECT FROM conversations WHERE user_id = me AND id = conversation) THEN
        RAISE EXCEPTION 'busy' USING ERRCODE = 'TD003';
    END IF;
    RAISE EXCEPTION 'not found' USING ERRCODE = 'TD004';
END $$;

-- Counts a message or command of the user, and the run and conversation that this transaction has made for it.
CREATE FUNCTION count_request(
    request text, per_minute integer, running integer, per_day integer, conversations integer, is_new boolean
) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    me text := current_setting('todo.user_id');
    counted bigint;
    seconds integer := 0;
    reached text;
    most integer;
BEGIN
    -- One transaction at a time for each user, or two would both see the last free place.
    PERFORM pg_advisory_xact_lock(hashtextextended(me, 0));
    DELETE FROM requests WHERE user_id = me AND created_at < now() - interval '1 day';
    IF running IS NOT NULL THEN
        SELECT count(*) INTO counted FROM runs
        WHERE user_id = me AND status = 'running' AND parent_call_id IS NULL;
        IF counted > running THEN reached := 'running'; most := running; END IF;
    END IF;
    IF reached IS NULL AND per_minute IS NOT NULL THEN
        SELECT count(*), ceil(60 - extract(epoch FROM now() - min(created_at))) INTO counted, seconds
        FROM requests WHERE user_id = me AND created_at > now() - interval '1 minute';
        IF counted >= per_minute THEN reached := 'per_minute'; most := per_minute; END IF;
    END IF;
    IF reached IS NULL AND per_day IS NOT NULL THEN
        SELECT count(*) INTO counted FROM requests WHERE user_id = me;
        IF counted >= per_day THEN reached := 'per_day'; most := per_day; END IF;
    END IF;
    IF reached IS NULL AND conversations IS NOT NULL AND is_new THEN
        SELECT count(*) INTO counted FROM conversations WHERE user_id = me;
        IF counted > conversations THEN reached := 'conversations'; most := conversations; END IF;
    END IF;
    IF reached IS NOT NULL THEN
        RAISE EXCEPTION USING ERRCODE = 'TD002',
            MESSAGE = jsonb_build_object('limit', reached, 'most', most, 'seconds', seconds)::text;
    END IF;
    INSERT INTO requests (user_id, id) VALUES (me, request);
END $$;

-- Stores the idempotency key of a request, once.
CREATE FUNCTION keep_request(key text, request bytea, run text, most integer) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    me text := current_setting('todo.user_id');
    counted bigint;
BEGIN
    SELECT count(*) INTO counted FROM (SELECT FROM kept_requests WHERE user_id = me LIMIT most) AS stored;
    IF counted >= most THEN
        RAISE EXCEPTION USING ERRCODE = 'TD002',
            MESSAGE = jsonb_build_object('limit', 'idempotency_keys', 'most', most, 'seconds', 0)::text;
    END IF;
    INSERT INTO kept_requests (user_id, key, request, run_id) VALUES (me, key, request, run)
    ON CONFLICT DO NOTHING;
    IF NOT FOUND THEN RAISE EXCEPTION 'key stored' USING ERRCODE = 'TD005'; END IF;
END $$;
"""
ACROSS_USERS = {
    "running_processes()": ("SETOF bigint", "SELECT DISTINCT process_id FROM runs WHERE status = 'running'"),
    "runs_of_process(process bigint)": (
        "TABLE (user_id text, id text)",
        """
        SELECT r.user_id, r.id FROM runs r
        WHERE r.status = 'running' AND r.process_id = process AND r.parent_call_id IS NULL
        """,
    ),
    "sweep_requests(most integer)": (
        "void",
        """
        DELETE FROM requests WHERE (user_id, id) IN (
            SELECT user_id, id FROM requests WHERE created_at < now() - interval '1 day' LIMIT most
        )
        """,
    ),
}


def upgrade() -> None:
    connection: Any = op.get_bind().connection.driver_connection
    is_old = conversion.move_old_tables(connection)
    op.execute("CREATE SEQUENCE event_seq; GRANT USAGE ON SEQUENCE event_seq TO todo_app")
    op.execute(TABLES)
    for table in OF_USERS:
        isolate_users(table)
    op.execute(FUNCTIONS)
    create_functions(ACROSS_USERS)
    if is_old:
        conversion.convert(connection)
