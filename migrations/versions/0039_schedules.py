"""Add schedules: what the assistant does at certain times by itself."""

from alembic import op
from sqlalchemy import (
    TIMESTAMP,
    Boolean,
    CheckConstraint,
    Column,
    Date,
    ForeignKeyConstraint,
    Index,
    MetaData,
    Table,
    Text,
    Time,
    func,
    text,
)

from migrations.database import create_function, protect_table

revision = "0039"
down_revision = "0038"

_METADATA = MetaData()
Table("conversations", _METADATA, Column("user_id", Text, primary_key=True), Column("id", Text, primary_key=True))
_SCHEDULES = Table(
    "schedules",
    _METADATA,
    Column("user_id", Text, primary_key=True),
    Column("id", Text, primary_key=True),
    Column("text", Text, nullable=False),
    Column("repeat", Text, nullable=False),
    Column("at_time", Time, nullable=False),
    Column("zone", Text),
    Column("next_on", Date),
    Column("next_at", TIMESTAMP(timezone=True)),
    Column("paused", Boolean, nullable=False, server_default="false"),
    Column("only_if_needed", Boolean, nullable=False, server_default="false"),
    Column("conversation_id", Text),
    Column("claimed_until", TIMESTAMP(timezone=True)),
    Column("last_run_id", Text),
    Column("last_state", Text),
    Column("skipped_at", TIMESTAMP(timezone=True)),
    Column("skip_reason", Text),
    Column("created_at", TIMESTAMP(timezone=True), nullable=False, server_default=func.now()),
    CheckConstraint("skip_reason IN ('running', 'waiting', 'limit', 'account')", name="schedules_skip_reason"),
    CheckConstraint(
        "last_state IN ('running', 'waiting', 'completed', 'failed', 'cancelled', 'interrupted')",
        name="schedules_last_state",
    ),
    CheckConstraint("(next_on IS NULL) = (next_at IS NULL)", name="schedules_next"),
    ForeignKeyConstraint(
        ["user_id", "conversation_id"],
        ["conversations.user_id", "conversations.id"],
        ondelete="SET NULL (conversation_id)",
        deferrable=True,
    ),
    Index("schedules_due", "next_at", postgresql_where=text("next_at IS NOT NULL AND NOT paused")),
    Index("schedules_open", "user_id", "id", postgresql_where=text("last_state IN ('running', 'waiting')")),
)
_TAKE_SCHEDULE = """
CREATE FUNCTION take_schedule(
    schedule text, due timestamptz, run text, conversation text, rule text, following_on date, following_at timestamptz
) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    UPDATE schedules SET last_run_id = run, last_state = 'running', conversation_id = conversation,
        skipped_at = NULL, skip_reason = NULL,
        repeat = CASE WHEN due IS NULL THEN repeat ELSE rule END,
        next_on = CASE WHEN due IS NULL THEN next_on ELSE following_on END,
        next_at = CASE WHEN due IS NULL THEN next_at ELSE following_at END, claimed_until = NULL
    WHERE user_id = current_setting('todo.user_id') AND id = schedule
        AND (due IS NULL OR (next_at = due AND NOT paused))
        AND (conversation_id IS NULL OR conversation_id = conversation);
    IF NOT FOUND THEN RAISE EXCEPTION 'schedule taken' USING ERRCODE = 'TD006'; END IF;
END $$;
"""
_FUNCTIONS = {
    # What is due is claimed for a minute; the transaction that starts its run moves it on.
    "claim_schedules(present timestamptz, most integer)": (
        "TABLE (user_id text, id text)",
        """
        UPDATE schedules AS due SET claimed_until = present + interval '1 minute'
        WHERE (due.user_id, due.id) IN (
            SELECT stored.user_id, stored.id FROM schedules AS stored
            WHERE stored.next_at <= present AND NOT stored.paused
                AND (stored.claimed_until IS NULL OR stored.claimed_until <= present
                    OR stored.claimed_until > present + interval '5 minutes')
            ORDER BY stored.next_at LIMIT most FOR UPDATE SKIP LOCKED
        ) RETURNING due.user_id, due.id
        """,
    ),
    "changed_schedules(most integer)": (
        "TABLE (user_id text, id text)",
        """
        SELECT stored.user_id, stored.id FROM schedules AS stored
        JOIN runs AS run ON (run.user_id, run.id) = (stored.user_id, stored.last_run_id)
        WHERE stored.last_state IN ('running', 'waiting') AND run.status <> stored.last_state LIMIT most
        """,
    ),
}


def upgrade() -> None:
    connection = op.get_bind()
    driver = connection.connection.driver_connection
    _SCHEDULES.create(connection)
    protect_table(driver, _SCHEDULES)
    op.execute(_TAKE_SCHEDULE)
    for signature, (returned, statement) in _FUNCTIONS.items():
        create_function(driver, signature, returned, statement)
