"""A call is one row, and each task that it changed another: one call may change many."""

from alembic import op

from migrations.functions import create, drop
from migrations.people import keep_apart

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None

SWEEP_CALLS = {
    "sweep_task_calls(days integer, most integer)": (
        "SETOF bigint",
        """
        DELETE FROM task_calls WHERE (user_id, id) IN (
            SELECT user_id, id FROM task_calls
            WHERE created_at < now() - make_interval(days => greatest(days, 30)) LIMIT most
        ) RETURNING id
        """,
    ),
}
SWEEP_CHANGES = {
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
    drop(SWEEP_CHANGES)
    op.execute("""
        CREATE TABLE task_calls (
            user_id text NOT NULL,
            id bigint GENERATED ALWAYS AS IDENTITY,
            operation text NOT NULL
                CONSTRAINT task_calls_operation CHECK (operation IN ('add', 'complete', 'update', 'delete')),
            arguments jsonb NOT NULL,
            actor text NOT NULL,
            idempotency_key text,
            created_at timestamptz NOT NULL DEFAULT now(),
            PRIMARY KEY (user_id, id)
        )
    """)
    op.execute("""
        INSERT INTO task_calls (user_id, id, operation, arguments, actor, idempotency_key, created_at)
        OVERRIDING SYSTEM VALUE
        SELECT user_id, id, operation, arguments, actor, idempotency_key, created_at FROM task_changes
    """)
    op.execute("SELECT setval(pg_get_serial_sequence('task_calls', 'id'), max(id)) FROM task_calls HAVING count(*) > 0")
    op.execute("""
        CREATE UNIQUE INDEX task_calls_one_per_key ON task_calls (user_id, idempotency_key)
        WHERE idempotency_key IS NOT NULL
    """)
    op.execute("CREATE INDEX task_calls_by_age ON task_calls USING brin (created_at)")
    keep_apart("task_calls")
    op.execute("DROP INDEX task_changes_one_per_key, task_changes_by_age")
    op.execute("ALTER TABLE task_changes ADD COLUMN call_id bigint")
    op.execute("UPDATE task_changes SET call_id = id")
    op.execute("""
        ALTER TABLE task_changes ALTER call_id SET NOT NULL,
            ADD CONSTRAINT task_changes_call_fkey FOREIGN KEY (user_id, call_id)
                REFERENCES task_calls (user_id, id) ON DELETE CASCADE,
            DROP COLUMN operation, DROP COLUMN arguments, DROP COLUMN actor, DROP COLUMN idempotency_key
    """)
    op.execute("CREATE INDEX task_changes_by_call ON task_changes (user_id, call_id, id)")
    create(SWEEP_CALLS)


def downgrade() -> None:
    drop(SWEEP_CALLS)
    op.execute("""
        ALTER TABLE task_changes ADD COLUMN operation text, ADD COLUMN arguments jsonb, ADD COLUMN actor text,
            ADD COLUMN idempotency_key text
    """)
    # The key of a call that changed several tasks stays with the first of them.
    op.execute("""
        UPDATE task_changes SET operation = call.operation, arguments = call.arguments, actor = call.actor,
            idempotency_key = CASE WHEN NOT EXISTS (
                SELECT FROM task_changes earlier WHERE earlier.user_id = task_changes.user_id
                    AND earlier.call_id = task_changes.call_id AND earlier.id < task_changes.id
            ) THEN call.idempotency_key END
        FROM task_calls AS call WHERE (call.user_id, call.id) = (task_changes.user_id, task_changes.call_id)
    """)
    op.execute("""
        ALTER TABLE task_changes ALTER operation SET NOT NULL, ALTER arguments SET NOT NULL, ALTER actor SET NOT NULL,
            DROP COLUMN call_id,
            ADD CONSTRAINT task_changes_operation CHECK (operation IN ('add', 'complete', 'update', 'delete'))
    """)
    op.execute("""
        CREATE UNIQUE INDEX task_changes_one_per_key ON task_changes (user_id, idempotency_key)
        WHERE idempotency_key IS NOT NULL
    """)
    op.execute("CREATE INDEX task_changes_by_age ON task_changes USING brin (created_at)")
    op.execute("DROP TABLE task_calls")
    create(SWEEP_CHANGES)
