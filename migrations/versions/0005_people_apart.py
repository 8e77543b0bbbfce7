"""Every key begins with the person, tasks have numbers of their person's own, and the owner is kept to policies too."""

from alembic import op

from migrations.functions import create, drop
from migrations.people import keep_apart

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None

TABLES = ("tasks", "task_changes", "conversations", "messages", "runs")
# Each tells ids only.
FUNCTIONS = {
    "renew_leases(run_ids text[])": (
        "TABLE (id text, stop_requested boolean)",
        """
        UPDATE runs SET heartbeat_at = now() WHERE id = ANY (run_ids) AND status = 'running'
        RETURNING id, stop_requested
        """,
    ),
    "end_stale_runs(seconds double precision)": (
        "TABLE (id text, conversation_id text, user_id text)",
        """
        UPDATE runs SET status = 'ended', outcome = 'interrupted', ended_at = now()
        WHERE status = 'running' AND heartbeat_at < now() - make_interval(secs => seconds)
        RETURNING id, conversation_id, user_id
        """,
    ),
    "end_runs_of_worker(dead text)": (
        "TABLE (id text, conversation_id text, user_id text)",
        """
        UPDATE runs SET status = 'ended', outcome = 'interrupted', ended_at = now()
        WHERE status = 'running' AND worker = dead
        RETURNING id, conversation_id, user_id
        """,
    ),
    "sweep_task_changes(days integer, most integer)": (
        "SETOF bigint",
        """
        DELETE FROM task_changes WHERE (user_id, id) IN (
            SELECT user_id, id FROM task_changes
            WHERE created_at < now() - make_interval(days => greatest(days, 30)) LIMIT most
        ) RETURNING id
        """,
    ),
}


def upgrade() -> None:
    _key_conversations()
    _key_tasks()
    for table in TABLES:
        op.execute(f"DROP POLICY owner_only ON {table}")
        keep_apart(table)
    create(FUNCTIONS)
    op.execute("GRANT SELECT ON alembic_version TO todo_app")


def downgrade() -> None:
    op.execute("REVOKE SELECT ON alembic_version FROM todo_app")
    drop(FUNCTIONS)
    for table in TABLES:
        op.execute(f"DROP POLICY owner_only ON {table}")
        op.execute(f"DROP POLICY all_people ON {table}")
        op.execute(f"ALTER TABLE {table} NO FORCE ROW LEVEL SECURITY")
        op.execute(f"""
            CREATE POLICY owner_only ON {table} TO todo_app
            USING (user_id = (SELECT current_setting('todo.user_id', true)))
        """)
    _number_tasks_of_everybody()
    _key_conversations_alone()


def _key_conversations() -> None:
    op.execute("ALTER TABLE messages DROP CONSTRAINT messages_conversation_id_fkey")
    op.execute("ALTER TABLE runs DROP CONSTRAINT runs_conversation_id_fkey")
    # What a wrong statement wrote into somebody else's conversation; nobody could see such a message.
    op.execute("""
        DELETE FROM messages USING conversations
        WHERE conversations.id = messages.conversation_id AND conversations.user_id <> messages.user_id
    """)
    op.execute("""
        UPDATE runs SET conversation_id = NULL, state = NULL, status = 'ended',
            outcome = coalesce(outcome, 'interrupted'), ended_at = coalesce(ended_at, now())
        FROM conversations
        WHERE conversations.id = runs.conversation_id AND conversations.user_id <> runs.user_id
    """)
    op.execute("ALTER TABLE conversations DROP CONSTRAINT conversations_pkey, ADD PRIMARY KEY (user_id, id)")
    op.execute("DROP INDEX conversations_by_owner")
    op.execute("""
        ALTER TABLE messages DROP CONSTRAINT messages_pkey, DROP CONSTRAINT messages_seq_key,
            ADD PRIMARY KEY (user_id, conversation_id, id),
            ADD CONSTRAINT messages_conversation_fkey FOREIGN KEY (user_id, conversation_id)
                REFERENCES conversations (user_id, id) ON DELETE CASCADE
    """)
    op.execute("DROP INDEX messages_in_order, messages_apart")
    op.execute("CREATE UNIQUE INDEX messages_in_order ON messages (user_id, conversation_id, seq)")
    op.execute("""
        CREATE INDEX messages_apart ON messages (user_id, conversation_id, kind, seq)
        WHERE kind IN ('widget', 'summary')
    """)
    # A conversation is one person's. Without this, PostgreSQL multiplies what the two let through, expects one row, and
    # cannot tell the key's index from the one in order.
    op.execute("CREATE STATISTICS messages_of_one_person (dependencies) ON user_id, conversation_id FROM messages")
    op.execute("ANALYZE messages")
    op.execute("DROP INDEX runs_by_conversation, runs_one_per_conversation")
    op.execute("""
        ALTER TABLE runs ADD COLUMN worker text, DROP CONSTRAINT runs_pkey, ADD PRIMARY KEY (user_id, id),
            ADD CONSTRAINT runs_conversation_fkey FOREIGN KEY (user_id, conversation_id)
                REFERENCES conversations (user_id, id) ON DELETE SET NULL (conversation_id)
    """)
    op.execute("CREATE INDEX runs_by_conversation ON runs (user_id, conversation_id)")
    op.execute("""
        CREATE UNIQUE INDEX runs_one_per_conversation ON runs (user_id, conversation_id)
        WHERE status IN ('running', 'waiting')
    """)


