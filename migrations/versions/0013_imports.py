"""What was imported is known for good: the calls of imports outlive the log of what they changed."""

from migrations.functions import create, drop

revision = "0013"
down_revision = "0012"
branch_labels = None
depends_on = None

# Such a call holds whose task it added, its number and its key, and no text; without its changes it is left alone.
SWEEP_ALL_BUT_IMPORTS = {
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
SWEEP_ALL = {
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


def upgrade() -> None:
    drop(SWEEP_ALL)
    create(SWEEP_ALL_BUT_IMPORTS)


def downgrade() -> None:
    drop(SWEEP_ALL_BUT_IMPORTS)
    create(SWEEP_ALL)
