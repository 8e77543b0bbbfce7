"""Runs that wait for consent, are followed from any process, are steered, and are a tree."""

from alembic import op

from migrations.functions import create, drop
from migrations.people import keep_apart

revision = "0014"
down_revision = "0013"
branch_labels = None
depends_on = None

# Each tells ids only.
OWN_LEASES = {
    "renew_leases(run_ids text[])": (
        "TABLE (id text, stop_requested boolean)",
        """
        UPDATE runs SET heartbeat_at = now() WHERE id = ANY (run_ids) AND status = 'running'
        RETURNING id, stop_requested
        """,
    ),
}
FOLLOWED_LEASES = {
    "renew_leases(run_ids text[])": (
        "TABLE (id text, stop_requested boolean, followed boolean)",
        """
        UPDATE runs SET heartbeat_at = now() WHERE id = ANY (run_ids) AND status = 'running'
        RETURNING id, stop_requested, followed
        """,
    ),
}
# What many people's runs say is written together. A run without a conversation has no text, what one says that is not
# marked as followed would never be swept, and one that is being ended or deleted just now is left for the next time. It
# tells the ids of the runs whose events are there.
PUBLISHING = {
    "publish_events(people text[], run_ids text[], numbers bigint[], payloads text[])": (
        "SETOF text",
        """
        WITH given AS (
            SELECT * FROM unnest(people, run_ids, numbers, payloads) AS g (user_id, run_id, seq, payload)
        ), known AS (
            SELECT user_id, id FROM runs
            WHERE (user_id, id) IN (SELECT user_id, run_id FROM given) AND conversation_id IS NOT NULL AND followed
            FOR SHARE SKIP LOCKED
        ), written AS (
            INSERT INTO run_events (user_id, run_id, seq, payload)
            SELECT given.user_id, given.run_id, seq, payload::jsonb
            FROM given JOIN known ON known.user_id = given.user_id AND known.id = given.run_id
            ON CONFLICT DO NOTHING
        )
        SELECT id FROM known
        """,
    ),
}
SWEEPS = {
    "sweep_run_events(minutes integer, most integer)": (
        "SETOF text",
        """
        WITH over AS (
            UPDATE runs SET followed = false WHERE (user_id, id) IN (
                SELECT user_id, id FROM runs
                WHERE followed AND ended_at < now() - make_interval(mins => minutes) LIMIT most
                FOR UPDATE SKIP LOCKED
            ) RETURNING user_id, id
        ), gone AS (
            DELETE FROM run_events WHERE (user_id, run_id) IN (SELECT user_id, id FROM over)
        )
        SELECT id FROM over
        """,
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
}
# The runs of before are one path, in the order in which they began: what a retry has replaced stays replaced.
ONE_PATH = (
    """
    UPDATE runs SET parent_run_id = path.before, message_id = path.message_id
    FROM (
        SELECT runs.user_id, runs.id, said.id AS message_id,
            lag(runs.id) OVER (PARTITION BY runs.user_id, conversation_id ORDER BY started_at, runs.id) AS before
        FROM runs LEFT JOIN (
            SELECT DISTINCT ON (user_id, run_id) user_id, run_id, id FROM messages
            WHERE kind = 'user_message' AND run_id IS NOT NULL ORDER BY user_id, run_id, seq
        ) AS said ON (said.user_id, said.run_id) = (runs.user_id, runs.id)
        WHERE conversation_id IS NOT NULL
    ) AS path WHERE (runs.user_id, runs.id) = (path.user_id, path.id)
    """,
    """
    UPDATE conversations SET leaf_run_id = (
        SELECT runs.id FROM runs WHERE (runs.user_id, runs.conversation_id) = (conversations.user_id, conversations.id)
        ORDER BY started_at DESC, runs.id DESC LIMIT 1
    )
    """,
)
TABLES = ("approvals", "run_inputs", "run_events", "kept_requests")


def upgrade() -> None:
    op.execute("ALTER TABLE conversations ADD COLUMN name text, ADD COLUMN leaf_run_id text")
    op.execute("CREATE UNIQUE INDEX conversations_by_name ON conversations (user_id, name) WHERE name IS NOT NULL")
    op.execute("""
        ALTER TABLE runs ADD COLUMN parent_run_id text, ADD COLUMN edits_run_id text, ADD COLUMN message_id text,
            ADD COLUMN kept_seq bigint, ADD COLUMN chosen boolean NOT NULL DEFAULT true,
            ADD COLUMN followed boolean NOT NULL DEFAULT false
    """)
    for step in ONE_PATH:
        op.execute(step)
    op.execute("DROP INDEX runs_by_conversation")
    op.execute("CREATE INDEX runs_by_conversation ON runs (user_id, conversation_id, parent_run_id)")
    op.execute("CREATE INDEX runs_followed ON runs (ended_at) WHERE followed")
    of_conversation = "FOREIGN KEY (user_id, conversation_id) REFERENCES conversations (user_id, id) ON DELETE CASCADE"
    op.execute(f"""
        CREATE TABLE approvals (
            user_id text NOT NULL, id text NOT NULL, conversation_id text NOT NULL, run_id text NOT NULL,
            step_id text NOT NULL, position integer NOT NULL, call jsonb NOT NULL, key text NOT NULL,
            text text NOT NULL, item_id text NOT NULL, decision text, reason text,
            created_at timestamptz NOT NULL DEFAULT now(), decided_at timestamptz,
            PRIMARY KEY (user_id, id),
            CONSTRAINT approvals_known_decision CHECK (decision IN ('approved', 'refused')),
            CONSTRAINT approvals_decided_once CHECK ((decision IS NULL) = (decided_at IS NULL)),
            CONSTRAINT approvals_conversation_fkey {of_conversation}
        )
    """)
    op.execute("CREATE INDEX approvals_by_run ON approvals (user_id, conversation_id, run_id, position)")
    op.execute(f"""
        CREATE TABLE run_inputs (
            user_id text NOT NULL, id text NOT NULL, conversation_id text NOT NULL, run_id text NOT NULL,
            mode text NOT NULL, said jsonb NOT NULL,
            created_at timestamptz NOT NULL DEFAULT now(), taken_at timestamptz, dropped_at timestamptz,
            PRIMARY KEY (user_id, id),
            CONSTRAINT run_inputs_known_mode CHECK (mode IN ('steer', 'follow_up')),
            CONSTRAINT run_inputs_conversation_fkey {of_conversation}
        )
    """)
    op.execute("CREATE INDEX run_inputs_by_run ON run_inputs (user_id, conversation_id, run_id, id)")
    op.execute("""
        CREATE TABLE run_events (
            user_id text NOT NULL, run_id text NOT NULL, seq bigint NOT NULL, payload jsonb NOT NULL,
            created_at timestamptz NOT NULL DEFAULT now(),
            PRIMARY KEY (user_id, run_id, seq),
            CONSTRAINT run_events_run_fkey FOREIGN KEY (user_id, run_id) REFERENCES runs (user_id, id) ON DELETE CASCADE
        )
    """)
    op.execute("""
        CREATE TABLE kept_requests (
            user_id text NOT NULL, key text NOT NULL, request bytea NOT NULL, run_id text, status integer, answer jsonb,
            created_at timestamptz NOT NULL DEFAULT now(),
            PRIMARY KEY (user_id, key)
        )
    """)
    op.execute("CREATE INDEX kept_requests_by_age ON kept_requests USING brin (created_at)")
    for table in TABLES:
        keep_apart(table)
    drop(OWN_LEASES)
    create(FOLLOWED_LEASES)
    create(PUBLISHING)
    create(SWEEPS)


def downgrade() -> None:
    drop(SWEEPS)
    drop(PUBLISHING)
    drop(FOLLOWED_LEASES)
    create(OWN_LEASES)
    for table in TABLES:
        op.execute(f"DROP TABLE {table}")
    op.execute("DROP INDEX runs_by_conversation, runs_followed")
    op.execute("CREATE INDEX runs_by_conversation ON runs (user_id, conversation_id)")
    op.execute("UPDATE runs SET status = 'ended', outcome = 'interrupted', ended_at = now() WHERE status = 'waiting'")
    op.execute("UPDATE messages SET superseded_by = 'removed' WHERE superseded_by = 'aside'")
    op.execute("""
        ALTER TABLE runs DROP COLUMN parent_run_id, DROP COLUMN edits_run_id, DROP COLUMN message_id,
            DROP COLUMN kept_seq, DROP COLUMN chosen, DROP COLUMN followed
    """)
    op.execute("DROP INDEX conversations_by_name")
    op.execute("ALTER TABLE conversations DROP COLUMN name, DROP COLUMN leaf_run_id")
