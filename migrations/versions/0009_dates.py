"""Tasks have a due day and time, a priority, labels and a repeat; a change may take back another."""

from alembic import op

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None

OPERATIONS = "'add', 'complete', 'update', 'delete'"


def upgrade() -> None:
    op.execute("""
        ALTER TABLE tasks
            ADD COLUMN due_on date,
            ADD COLUMN due_time time(0),
            ADD COLUMN priority smallint,
            ADD COLUMN labels text[] NOT NULL DEFAULT '{}',
            ADD COLUMN repeat text,
            ADD COLUMN series bigint,
            ADD CONSTRAINT tasks_due_time CHECK (due_time IS NULL OR due_on IS NOT NULL),
            ADD CONSTRAINT tasks_priority CHECK (priority BETWEEN 1 AND 3),
            ADD CONSTRAINT tasks_labels CHECK (cardinality(labels) <= 10),
            ADD CONSTRAINT tasks_repeat CHECK (
                repeat IS NULL OR (due_on IS NOT NULL AND series IS NOT NULL AND char_length(repeat) <= 200)
            )
    """)
    op.execute("CREATE INDEX tasks_by_due ON tasks (user_id, due_on, id) WHERE status = 'pending'")
    op.execute("CREATE UNIQUE INDEX tasks_one_open_of_series ON tasks (user_id, series) WHERE status = 'pending'")
    op.execute("""
        ALTER TABLE people ADD COLUMN time_zone text, ADD COLUMN week_starts smallint,
            ADD CONSTRAINT people_week_starts CHECK (week_starts BETWEEN 1 AND 7)
    """)
    op.execute(f"""
        ALTER TABLE task_calls DROP CONSTRAINT task_calls_operation,
            ADD CONSTRAINT task_calls_operation CHECK (operation IN ({OPERATIONS}, 'undo'))
    """)
    op.execute("ALTER TABLE task_changes ADD COLUMN undoes bigint")


def downgrade() -> None:
    op.execute("ALTER TABLE task_changes DROP COLUMN undoes")
    # To who reads the log without knowing of it, taking back is another change of the task.
    op.execute("""
        UPDATE task_calls SET operation = coalesce((
            SELECT CASE WHEN change.before IS NULL THEN 'add' WHEN change.after IS NULL THEN 'delete' END
            FROM task_changes AS change WHERE (change.user_id, change.call_id) = (task_calls.user_id, task_calls.id)
            ORDER BY change.id LIMIT 1
        ), 'update') WHERE operation = 'undo'
    """)
    op.execute(f"""
        ALTER TABLE task_calls DROP CONSTRAINT task_calls_operation,
            ADD CONSTRAINT task_calls_operation CHECK (operation IN ({OPERATIONS}))
    """)
    op.execute("ALTER TABLE people DROP COLUMN time_zone, DROP COLUMN week_starts")
    op.execute("DROP INDEX tasks_by_due, tasks_one_open_of_series")
    op.execute("""
        ALTER TABLE tasks DROP COLUMN due_on, DROP COLUMN due_time, DROP COLUMN priority, DROP COLUMN labels,
            DROP COLUMN repeat, DROP COLUMN series
    """)
