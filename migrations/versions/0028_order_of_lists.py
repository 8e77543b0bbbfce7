"""Serve lists that are sorted by day, priority and time by an index, and limit the bytes of stored responses."""

from alembic import op

revision = "0028"
down_revision = "0027"

# The old index goes last, as no list can be read from then on until the end of the transaction.
_CREATE_INDEX = """
CREATE INDEX tasks_in_order ON tasks (
    user_id,
    (CASE WHEN due_on IS NULL THEN 'infinity'::date ELSE due_on END),
    (CASE WHEN priority IS NULL THEN 4 ELSE priority END),
    (CASE WHEN due_time IS NULL THEN '24:00:00'::time ELSE due_time END),
    id
) WHERE status = 'pending'
"""
_REPLACE_INDEX = "DROP INDEX tasks_by_due; ALTER INDEX tasks_in_order RENAME TO tasks_by_due"
_KEEP_REQUEST = """
-- Stores the idempotency key of a request, once. The responses of those without a run may have 10 MB together.
CREATE OR REPLACE FUNCTION keep_request(key text, request bytea, run text, most integer) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    me text := current_setting('todo.user_id');
    counted bigint;
    bytes bigint;
BEGIN
    INSERT INTO kept_requests (user_id, key, request, run_id) VALUES (me, key, request, run)
    ON CONFLICT DO NOTHING;
    IF NOT FOUND THEN RAISE EXCEPTION 'key stored' USING ERRCODE = 'TD005'; END IF;
    SELECT count(*), sum(pg_column_size(stored.answer)) INTO counted, bytes
    FROM (SELECT answer FROM kept_requests WHERE user_id = me LIMIT most + 1) AS stored;
    IF counted > most OR (run IS NULL AND bytes >= 10000000) THEN
        RAISE EXCEPTION USING ERRCODE = 'TD002',
            MESSAGE = jsonb_build_object('limit', 'idempotency_keys', 'most', most, 'seconds', 0)::text;
    END IF;
END $$;
"""


def upgrade() -> None:
    op.execute(_CREATE_INDEX)
    op.execute(_KEEP_REQUEST)
    op.execute(_REPLACE_INDEX)
