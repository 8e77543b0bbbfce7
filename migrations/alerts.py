"""The SQL triggers and functions of notifications.

A change of a task, of its user's zone or of their settings marks what has to be computed again. The backend's clock
reads it (`stale_alerts`), computes the instants with its own time zone database, which may be newer than PostgreSQL's,
and stores them (`set_alerts`). It moves what is due to the outbox (`claim_alerts`), and claims what is to be sent
(`take_alerts`). They get the time as an argument, and several processes may call them at the same time.
"""

ALERT_HELPERS = """
CREATE FUNCTION alert_key(VARIADIC parts text[]) RETURNS text LANGUAGE sql STABLE AS $$
    SELECT translate(encode(substring(
        sha256(convert_to(array_to_string(parts, E'\\n'), 'UTF8')) FROM 1 FOR 18
    ), 'base64'), '+/', '-_')
$$;
"""
ALERT_TRIGGERS = """
-- No snooze survives another due date, status or user.
CREATE FUNCTION mark_task_alert() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'UPDATE' AND (OLD.user_id, OLD.due_on, OLD.due_time, OLD.status)
        IS DISTINCT FROM (NEW.user_id, NEW.due_on, NEW.due_time, NEW.status)
    THEN NEW.snoozed_until := NULL; END IF;
    NEW.alert_at := NULL;
    NEW.alert_stale_since := CASE
        WHEN NEW.status = 'pending' AND (NEW.due_time IS NOT NULL OR NEW.snoozed_until IS NOT NULL) THEN now() END;
    RETURN NEW;
END $$;
CREATE TRIGGER alert_of_new_task BEFORE INSERT ON tasks FOR EACH ROW
WHEN (NEW.due_time IS NOT NULL) EXECUTE FUNCTION mark_task_alert();
CREATE TRIGGER alert_of_changed_task BEFORE UPDATE ON tasks FOR EACH ROW WHEN (
    (OLD.user_id, OLD.due_on, OLD.due_time, OLD.remind, OLD.status)
        IS DISTINCT FROM (NEW.user_id, NEW.due_on, NEW.due_time, NEW.remind, NEW.status)
    OR NEW.snoozed_until IS NOT NULL AND NEW.snoozed_until IS DISTINCT FROM OLD.snoozed_until
) EXECUTE FUNCTION mark_task_alert();

-- Tasks are locked in the order in which the tool server locks them.
CREATE FUNCTION mark_alerts_of_zone() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE tasks SET alert_stale_since = now() FROM (
        SELECT id FROM tasks WHERE user_id = NEW.user_id AND status = 'pending' AND due_time IS NOT NULL
        ORDER BY id FOR UPDATE
    ) AS dated WHERE tasks.user_id = NEW.user_id AND tasks.id = dated.id;
    UPDATE alert_settings SET stale_since = now() WHERE user_id = NEW.user_id AND is_on AND digest_time IS NOT NULL;
    UPDATE alerts SET next_at = now() WHERE user_id = NEW.user_id AND state = 'held';
    RETURN NULL;
END $$;
CREATE TRIGGER alerts_of_new_zone AFTER INSERT ON profiles FOR EACH ROW
WHEN (NEW.time_zone IS NOT NULL) EXECUTE FUNCTION mark_alerts_of_zone();
CREATE TRIGGER alerts_of_changed_zone AFTER UPDATE ON profiles FOR EACH ROW
WHEN (OLD.time_zone IS DISTINCT FROM NEW.time_zone) EXECUTE FUNCTION mark_alerts_of_zone();

CREATE FUNCTION mark_digest() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.digest_at := NULL;
    NEW.stale_since := CASE WHEN NEW.is_on AND NEW.digest_time IS NOT NULL THEN now() END;
    RETURN NEW;
END $$;
CREATE TRIGGER digest_of_new_settings BEFORE INSERT ON alert_settings FOR EACH ROW EXECUTE FUNCTION mark_digest();
CREATE TRIGGER digest_of_changed_settings BEFORE UPDATE ON alert_settings FOR EACH ROW
WHEN ((OLD.user_id, OLD.is_on, OLD.digest_time) IS DISTINCT FROM (NEW.user_id, NEW.is_on, NEW.digest_time))
EXECUTE FUNCTION mark_digest();

CREATE FUNCTION mark_alerts_of_default() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE tasks SET alert_stale_since = now() FROM (
        SELECT id FROM tasks
        WHERE user_id = NEW.user_id AND status = 'pending' AND due_time IS NOT NULL AND remind IS NULL
        ORDER BY id FOR UPDATE
    ) AS dated WHERE tasks.user_id = NEW.user_id AND tasks.id = dated.id;
    RETURN NULL;
END $$;
CREATE TRIGGER alerts_of_new_default AFTER INSERT ON alert_settings FOR EACH ROW
WHEN (NEW.remind <> 0) EXECUTE FUNCTION mark_alerts_of_default();
CREATE TRIGGER alerts_of_changed_default AFTER UPDATE ON alert_settings FOR EACH ROW
WHEN (OLD.remind <> NEW.remind) EXECUTE FUNCTION mark_alerts_of_default();

-- Quiet hours may end earlier.
CREATE FUNCTION mark_held_alerts() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE alerts SET next_at = now() WHERE user_id = NEW.user_id AND state = 'held';
    RETURN NULL;
END $$;
CREATE TRIGGER alerts_of_changed_quiet_hours AFTER UPDATE ON alert_settings FOR EACH ROW
WHEN ((OLD.quiet_from, OLD.quiet_until) IS DISTINCT FROM (NEW.quiet_from, NEW.quiet_until))
EXECUTE FUNCTION mark_held_alerts();

-- A device is not notified after its user has signed out there. A session that could only not be renewed at its
-- provider for twelve hours has expired, after which a device is still notified.
CREATE FUNCTION end_alert_device() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM alert_channels WHERE user_id = NEW.user_id AND session_id = NEW.id AND NOT EXISTS (
        SELECT FROM provider_sessions AS stored WHERE stored.user_id = NEW.user_id AND stored.session_id = NEW.id
            AND stored.renewed_at < now() - interval '12 hours'
    );
    RETURN NULL;
END $$;
CREATE TRIGGER alert_device_of_ended_session AFTER UPDATE OF ended_at ON sessions FOR EACH ROW
WHEN (OLD.ended_at IS NULL AND NEW.ended_at IS NOT NULL) EXECUTE FUNCTION end_alert_device();
CREATE TRIGGER alert_device_of_lost_session AFTER INSERT ON sessions FOR EACH ROW
WHEN (NEW.ended_at IS NOT NULL) EXECUTE FUNCTION end_alert_device();
"""
# The columns from which the instant of a task's alert is computed.
_COLUMNS = """tasks.user_id, tasks.id, tasks.due_on, tasks.due_time, tasks.snoozed_until,
            coalesce(tasks.remind, settings.remind, 0) AS remind, profiles.time_zone, tasks.alert_at"""
