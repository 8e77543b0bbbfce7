"""A call belongs to a batch, which is taken back as a whole; tasks can be searched, and deleted ones be listed."""

from alembic import op

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None

# array_to_string depends on settings, which is not allowed here.
LABELS = " || ".join(f"coalesce(' ' || labels[{n}], '')" for n in range(1, 11))


def upgrade() -> None:
    op.execute("ALTER TABLE task_calls ADD COLUMN batch text")
    op.execute("CREATE INDEX task_calls_by_batch ON task_calls (user_id, batch, id) WHERE batch IS NOT NULL")
    op.execute(f"""
        ALTER TABLE tasks ADD COLUMN folded text GENERATED ALWAYS AS (lower(regexp_replace(
            normalize(title || ' ' || description || {LABELS}, NFKD), '[\\u0300-\\u036F]', '', 'g'
        ))) STORED
    """)
    op.execute("""
        CREATE INDEX task_changes_of_deletion ON task_changes (user_id, created_at, id)
        WHERE after IS NULL AND undoes IS NULL
    """)


def downgrade() -> None:
    op.execute("DROP INDEX task_changes_of_deletion")
    op.execute("ALTER TABLE tasks DROP COLUMN folded")
    op.execute("ALTER TABLE task_calls DROP COLUMN batch")
