"""The base of new databases: what version 0.1.0 created, without its tables of conversations and runs.

Databases of version 0.1.0 are at this revision, too; 0022 converts their conversations.
"""

from alembic import op

from migrations.row_level_security import create_functions, isolate_users, protect_from_owner

revision = "0021"
down_revision = None
branch_labels = None
depends_on = None

TABLES = r"""
CREATE TABLE people (
    user_id text PRIMARY KEY,
    last_task_id bigint NOT NULL DEFAULT 0,
    time_zone text,
    week_starts smallint,
    CONSTRAINT people_week_starts CHECK (week_starts BETWEEN 1 AND 7)
);
CREATE TABLE tasks (
    id bigint NOT NULL,
    user_id text NOT NULL,
    title text NOT NULL,
    description text NOT NULL DEFAULT '',
    status text NOT NULL DEFAULT 'pending',
    created_at timestamptz NOT NULL DEFAULT now(),
    updated_at timestamptz NOT NULL DEFAULT now(),
    completed_at timestamptz,
    due_on date,
    due_time time(0),
    priority smallint,
    labels text[] NOT NULL DEFAULT '{}',
    repeat text,
    series bigint,
    folded text GENERATED ALWAYS AS (lower(regexp_replace(normalize(title || ' ' || description
        || coalesce(' ' || labels[1], '') || coalesce(' ' || labels[2], '') || coalesce(' ' || labels[3], '')
        || coalesce(' ' || labels[4], '') || coalesce(' ' || labels[5], '') || coalesce(' ' || labels[6], '')
        || coalesce(' ' || labels[7], '') || coalesce(' ' || labels[8], '') || coalesce(' ' || labels[9], '')
        || coalesce(' ' || labels[10], ''), NFKD), '[\u0300-\u036F]', '', 'g'))) STORED,
    PRIMARY KEY (user_id, id),
    CONSTRAINT tasks_title_length CHECK (char_length(title) BETWEEN 1 AND 200),
    CONSTRAINT tasks_description_length CHECK (char_length(description) <= 4000),
    CONSTRAINT tasks_status CHECK (status IN ('pending', 'completed')),
    CONSTRAINT tasks_due_time CHECK (due_time IS NULL OR due_on IS NOT NULL),
    CONSTRAINT tasks_priority CHECK (priority BETWEEN 1 AND 3),
    CONSTRAINT tasks_labels CHECK (cardinality(labels) <= 10),
    CONSTRAINT tasks_repeat CHECK (
        repeat IS NULL OR (due_on IS NOT NULL AND series IS NOT NULL AND char_length(repeat) <= 200))
);
CREATE INDEX tasks_by_owner_and_status ON tasks (user_id, status, id);
CREATE INDEX tasks_by_due ON tasks (user_id, due_on, id) WHERE status = 'pending';
CREATE INDEX tasks_by_completion ON tasks (user_id,
    (CASE WHEN completed_at IS NULL THEN '-infinity'::timestamptz ELSE completed_at END), id)
    WHERE status = 'completed';
CREATE UNIQUE INDEX tasks_one_open_of_series ON tasks (user_id, series) WHERE status = 'pending';
CREATE TABLE task_calls (
    user_id text NOT NULL,
    id bigint GENERATED ALWAYS AS IDENTITY,
    operation text NOT NULL,
    arguments jsonb NOT NULL,
    actor text NOT NULL,
    idempotency_key text,
    created_at timestamptz NOT NULL DEFAULT now(),
    batch text,
    PRIMARY KEY (user_id, id),
    CONSTRAINT task_calls_operation CHECK (operation IN ('add', 'complete', 'update', 'delete', 'undo'))
);
CREATE INDEX task_calls_by_age ON task_calls USING brin (created_at);
CREATE INDEX task_calls_by_batch ON task_calls (user_id, batch, id) WHERE batch IS NOT NULL;
CREATE UNIQUE INDEX task_calls_one_per_key ON task_calls (user_id, idempotency_key) WHERE idempotency_key IS NOT NULL;
CREATE TABLE task_changes (
    id bigint GENERATED ALWAYS AS IDENTITY,
    user_id text NOT NULL,
    task_id bigint,
    before jsonb,
    after jsonb,
    created_at timestamptz NOT NULL DEFAULT now(),
    call_id bigint NOT NULL,
    undoes bigint,
    PRIMARY KEY (user_id, id),
    CONSTRAINT task_changes_call_fkey FOREIGN KEY (user_id, call_id)
        REFERENCES task_calls (user_id, id) ON DELETE CASCADE
);
CREATE INDEX task_changes_by_call ON task_changes (user_id, call_id, id);
CREATE INDEX task_changes_by_task ON task_changes (user_id, task_id, id);
CREATE INDEX task_changes_of_deletion ON task_changes (user_id, created_at, id) WHERE after IS NULL AND undoes IS NULL;
CREATE TABLE profiles (
    user_id text PRIMARY KEY,
    time_zone text,
    calendar_hash bytea,
    memory text,
    CONSTRAINT profiles_calendar_hash CHECK (octet_length(calendar_hash) = 32),
    CONSTRAINT profiles_memory CHECK (octet_length(memory) <= 65536)
);
CREATE UNIQUE INDEX profiles_by_calendar ON profiles (calendar_hash);
CREATE TABLE ended_sessions (
    user_id text NOT NULL,
    id text NOT NULL,
    expires_at timestamptz NOT NULL,
    PRIMARY KEY (user_id, id)
);
CREATE TABLE kept_requests (
    user_id text NOT NULL,
    key text NOT NULL,
    request bytea NOT NULL,
    run_id text,
    status integer,
    answer jsonb,
    created_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (user_id, key)
);
CREATE INDEX kept_requests_by_age ON kept_requests USING brin (created_at);
CREATE TABLE approved_tools (
    server text NOT NULL,
    tool text NOT NULL,
    hash bytea NOT NULL,
    approved_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (server, tool),
    CONSTRAINT approved_tools_hash CHECK (octet_length(hash) = 32)
);
"""
OF_USERS = ("people", "tasks", "task_calls", "task_changes", "profiles", "ended_sessions", "kept_requests")
FUNCTIONS = {
    "person_of_calendar(hash bytea)": (
        "TABLE (user_id text)",
        "SELECT profiles.user_id FROM profiles WHERE calendar_hash = hash",
    ),
    "sweep_kept_requests(hours integer, most integer)": (
        "SETOF text",
        """
        DELETE FROM kept_requests WHERE (user_id, key) IN (
            SELECT user_id, key FROM kept_requests
            WHERE created_at < now() - make_interval(hours => greatest(hours, 24)) LIMIT most
        ) RETURNING run_id
        """,
    ),
    # The call of an import is kept, because with its key the same line is not added again.
    "sweep_task_calls(days integer, most integer)": (
        "SETOF bigint",
        """
        WITH old AS MATERIALIZED (
            SELECT user_id, id, actor = 'import' AS imported FROM task_calls AS call
            WHERE created_at < now() - make_interval(days => greatest(days, 30)) AND (
                actor <> 'import' OR EXISTS (
                    SELECT FROM task_changes AS change
                    WHERE (change.user_id, change.call_id) = (call.user_id, call.id)
                )
            ) LIMIT most
        ), thinned AS (
            DELETE FROM task_changes WHERE (user_id, call_id) IN (SELECT user_id, id FROM old WHERE imported)
        ), gone AS (
            DELETE FROM task_calls WHERE (user_id, id) IN (SELECT user_id, id FROM old WHERE NOT imported)
        )
        SELECT id FROM old
        """,
    ),
}


def upgrade() -> None:
    # Roles belong to the whole cluster: an administrator or another migration may have created it.
    op.execute("""
        DO $$ BEGIN
            IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'todo_app') THEN
                CREATE ROLE todo_app NOLOGIN NOSUPERUSER NOBYPASSRLS;
            END IF;
        EXCEPTION WHEN duplicate_object OR unique_violation THEN NULL;
        END $$
    """)
    # It tries the role, because since PostgreSQL 16 the creator of a role is its member, but may not use SET ROLE.
    op.execute("""
        DO $$ BEGIN
            SET LOCAL ROLE todo_app;
            RESET ROLE;
        EXCEPTION WHEN insufficient_privilege THEN GRANT todo_app TO CURRENT_USER;
        END $$
    """)
    op.execute(TABLES)
    for table in OF_USERS:
        isolate_users(table)
    # The table belongs to no user: the services read it, and only the owner writes it.
    op.execute("GRANT SELECT ON approved_tools, alembic_version TO todo_app")
    op.execute("CREATE POLICY readable ON approved_tools FOR SELECT TO todo_app USING (true)")
    protect_from_owner("approved_tools")
    create_functions(FUNCTIONS)