def _key_conversations_alone() -> None:
    op.execute("DROP INDEX runs_by_conversation, runs_one_per_conversation")
    op.execute("ALTER TABLE runs DROP CONSTRAINT runs_conversation_fkey, DROP COLUMN worker")
    op.execute("ALTER TABLE messages DROP CONSTRAINT messages_conversation_fkey")
    op.execute("DROP STATISTICS messages_of_one_person")
    op.execute("DROP INDEX messages_in_order, messages_apart")
    op.execute("ALTER TABLE conversations DROP CONSTRAINT conversations_pkey, ADD PRIMARY KEY (id)")
    op.execute("CREATE INDEX conversations_by_owner ON conversations (user_id, id)")
    op.execute("""
        ALTER TABLE messages DROP CONSTRAINT messages_pkey, ADD PRIMARY KEY (conversation_id, id), ADD UNIQUE (seq),
            ADD CONSTRAINT messages_conversation_id_fkey FOREIGN KEY (conversation_id)
                REFERENCES conversations (id) ON DELETE CASCADE
    """)
    op.execute("CREATE INDEX messages_in_order ON messages (conversation_id, seq)")
    op.execute("""
        CREATE INDEX messages_apart ON messages (conversation_id, kind, seq) WHERE kind IN ('widget', 'summary')
    """)
    op.execute("""
        ALTER TABLE runs DROP CONSTRAINT runs_pkey, ADD PRIMARY KEY (id),
            ADD CONSTRAINT runs_conversation_id_fkey FOREIGN KEY (conversation_id)
                REFERENCES conversations (id) ON DELETE SET NULL
    """)
    op.execute("CREATE INDEX runs_by_conversation ON runs (conversation_id)")
    op.execute("""
        CREATE UNIQUE INDEX runs_one_per_conversation ON runs (conversation_id) WHERE status IN ('running', 'waiting')
    """)


def _key_tasks() -> None:
    op.execute("CREATE TABLE people (user_id text PRIMARY KEY, last_task_id bigint NOT NULL DEFAULT 0)")
    op.execute("""
        INSERT INTO people (user_id, last_task_id)
        SELECT user_id, max(id) FROM (
            SELECT user_id, id FROM tasks UNION ALL SELECT user_id, task_id FROM task_changes
        ) AS numbers GROUP BY user_id HAVING max(id) IS NOT NULL
    """)
    keep_apart("people")
    op.execute("ALTER TABLE tasks ALTER id DROP IDENTITY, DROP CONSTRAINT tasks_pkey, ADD PRIMARY KEY (user_id, id)")
    op.execute("DROP INDEX tasks_by_owner")
    op.execute("ALTER TABLE task_changes DROP CONSTRAINT task_changes_pkey, ADD PRIMARY KEY (user_id, id)")
    op.execute("CREATE INDEX task_changes_by_age ON task_changes USING brin (created_at)")


def _number_tasks_of_everybody() -> None:
    """Of tasks with one number the first keeps it, the others get new ones; their changes follow them."""
    op.execute("""
        CREATE TEMPORARY TABLE renumbered ON COMMIT DROP AS
        SELECT user_id, id, (SELECT max(last_task_id) FROM people) + row_number() OVER (ORDER BY user_id, id) AS new_id
        FROM (
            SELECT user_id, id, row_number() OVER (PARTITION BY id ORDER BY user_id) AS n
            FROM (
                SELECT user_id, id FROM tasks
                UNION SELECT user_id, task_id FROM task_changes WHERE task_id IS NOT NULL
            ) AS numbers
        ) AS numbered WHERE n > 1
    """)
    op.execute("""
        UPDATE tasks SET id = new_id FROM renumbered AS r WHERE (tasks.user_id, tasks.id) = (r.user_id, r.id)
    """)
    op.execute("""
        UPDATE task_changes SET task_id = new_id,
            before = jsonb_set(before, '{id}', to_jsonb(new_id), false),
            after = jsonb_set(after, '{id}', to_jsonb(new_id), false),
            arguments = jsonb_set(arguments, '{task_id}', to_jsonb(new_id), false)
        FROM renumbered AS r WHERE (task_changes.user_id, task_changes.task_id) = (r.user_id, r.id)
    """)
    op.execute("DROP INDEX task_changes_by_age")
    op.execute("ALTER TABLE task_changes DROP CONSTRAINT task_changes_pkey, ADD PRIMARY KEY (id)")
    op.execute("CREATE INDEX tasks_by_owner ON tasks (user_id, id)")
    op.execute("""
        ALTER TABLE tasks DROP CONSTRAINT tasks_pkey, ADD PRIMARY KEY (id),
            ALTER id ADD GENERATED ALWAYS AS IDENTITY
    """)
    op.execute("""
        SELECT setval(
            pg_get_serial_sequence('tasks', 'id'), greatest(1, max(last_task_id), (SELECT max(id) FROM tasks))
        )
        FROM people
    """)
    op.execute("DROP TABLE people")
