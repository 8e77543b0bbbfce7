"""Send many notifications of a user that are due together as one message."""

from alembic import op

from migrations.database import create_function

revision = "0042"
down_revision = "0041"

_TABLE = """
ALTER TABLE alerts DROP CONSTRAINT alerts_kind, DROP CONSTRAINT alerts_state, DROP CONSTRAINT alerts_next_at,
    ADD CONSTRAINT alerts_kind CHECK (kind IN ('task', 'digest', 'held', 'several', 'schedule', 'test')),
    ADD CONSTRAINT alerts_state CHECK (
        state IN ('pending', 'collected', 'held', 'merged', 'sent', 'shown', 'failed', 'expired')
    ),
    ADD CONSTRAINT alerts_next_at CHECK ((state IN ('pending', 'collected', 'held')) = (next_at IS NOT NULL));
DROP INDEX alerts_held;
CREATE INDEX alerts_held ON alerts (user_id) WHERE state IN ('collected', 'held');
CREATE INDEX alerts_merged ON alerts (user_id, merged_into) WHERE merged_into IS NOT NULL;
DROP FUNCTION claim_alerts(timestamptz, integer);
DROP FUNCTION take_alerts(timestamptz, float8, integer, integer, text[]);
"""
_FUNCTIONS = {
    "claim_alerts(moment timestamptz, most integer, singly integer)": (
        "TABLE (moved bigint, oldest timestamptz)",
        """
        WITH due_tasks AS MATERIALIZED (
            SELECT user_id, id, due_on, due_time, alert_at FROM tasks
            WHERE alert_at <= moment AND alert_stale_since IS NULL ORDER BY alert_at LIMIT most FOR UPDATE SKIP LOCKED
        ), due_digests AS MATERIALIZED (
            SELECT user_id, digest_at, digest_day FROM alert_settings
            WHERE digest_at <= moment AND stale_since IS NULL ORDER BY digest_at LIMIT most FOR UPDATE SKIP LOCKED
        ), taken_tasks AS (
            UPDATE tasks AS stored SET alert_at = NULL, snoozed_until = NULL FROM due_tasks AS due
            WHERE stored.user_id = due.user_id AND stored.id = due.id
        ), taken_digests AS (
            UPDATE alert_settings AS stored SET digest_at = NULL, stale_since = moment, digest_on = due.digest_day
            FROM due_digests AS due WHERE stored.user_id = due.user_id
        ), due AS (
            SELECT user_id, 'task' AS kind, alert_key(user_id, 'task', id::text, extract(epoch FROM alert_at)::text)
                AS key, jsonb_build_array(jsonb_build_object('id', id, 'due_on', due_on, 'due_time', due_time))
                AS task_dues, alert_at
            FROM due_tasks
            UNION ALL
            SELECT due.user_id, 'digest', alert_key(due.user_id, 'digest', due.digest_day::text), open.task_dues,
                due.digest_at
            FROM due_digests AS due CROSS JOIN LATERAL (
                SELECT jsonb_agg(jsonb_build_object('id', id, 'due_on', due_on, 'due_time', due_time)) AS task_dues
                FROM (
                    SELECT id, due_on, due_time FROM tasks WHERE tasks.user_id = due.user_id AND status = 'pending'
                        AND due_on <= due.digest_day AND due_time IS NULL ORDER BY due_on DESC, id LIMIT 200
                ) AS dated
            ) AS open WHERE open.task_dues IS NOT NULL
        ), wanted AS (
            SELECT due.user_id, due.key, due.kind, due.task_dues, due.alert_at
            FROM due JOIN alert_settings AS settings ON settings.user_id = due.user_id AND settings.is_on
            WHERE due.alert_at >= moment - interval '12 hours' AND NOT EXISTS (
                SELECT FROM accounts
                WHERE accounts.user_id = due.user_id AND coalesce(disabled_at, provider_refused_at) IS NOT NULL
            )
        ), earlier AS (
            SELECT user_id, count(*) AS number FROM alerts
            WHERE created_at BETWEEN moment - interval '5 seconds' AND moment AND kind IN ('task', 'digest')
                AND user_id IN (SELECT user_id FROM wanted)
            GROUP BY user_id
        ), counted AS (
            SELECT wanted.*, count(*) OVER (PARTITION BY user_id) + coalesce(earlier.number, 0) > singly AS is_many
            FROM wanted LEFT JOIN earlier USING (user_id)
        ), added AS (
            INSERT INTO alerts (user_id, key, kind, task_dues, alert_at, created_at, late, state, next_at)
            SELECT user_id, key, kind, task_dues, alert_at, moment, alert_at < moment - interval '2 minutes',
                CASE WHEN is_many THEN 'collected' ELSE 'pending' END,
                moment + CASE WHEN is_many THEN interval '5 seconds' ELSE interval '0' END
            FROM counted
            ON CONFLICT (user_id, key) DO NOTHING
        )
        SELECT (SELECT count(*) FROM due_tasks) + (SELECT count(*) FROM due_digests),
            (SELECT min(next_at) FROM alerts WHERE next_at IS NOT NULL AND state = 'pending')
        """,
    ),
    "take_alerts(moment timestamptz, lease_seconds float8, most integer, of_user integer, busy text[])": (
        "TABLE (user_id text, id bigint, next_at timestamptz)",
        """
        WITH due AS MATERIALIZED (
            SELECT user_id, id FROM (
                SELECT user_id, id, next_at, row_number() OVER (PARTITION BY user_id ORDER BY next_at) AS nth_of_user
                FROM alerts
                WHERE state IN ('pending', 'collected', 'held') AND user_id <> ALL (busy)
                    AND (next_at <= moment OR next_at > moment + (
                        CASE state WHEN 'held' THEN 2 ELSE 1 END * interval '1 day'
                    ))
            ) AS waiting WHERE nth_of_user <= of_user ORDER BY nth_of_user, next_at LIMIT most
        ), claimed AS MATERIALIZED (
            SELECT alert.user_id, alert.id FROM alerts AS alert JOIN due USING (user_id, id)
            WHERE alert.state IN ('pending', 'collected', 'held')
                AND (alert.next_at <= moment OR alert.next_at > moment + interval '1 day')
            FOR UPDATE OF alert SKIP LOCKED
        )
        UPDATE alerts AS taken SET next_at = moment + make_interval(secs => lease_seconds)
        FROM claimed WHERE taken.user_id = claimed.user_id AND taken.id = claimed.id
        RETURNING taken.user_id, taken.id, taken.next_at
        """,
    ),
}


def upgrade() -> None:
    driver = op.get_bind().connection.driver_connection
    op.execute(_TABLE)
    for signature, (returned, statement) in _FUNCTIONS.items():
        create_function(driver, signature, returned, statement)