_OF_USERS = """LEFT JOIN profiles ON profiles.user_id = tasks.user_id
        LEFT JOIN alert_settings AS settings ON settings.user_id = tasks.user_id"""
_INSTANTS = """TABLE (
        user_id text, id bigint, due_on date, due_time time, snoozed_until timestamptz, remind integer, time_zone text,
        alert_at timestamptz, stale_since timestamptz
    )"""
# Functions across users: {signature: (returned type, statement)}.
ALERTS_ACROSS_USERS = {
    "stale_alerts(most integer)": (
        _INSTANTS,
        f"""
        SELECT {_COLUMNS},
            tasks.alert_stale_since
        FROM tasks {_OF_USERS}
        WHERE tasks.alert_stale_since IS NOT NULL ORDER BY tasks.alert_stale_since LIMIT most
        """,
    ),
    # Those that are still to come, in pages: after an update of the time zone database, they may be at other instants.
    "coming_alerts(after timestamptz, after_user text, after_id bigint, most integer)": (
        _INSTANTS,
        f"""
        SELECT {_COLUMNS},
            NULL::timestamptz
        FROM tasks {_OF_USERS}
        WHERE (tasks.alert_at, tasks.user_id, tasks.id) > (after, after_user, after_id)
            AND tasks.alert_stale_since IS NULL AND tasks.snoozed_until IS NULL
        ORDER BY tasks.alert_at, tasks.user_id, tasks.id LIMIT most
        """,
    ),
    # Stores the instants of tasks that were not marked again since they were read.
    "set_alerts(instants jsonb)": (
        "void",
        """
        UPDATE tasks AS stored SET alert_at = computed.alert_at, alert_stale_since = NULL FROM (
            SELECT marked.user_id, marked.id, instant.alert_at
            FROM jsonb_to_recordset(instants) AS instant (
                user_id text, id bigint, stale_since timestamptz, alert_at timestamptz
            )
            JOIN tasks AS marked ON marked.user_id = instant.user_id AND marked.id = instant.id
                AND marked.alert_stale_since = instant.stale_since
            FOR UPDATE OF marked SKIP LOCKED
        ) AS computed
        WHERE stored.user_id = computed.user_id AND stored.id = computed.id
        """,
    ),
    "mark_alerts(instants jsonb, moment timestamptz)": (
        "void",
        """
        UPDATE tasks AS stored SET alert_stale_since = moment FROM (
            SELECT changed.user_id, changed.id
            FROM jsonb_to_recordset(instants) AS instant (user_id text, id bigint, alert_at timestamptz)
            JOIN tasks AS changed ON changed.user_id = instant.user_id AND changed.id = instant.id
                AND changed.alert_at = instant.alert_at
            FOR UPDATE OF changed SKIP LOCKED
        ) AS marked
        WHERE stored.user_id = marked.user_id AND stored.id = marked.id
        """,
    ),
    "stale_digests(most integer)": (
        "TABLE (user_id text, digest_time time, digest_on date, time_zone text, stale_since timestamptz)",
        """
        SELECT settings.user_id, settings.digest_time, settings.digest_on, profiles.time_zone, settings.stale_since
        FROM alert_settings AS settings LEFT JOIN profiles ON profiles.user_id = settings.user_id
        WHERE settings.stale_since IS NOT NULL ORDER BY settings.stale_since LIMIT most
        """,
    ),
    "set_digests(instants jsonb)": (
        "void",
        """
        UPDATE alert_settings AS stored
        SET digest_at = instant.digest_at, digest_day = instant.digest_day, stale_since = NULL
        FROM jsonb_to_recordset(instants) AS instant (
            user_id text, stale_since timestamptz, digest_at timestamptz, digest_day date
        )
        WHERE stored.user_id = instant.user_id AND stored.stale_since = instant.stale_since
        """,
    ),
    "mark_digests(moment timestamptz)": (
        "void",
        "UPDATE alert_settings SET stale_since = moment WHERE digest_at > moment AND stale_since IS NULL",
    ),
    # Moves what is due to the outbox, for users who want it. If that are more than `singly` of a user within five
    # seconds, they wait for five seconds, to be sent as one message. Returns how many rows it has moved, and since when
    # the oldest row of the outbox is to be worked on.
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
    # Claims alerts of the outbox for some seconds, within which nobody else gets them, of all users in turn: at most so
    # many of each, and none of those that are busy. What waits for more than a day was postponed before the clock was
    # set back; quiet hours may last an hour longer.
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
    # A device says that it has shown an alert; returns how many deliveries have this proof.
    "confirm_alert(device_proof text, moment timestamptz)": (
        "bigint",
        """
        WITH named AS (
            SELECT user_id, alert_id, channel_id FROM alert_deliveries WHERE proof = device_proof
        ), confirmed AS (
            UPDATE alerts AS alert SET state = 'shown', shown_at = coalesce(alert.shown_at, moment), next_at = NULL
            FROM named WHERE alert.user_id = named.user_id AND alert.id = named.alert_id
            RETURNING named.user_id, named.alert_id, named.channel_id
        ), shown AS (
            UPDATE alert_deliveries AS delivery SET state = 'shown', at = moment FROM confirmed
            WHERE delivery.user_id = confirmed.user_id AND delivery.alert_id = confirmed.alert_id
                AND delivery.channel_id = confirmed.channel_id
            RETURNING delivery.user_id, delivery.channel_id
        ), device AS (
            UPDATE alert_channels AS channel
            SET confirmed_at = coalesce(channel.confirmed_at, moment), last_shown_at = moment
            FROM shown WHERE channel.user_id = shown.user_id AND channel.id = shown.channel_id
        )
        SELECT count(*) FROM shown
        """,
    ),
    # A browser belongs to the user who was the last to switch notifications on in it.
    "release_alert_device(hash bytea, new_user text)": (
        "void",
        "DELETE FROM alert_channels WHERE target_hash = hash AND kind = 'push' AND user_id <> new_user",
    ),
    "sweep_alerts(moment timestamptz, most integer)": (
        "bigint",
        """
        WITH swept AS (
            DELETE FROM alerts WHERE (user_id, id) IN (
                SELECT user_id, id FROM alerts WHERE created_at < moment - interval '30 days' LIMIT most
            ) RETURNING id
        )
        SELECT count(*) FROM swept
        """,
    ),
}
